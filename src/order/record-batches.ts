import type { Batch } from '../domain/batch.js';
import { assert, assertNever, OperationalError } from '../domain/errors.js';
import type { Order } from '../domain/order.js';
import type { Purchase } from '../domain/purchase.js';
import type { Clock } from '../ports/clock.js';
import type { NewOrder, OrderBook, SaleTerms } from '../ports/order-book.js';
import type { Settlement } from '../ports/settlement-ledger.js';
import type { RetryReason } from '../ports/worker-meters.js';
import { buyerName, draftRows, requestName, type Draft, type Known } from './draft-rows.js';
import type { OrderIdMinter } from './order-id-minter.js';

export interface RecordPorts {
  readonly book: OrderBook;
  readonly minter: Pick<OrderIdMinter, 'mint'>;
  readonly clock: Clock;
}

export interface RecordOptions {
  /** How long a buyer may take to pay, ms. */
  readonly paymentWindowMs: number;
}

/**
 * What became of one batch (P4).
 * - `recorded`: every purchase is an order
 * - `refused`: recorded, but some row is `failed` with its reason
 * - `already_recorded`: every purchase had its row before
 * - `retry`: nothing is known to be written; the same batch may be tried again
 * - `unknown_sale`: there is no such sale; nothing was written
 */
export type BatchResult =
  | {
      readonly outcome: 'recorded' | 'refused' | 'already_recorded';
      /** The live orders of its purchases, for the ledger. */
      readonly orders: readonly Settlement[];
    }
  | { readonly outcome: 'retry'; readonly reason: RetryReason; readonly error: OperationalError | null }
  | { readonly outcome: 'unknown_sale' };

/** Plans of one transaction: each look-up, lost guard or deadlock takes one. Two or three are the rule under stress. */
const ATTEMPTS_MAX = 8;
const AGAIN_MS = 5;
const NO_IDS_WAIT_MAX_MS = 250;

/**
 * Records batches, all in one transaction if they let it, and says what became of each, in order. Safe to repeat with
 * any mix of old and new batches: the unique keys decide, and rows found are never counted again.
 * Source: protocol rules 6 and 7
 */
export async function recordBatches(
  batches: readonly Batch[],
  ports: RecordPorts,
  options: RecordOptions,
): Promise<BatchResult[]> {
  const together = await recordWave(batches, ports, options);
  if (together !== 'twins') return together;
  const results: BatchResult[] = [];
  for (const wave of wavesWithoutTwins(batches)) {
    const inWave = wave.map((index) => batches[index] as Batch);
    const answers = await recordWave(inWave, ports, options);
    assert(answers !== 'twins', 'a wave has no twins');
    wave.forEach((index, place) => (results[index] = answers[place] as BatchResult));
  }
  return results;
}

/**
 * A request that stands in two of the batches (a batch delivered twice, a survivor that met its own retry) waits for
 * the next wave: there the look-up finds the row of the first and treats it like any other earlier row. Twins can't be
 * written together, so they are looked for only after a unique key has said no.
 */
function wavesWithoutTwins(batches: readonly Batch[]): number[][] {
  if (batches.length === 1) return [[0]];
  const waves: { readonly indexes: number[]; readonly names: Set<string> }[] = [];
  batches.forEach((batch, index) => {
    const names = batch.purchases.map((purchase) => requestName(batch.saleId, purchase));
    // Behind the last wave that shares a name: the first of two batches must be the first to be written.
    const last = waves.findLastIndex((wave) => names.some((name) => wave.names.has(name)));
    const wave = waves[last + 1] ?? { indexes: [], names: new Set<string>() };
    if (last + 1 === waves.length) waves.push(wave);
    wave.indexes.push(index);
    for (const name of names) wave.names.add(name);
  });
  return waves.map(({ indexes }) => indexes);
}

/** One transaction for all; if MySQL refuses a value in it, one for each, so that only the bad batch stays behind. */
async function recordWave(
  wave: readonly Batch[],
  ports: RecordPorts,
  options: RecordOptions,
): Promise<BatchResult[] | 'twins'> {
  try {
    return await recordTogether(wave, ports, options);
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    if (error.retryable) return wave.map(() => ({ outcome: 'retry', reason: 'unavailable', error }));
    if (wave.length === 1) return [{ outcome: 'retry', reason: 'poison', error }];
    const results: BatchResult[] = [];
    for (const batch of wave) results.push(...((await recordWave([batch], ports, options)) as BatchResult[]));
    return results;
  }
}

