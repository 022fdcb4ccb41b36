import type { Batch } from '../core/batch.js';
import { assert, assertNever, OperationalError } from '../core/errors.js';
import { requestName } from '../core/purchase.js';
import type { Clock } from '../core/ports/clock.js';
import type { OrderRepository, SaleTerms, WriteOutcome } from '../core/ports/order-repository.js';
import type { BatchStore, LiveOrder } from '../core/ports/batch-store.js';
import { reacquireUnits } from './reacquire-units.js';
import { ATTEMPTS_MAX, contendedPauseMs, noIdsPauseMs, ordersOf } from './write-attempts.js';
import { draftRows, isOfOlderEpoch, lookUp, type Draft, type Known } from './draft-rows.js';
import type { RetryReason } from './metrics.js';
import type { OrderIdMinter } from './order-id-minter.js';

export interface RecordPorts {
  readonly repository: OrderRepository;
  readonly minter: OrderIdMinter;
  readonly clock: Clock;
  readonly store: BatchStore;
}

export interface RecordOptions {
  /** How long buyers have to pay in sales that set no time of their own, ms. */
  readonly paymentWindowMs: number;
}

/**
 * - `recorded`: every purchase is an order
 * - `refused`: recorded, but at least one row is `failed`, with its reason
 * - `already_recorded`: every purchase already had its row
 * - `retry`: nothing is known to be written; try the same batch again
 * - `unknown_sale`: the sale does not exist; nothing was written
 */
export type BatchResult =
  | {
      readonly outcome: 'recorded' | 'refused' | 'already_recorded';
      /** The live orders of the batch, for `markRecorded`. */
      readonly orders: readonly LiveOrder[];
    }
  | { readonly outcome: 'retry'; readonly reason: RetryReason; readonly error: OperationalError | null }
  | { readonly outcome: 'unknown_sale' };

/**
 * Records batches, in one transaction if possible. Returns the results in order. Safe to repeat with any mix of old and
 * new batches: the unique keys decide, and existing rows are not counted again. A batch of an older epoch first takes
 * its units again.
 *
 * One transaction cannot write a request twice. Duplicates are rare, so they are searched for only after a violated
 * unique key. The batches are then recorded in several passes without duplicates. Source: protocol rules 6, 7 and 13
 */
export async function recordBatches(
  batches: readonly Batch[],
  ports: RecordPorts,
  options: RecordOptions,
): Promise<BatchResult[]> {
  const together = await recordPass(batches, ports, options);
  if (together !== 'duplicates') return together;
  const results: BatchResult[] = [];
  for (const pass of passesWithoutDuplicates(batches)) {
    const inPass = pass.map((index) => batches[index] as Batch);
    const answers = await recordPass(inPass, ports, options);
    assert(answers !== 'duplicates', 'a pass has no duplicates');
    pass.forEach((index, place) => (results[index] = answers[place] as BatchResult));
  }
  return results;
}

/**
 * Returns passes of batch indexes. A request may be in two batches: delivered twice, or formed from survivors of
 * another batch. The first batch writes it; the second, in a later pass, finds the row.
 */
function passesWithoutDuplicates(batches: readonly Batch[]): number[][] {
  if (batches.length === 1) return [[0]];
  const passes: { readonly indexes: number[]; readonly names: Set<string> }[] = [];
  batches.forEach((batch, index) => {
    const names = batch.purchases.map((purchase) => requestName(batch.saleId, purchase));
    // Place it after the last pass that shares a name with it, because the first of two batches must be written first.
    const last = passes.findLastIndex((pass) => names.some((name) => pass.names.has(name)));
    const pass = passes[last + 1] ?? { indexes: [], names: new Set<string>() };
    if (last + 1 === passes.length) passes.push(pass);
    pass.indexes.push(index);
    for (const name of names) pass.names.add(name);
  });
  return passes.map(({ indexes }) => indexes);
}

/** A purchase whose value MySQL refuses fails alone. If it cannot be found, each batch gets its own transaction. */
async function recordPass(
  pass: readonly Batch[],
  ports: RecordPorts,
  options: RecordOptions,
): Promise<BatchResult[] | 'duplicates'> {
  try {
    return await recordTogether(pass, ports, options);
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    if (error.retryable) return pass.map(() => ({ outcome: 'retry', reason: 'unavailable', error }));
    if (pass.length === 1) return [{ outcome: 'retry', reason: 'poison', error }];
    const results: BatchResult[] = [];
    for (const batch of pass) results.push(...((await recordPass([batch], ports, options)) as BatchResult[]));
    return results;
  }
}

