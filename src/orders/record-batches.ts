import type { Batch } from '../core/batch.js';
import { assert, assertNever, OperationalError } from '../core/errors.js';
import type { Clock } from '../core/ports/clock.js';
import type { NewOrder, OrderRepository, SaleTerms, WriteOutcome } from '../core/ports/order-repository.js';
import type { LiveOrder } from '../core/ports/batch-store.js';
import { reacquireUnits, type ReacquirePorts } from './reacquire-units.js';
import { draftRows, isOfOlderEpoch, lookUp, requestName, type Draft, type Known } from './draft-rows.js';
import type { RetryReason } from './metrics.js';
import type { OrderIdMinter } from './order-id-minter.js';

export interface RecordPorts {
  readonly repository: OrderRepository;
  readonly minter: Pick<OrderIdMinter, 'mint'>;
  readonly clock: Clock;
  readonly store: ReacquirePorts['store'];
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
      readonly orders: readonly LiveOrder[];
    }
  | { readonly outcome: 'retry'; readonly reason: RetryReason; readonly error: OperationalError | null }
  | { readonly outcome: 'unknown_sale' };

/** Plans of one transaction: each look-up, lost guard or deadlock takes one. Two or three are the rule under stress. */
const ATTEMPTS_MAX = 8;
const AGAIN_MS = 5;
const NO_IDS_WAIT_MAX_MS = 250;

/**
 * Records batches, all in one transaction if they let it, and says what became of each, in order. Safe to repeat with
 * any mix of old and new batches: the unique keys decide, and rows found are never counted again. A batch that was formed
 * before its sale was rebuilt claims its units first.
 * Source: protocol rules 6, 7 and 11
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

/**
 * One transaction for all. A purchase whose value MySQL refuses fails alone in it; if it cannot be singled out, each batch
 * gets a transaction of its own, so that only the bad one stays behind.
 */
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
  const { repository, minter, clock } = ports;
  const saleIds = [...new Set(batches.map(({ saleId }) => saleId))];
  const oneByOne = new Set<string>();
  let singleOut = false;
  let ready: Ready | null = null;
  let reason: RetryReason = 'contended';
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const now: Ready | 'twins' = ready ?? (await prepare(batches, await repository.termsOf(saleIds), ports));
    if (now === 'twins') return now;
    ready = now;
    const { terms, mine, known }: Ready = now;
    const draft = draftRows(mine, terms, known);
    if (draft.rows.length === 0 && draft.releases.length === 0) return resultsOf(batches, now, draft, [], new Set());
    const minted = minter.mint(draft.rows.map(({ purchase }) => purchase.userId));
    if (minted.outcome === 'refused') {
      reason = 'no_order_ids';
      await clock.sleep(Math.min(minted.waitMs, NO_IDS_WAIT_MAX_MS));
      continue;
    }
    const orders = ordersOf(draft, minted.orderIds);
    const { releases } = draft;
    const plan = { terms, orders, releases, oneByOne: new Set(oneByOne), singleOut, paymentWindowMs };
    const written = await repository.write(plan);
    reason = 'contended';
    switch (written.outcome) {
      case 'written':
        return resultsOf(batches, now, draft, minted.orderIds, failedIn(written));
      case 'row_exists':
        if (known === null && wavesWithoutTwins(batches).length > 1) return 'twins';
        ready = { ...now, known: { ...(await lookUp(mine, terms, repository)), ...claimedOf(known ?? {}) } };
        break;
      case 'order_id_taken':
        break; // the next attempt mints new ones
      case 'oversold':
        for (const saleId of written.saleIds) oneByOne.add(saleId);
        break;
      case 'value_refused':
        singleOut = true;
        break;
      case 'epoch_changed':
        ready = null; // what is late now has to claim
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

const ordersOf = ({ rows }: Draft, orderIds: readonly string[]): NewOrder[] =>
  rows.map(({ batch, purchase, failure }, index) => ({
    ...{ orderId: orderIds[index] as string, batch, purchase, failure },
  }));

/** Order ids that were planned as orders and written as `failed`. */
const failedIn = ({ surplus, refused }: WriteOutcome & { outcome: 'written' }): ReadonlySet<string> =>
  refused === undefined ? surplus : new Set([...surplus, ...refused]);

/** What one attempt begins with. */
interface Ready {
  readonly terms: ReadonlyMap<string, SaleTerms>;
  /** Batches that may be written. */
  readonly mine: readonly Batch[];
  /** Null before any look-up. */
  readonly known: Known | null;
  /** Batches that may not, and why. */
  readonly kept: ReadonlyMap<Batch, RetryReason>;
}

const NONE_KEPT: Ready['kept'] = new Map();

/** Nearly always there is nothing to prepare: only batches that are older than their sale are looked up and claim. */
async function prepare(
  batches: readonly Batch[],
  terms: ReadonlyMap<string, SaleTerms>,
  ports: RecordPorts,
): Promise<Ready | 'twins'> {
  const mine = batches.filter(({ saleId }) => terms.has(saleId));
  if (!mine.some((batch) => isOfOlderEpoch(batch, terms))) return { terms, mine, known: null, kept: NONE_KEPT };
  if (wavesWithoutTwins(batches).length > 1) return 'twins'; // from a look-up on, no request may be there twice
  const { known, kept } = await reacquireUnits(mine, terms, ports);
  return { terms, mine: mine.filter((batch) => !kept.has(batch)), known, kept };
}

/** What claims have said, for a look-up after them. */
const claimedOf = ({ lost, elsewhere }: Partial<Known> = {}): Pick<Known, 'lost' | 'elsewhere'> => ({
  ...(lost && { lost }),
  ...(elsewhere && { elsewhere }),
});

function resultsOf(
  batches: readonly Batch[],
  { terms, kept }: Ready,
  draft: Draft,
  orderIds: readonly string[],
  failed: ReadonlySet<string>,
): BatchResult[] {
  const tallies = new Map<Batch, { readonly orders: LiveOrder[]; failed: boolean }>();
  let current: Batch | null = null; // rows of a batch stand together
  let tally = { orders: [] as LiveOrder[], failed: false };
  draft.rows.forEach(({ batch, purchase, failure }, index) => {
    if (batch !== current) tallies.set((current = batch), (tally = { orders: [], failed: false }));
    const orderId = orderIds[index] as string;
    if (failure !== null || failed.has(orderId)) tally.failed = true;
    else {
      const { userId, requestId } = purchase;
      tally.orders.push({ userId, requestId, orderId, state: 'pending_payment' });
    }
  });
  return batches.map((batch) => {
    if (!terms.has(batch.saleId)) return { outcome: 'unknown_sale' };
    const why = kept.get(batch);
    if (why !== undefined) return { outcome: 'retry', reason: why, error: null };
    if (draft.waiting.has(batch)) return { outcome: 'retry', reason: 'held_elsewhere', error: null };
    const found = draft.found.get(batch) ?? [];
    const mine = tallies.get(batch);
    if (mine === undefined) return { outcome: 'already_recorded', orders: found };
    return { outcome: mine.failed ? 'refused' : 'recorded', orders: [...found, ...mine.orders] };
  });
}