async function recordTogether(
  batches: readonly Batch[],
  ports: RecordPorts,
  { paymentWindowMs }: RecordOptions,
): Promise<BatchResult[] | 'twins'> {
  const { book, minter, clock } = ports;
  const saleIds = [...new Set(batches.map(({ saleId }) => saleId))];
  const oneByOne = new Set<string>();
  let terms = await book.termsOf(saleIds);
  let known: Known | null = null;
  let reason: RetryReason = 'contended';
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const mine = batches.filter(({ saleId }) => terms.has(saleId));
    const draft = draftRows(mine, terms, known);
    if (draft.rows.length === 0 && draft.releases.length === 0) return resultsOf(batches, terms, draft, [], new Set());
    const minted = minter.mint(draft.rows.map(({ purchase }) => purchase.userId));
    if (minted.outcome === 'refused') {
      reason = 'no_order_ids';
      await clock.sleep(Math.min(minted.waitMs, NO_IDS_WAIT_MAX_MS));
      continue;
    }
    const orders = draft.rows.map(({ batch, purchase, failure }, index): NewOrder => ({
      orderId: minted.orderIds[index] as string,
      batch,
      purchase,
      failure,
    }));
    const written = await book.write({
      terms,
      orders,
      releases: draft.releases,
      oneByOne: new Set(oneByOne),
      paymentWindowMs,
    });
    reason = 'contended';
    switch (written.outcome) {
      case 'written':
        return resultsOf(batches, terms, draft, minted.orderIds, written.surplus);
      case 'row_exists':
        if (known === null && wavesWithoutTwins(batches).length > 1) return 'twins';
        known = await lookUp(mine, terms, book);
        break;
      case 'order_id_taken':
        break; // the next attempt mints new ones
      case 'oversold':
        for (const saleId of written.saleIds) oneByOne.add(saleId);
        break;
      case 'epoch_changed':
        terms = await book.termsOf(saleIds);
        break;
      case 'again':
        await clock.sleep(Math.ceil(AGAIN_MS * attempt * (0.5 + Math.random())));
        break;
      default:
        return assertNever(written);
    }
  }
  return batches.map(() => ({ outcome: 'retry', reason, error: null }));
}

/** Who of these purchases has a row, and which buyers stand in the way of a second one. */
async function lookUp(
  batches: readonly Batch[],
  terms: ReadonlyMap<string, SaleTerms>,
  book: OrderBook,
): Promise<Known> {
  const rows = new Map<string, Order>();
  const liveBuyers = new Set<string>();
  for (const [saleId, purchases] of purchasesBySale(batches)) {
    for (const row of await book.findByPurchases(saleId, purchases)) rows.set(requestName(saleId, row), row);
    if (terms.get(saleId)?.limitPerBuyer !== 1) continue;
    const users = [...new Set(purchases.map(({ userId }) => userId))];
    for (const userId of await book.liveBuyers(saleId, users)) liveBuyers.add(buyerName(saleId, userId));
  }
  return { rows, liveBuyers };
}

function purchasesBySale(batches: readonly Batch[]): Map<string, Purchase[]> {
  const bySale = new Map<string, Purchase[]>();
  for (const { saleId, purchases } of batches) bySale.set(saleId, [...(bySale.get(saleId) ?? []), ...purchases]);
  return bySale;
}

function resultsOf(
  batches: readonly Batch[],
  terms: ReadonlyMap<string, SaleTerms>,
  draft: Draft,
  orderIds: readonly string[],
  surplus: ReadonlySet<string>,
): BatchResult[] {
  const tallies = new Map<Batch, { readonly orders: Settlement[]; failed: boolean }>();
  let current: Batch | null = null; // rows of a batch stand together
  let tally = { orders: [] as Settlement[], failed: false };
  draft.rows.forEach(({ batch, purchase, failure }, index) => {
    if (batch !== current) tallies.set((current = batch), (tally = { orders: [], failed: false }));
    const orderId = orderIds[index] as string;
    if (failure !== null || surplus.has(orderId)) tally.failed = true;
    else tally.orders.push({ userId: purchase.userId, requestId: purchase.requestId, orderId });
  });
  return batches.map((batch) => {
    if (!terms.has(batch.saleId)) return { outcome: 'unknown_sale' };
    const found = draft.found.get(batch) ?? [];
    const mine = tallies.get(batch);
    if (mine === undefined) return { outcome: 'already_recorded', orders: found };
    return { outcome: mine.failed ? 'refused' : 'recorded', orders: [...found, ...mine.orders] };
  });
}