async function recordTogether(
  batches: readonly Batch[],
  ports: RecordPorts,
  { paymentWindowMs }: RecordOptions,
): Promise<BatchResult[] | 'duplicates'> {
  const { repository, minter, clock } = ports;
  const saleIds = [...new Set(batches.map(({ saleId }) => saleId))];
  const oneByOne = new Set<string>();
  let singleOut = false;
  let ready: Ready | null = null;
  let reason: RetryReason = 'contended';
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const now: Ready | 'duplicates' = ready ?? (await prepare(batches, await repository.termsOf(saleIds), ports));
    if (now === 'duplicates') return now;
    ready = now;
    const { terms, writable, known }: Ready = now;
    const draft = draftRows(writable, terms, known);
    if (draft.rows.length === 0 && draft.releases.length === 0) return resultsOf(batches, now, draft, [], new Set());
    const minted = minter.mint(draft.rows.map(({ purchase }) => purchase.userId));
    if (minted.outcome === 'refused') {
      reason = 'no_order_ids';
      await clock.sleep(noIdsPauseMs(minted.waitMs));
      continue;
    }
    assert(minted.orderIds.length === draft.rows.length, 'each row has its own order id');
    const orders = ordersOf(draft, minted.orderIds);
    const { releases } = draft;
    const plan = { terms, orders, releases, oneByOne: new Set(oneByOne), singleOut, paymentWindowMs };
    const written = await repository.write(plan);
    reason = 'contended';
    switch (written.outcome) {
      case 'written':
        return resultsOf(batches, now, draft, minted.orderIds, failedIn(written));
      case 'row_exists':
        if (known === null && passesWithoutDuplicates(batches).length > 1) return 'duplicates';
        ready = { ...now, known: { ...(await lookUp(writable, terms, repository)), ...reacquiredOf(known ?? {}) } };
        break;
      case 'order_id_taken':
        break; // the next attempt mints new ids
      case 'oversold':
        for (const saleId of written.saleIds) oneByOne.add(saleId);
        break;
      case 'value_refused':
        singleOut = true;
        break;
      case 'epoch_changed':
        ready = null; // batches of an older epoch now have to take their units again
        break;
      case 'again':
        await clock.sleep(contendedPauseMs(attempt));
        break;
      default:
        return assertNever(written);
    }
  }
  return batches.map(() => ({ outcome: 'retry', reason, error: null }));
}

/** Returns the ids of planned orders that were written as `failed`. */
const failedIn = ({ surplus, refused }: WriteOutcome & { outcome: 'written' }): ReadonlySet<string> =>
  refused === undefined ? surplus : new Set([...surplus, ...refused]);

interface Ready {
  readonly terms: ReadonlyMap<string, SaleTerms>;
  readonly writable: readonly Batch[];
  /** Null before the first look-up. */
  readonly known: Known | null;
  /** Batches that may not be written, and why. */
  readonly postponed: ReadonlyMap<Batch, RetryReason>;
}

const NONE_POSTPONED: Ready['postponed'] = new Map();

/** Looks up batches of an older epoch and takes their units again. Usually there are none. */
async function prepare(
  batches: readonly Batch[],
  terms: ReadonlyMap<string, SaleTerms>,
  ports: RecordPorts,
): Promise<Ready | 'duplicates'> {
  const writable = batches.filter(({ saleId }) => terms.has(saleId));
  if (!writable.some((batch) => isOfOlderEpoch(batch, terms))) {
    return { terms, writable, known: null, postponed: NONE_POSTPONED };
  }
  if (passesWithoutDuplicates(batches).length > 1) return 'duplicates'; // after a look-up, no request may be in two batches
  const { known, postponed } = await reacquireUnits(writable, terms, ports);
  return { terms, writable: writable.filter((batch) => !postponed.has(batch)), known, postponed };
}

/** Returns the answers of `reacquire`, to be kept for a later look-up. */
const reacquiredOf = ({ lost, elsewhere }: Partial<Known> = {}): Pick<Known, 'lost' | 'elsewhere'> => ({
  ...(lost && { lost }),
  ...(elsewhere && { elsewhere }),
});

function resultsOf(
  batches: readonly Batch[],
  { terms, postponed }: Ready,
  draft: Draft,
  orderIds: readonly string[],
  failed: ReadonlySet<string>,
): BatchResult[] {
  const tallies = new Map<Batch, { readonly orders: LiveOrder[]; failed: boolean }>();
  let current: Batch | null = null; // the rows of a batch are adjacent
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
    const why = postponed.get(batch);
    if (why !== undefined) return { outcome: 'retry', reason: why, error: null };
    if (draft.waiting.has(batch)) return { outcome: 'retry', reason: 'held_elsewhere', error: null };
    const found = draft.found.get(batch) ?? [];
    const tally = tallies.get(batch);
    if (tally === undefined) return { outcome: 'already_recorded', orders: found };
    return { outcome: tally.failed ? 'refused' : 'recorded', orders: [...found, ...tally.orders] };
  });
}
