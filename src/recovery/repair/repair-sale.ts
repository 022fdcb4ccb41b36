import { randomBytes } from 'node:crypto';
import { decodeBatch, type Batch } from '../../core/batch.js';
import { assertNever } from '../../core/errors.js';
import { formatRequestEntry } from '../../core/outcome.js';
import type { Sale } from '../../core/sale.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import type { ReconcileRepository } from '../../core/ports/reconcile-repository.js';
import type { StoredRequest } from '../../core/ports/reconcile-store.js';
import type { RepairRepository, RepairStore } from '../../core/ports/repair-stores.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import type { SaleStore } from '../../core/ports/stock-store.js';
import type { BucketRef } from '../../core/bucket.js';
import { rowsOfSale } from '../reconcile/count-units.js';
import { awaitQuiet, type QuietOptions } from './await-quiet.js';
import { RebuiltRequests } from './rebuilt-requests.js';

export interface RepairPorts {
  readonly store: RepairStore & Pick<SaleStore, 'setState'>;
  readonly repository: RepairRepository & Pick<ReconcileRepository, 'agedOrders'>;
  readonly sales: Pick<SaleRepository, 'find'>;
  readonly clock: Clock;
  readonly log: Log;
}

export interface RepairOptions extends QuietOptions {
  /** After this long another repair takes over from one that died, ms; renewed with every command. */
  readonly leaseMs: number;
}

/** Who orders the repair, and how it is followed. */
export interface RepairOrder {
  /** Stands in the audit log. */
  readonly actor: string;
  /** Of each bucket, when its need was seen; absent: repair it in any case. */
  readonly seenEpochs?: readonly number[];
  /** Buckets that the sale has from then on, a multiple of those it has; absent: as many as before. */
  readonly buckets?: number;
  readonly onStep?: (step: RepairStep) => void;
}

/** What has just been reached. */
export type RepairStep =
  | { readonly step: 'shut' | 'quiet' }
  | { readonly step: 'epoch'; readonly epoch: number }
  | { readonly step: 'staged'; readonly rows: number; readonly held: number; readonly ordersLost: number };

/**
 * - `repaired`: the sale is rebuilt, and in the state that MySQL has
 * - `busy`: another repair has it
 * - `superseded`: another repair took over, or Redis was restarted once more; nothing that came later was done
 * - `not_found`: there is no such sale; `draft`: it was never loaded
 */
export type SaleRepair =
  | {
      readonly outcome: 'repaired';
      readonly epoch: number;
      readonly unitsLeft: number;
      /** Requests that have a row. */
      readonly rows: number;
      /** Requests without a row that are held for their batch. */
      readonly held: number;
      /** Requests that Redis has as ordered and that have no row; they keep entry and units, and a person decides. */
      readonly ordersLost: number;
      readonly tookMs: number;
    }
  | { readonly outcome: 'busy' | 'superseded' | 'not_found' | 'draft' };

/** The bucket has another token: whatever this repair wanted to do next must not be done. */
class Superseded extends Error {}

export const bucketRefsOf = ({ saleId, buckets }: Sale): BucketRef[] =>
  Array.from({ length: buckets }, (_, bucket) => ({ saleId, bucket }));

/**
 * Rebuilds the Redis side of one sale from MySQL, and from what Redis still holds that is not in MySQL yet. It is
 * locked meanwhile: nobody buys, and marks and releases come again. A death at any point leaves it locked, and the next
 * repair begins anew; a late command of this one does nothing then.
 * @throws OperationalError; the sale stays locked until the next repair
 * Source: protocol rule 10
 */
export async function repairSale(
  sale: Sale,
  ports: RepairPorts,
  options: RepairOptions,
  { actor, seenEpochs, buckets = sale.buckets, onStep = () => undefined }: RepairOrder,
): Promise<SaleRepair> {
  if (sale.state === 'draft') return { outcome: 'draft' };
  const { store, repository, clock, log } = ports;
  const { saleId } = sale;
  const startedMs = clock.nowMs();
  const reshard = buckets === sale.buckets ? undefined : { from: sale.buckets, to: buckets };
  const refs = bucketRefsOf({ ...sale, buckets });
  const token = randomBytes(12).toString('hex');
  try {
    // The first one first, which is swapped last: another repair of the sale has it too, and nothing is locked then.
    for (const ref of refs) {
      const word = await store.lock(ref, token, options.leaseMs, seenEpochs?.[ref.bucket]);
      if (word === 'busy') return { outcome: 'busy' };
      if (word === 'moved') throw new Superseded();
    }
    onStep({ step: 'shut' });
    const keepLeases = (): Promise<void> => stageAll(store, refs, token, []);
    // A reshard that has lost nothing waits for nobody: what the workers have not written yet is held, and goes along.
    const isWhole = reshard !== undefined && (await isStamped(refs.slice(0, sale.buckets), store));
    if (isWhole) await keepLeases();
    else await awaitQuiet(sale, ports, options, keepLeases);
    onStep({ step: 'quiet' });

    const epochs = (await store.statusOf(refs)).map(({ epoch }) => epoch);
    const raised = await repository.raiseEpoch(saleId, Math.max(...epochs) + 1, actor, reshard);
    if (raised === null && reshard === undefined) return { outcome: 'not_found' };
    // It was resharded meanwhile: there are buckets that are not ours.
    if (raised?.buckets !== buckets) throw new Superseded();
    const { epoch } = raised;
    onStep({ step: 'epoch', epoch });

    const rebuilt = await stageRequests(raised, refs, token, ports);
    const { rows, held, ordersLost } = rebuilt;
    onStep({ step: 'staged', rows, held, ordersLost });
    logLost(raised, rebuilt, log);
    await swapAll(raised, refs, token, rebuilt, ports);

    const unitsLeft = rebuilt.unitsLeft.reduce((sum, units) => sum + units, 0);
    const tookMs = clock.nowMs() - startedMs;
    log.info({ saleId, epoch, unitsLeft, rows, held, ordersLost, tookMs }, 'sale repaired');
    return { outcome: 'repaired', epoch, unitsLeft, rows, held, ordersLost, tookMs };
  } catch (error) {
    if (error instanceof Superseded) return { outcome: 'superseded' };
    throw error;
  }
}

/**
 * Rows first, since they decide; then what has units without one: a row that is written from here on is `failed`, or has
 * claimed its units in the new epoch, so whatever the rows do not have now may keep its place. What Redis has as ordered
 * had its row once: MySQL lost it, and the entry is the last trace of the order.
 */
async function stageRequests(
  raised: Sale,
  refs: readonly BucketRef[],
  token: string,
  { store, repository }: RepairPorts,
): Promise<RebuiltRequests> {
  const rebuilt = new RebuiltRequests(raised);
  const stage = (): Promise<void> => stageAll(store, refs, token, rebuilt.takeUnstaged());
  for await (const rows of rowsOfSale(raised, repository)) {
    rebuilt.addRows(rows);
    await stage();
  }
  // Last first: where a sale was being resharded, the last ones have what is newer.
  for (const ref of refs.toReversed()) {
    for await (const requests of store.requestsWithUnits(ref)) {
      rebuilt.addUnrecorded(requests);
      await stage();
    }
  }
  for (const batch of await repository.parkedBatchesOf(raised.saleId)) {
    if (!rebuilt.addParked(batch)) continue;
    await rememberIn(new Set([batch.bucket, ...rebuilt.homesOfHeld(batch)]), batch, token, false, store);
  }
  await stage();
  if (refs.length > 1) await carryPending(refs, rebuilt, token, store);
  return rebuilt;
}

/** Whether these buckets are on the servers that they were loaded on. Asked when they are locked: later nothing is lost. */
async function isStamped(refs: readonly BucketRef[], store: RepairStore): Promise<boolean> {
  return (await store.statusOf(refs)).every(({ sameServer }) => sameServer);
}

/**
 * A batch is in `pending` wherever it has units: so each bucket can be read by itself, and its re-drive finds what it holds.
 * Where the sale was not resharded that is so already, and nothing is written.
 */
async function carryPending(
  refs: readonly BucketRef[],
  rebuilt: RebuiltRequests,
  token: string,
  store: RepairStore,
): Promise<void> {
  for (const ref of refs) {
    const bodies = await store.pendingBodies(ref);
    if (bodies.length > 0) await stageAll(store, refs, token, []); // each of them renews its leases only
    for (const body of bodies) {
      const decoded = decodeBatch(body);
      if (decoded.outcome !== 'decoded') continue;
      const homes = rebuilt.homesOfHeld(decoded.batch);
      homes.delete(ref.bucket);
      await rememberIn(homes, decoded.batch, token, true, store);
    }
  }
}

async function rememberIn(
  buckets: ReadonlySet<number>,
  batch: Batch,
  token: string,
  isPending: boolean,
  store: RepairStore,
): Promise<void> {
  for (const bucket of buckets) {
    if ((await store.restoreMarker(batch, bucket, token, isPending)) === 'superseded') throw new Superseded();
  }
}

/** Before the old data goes: what is not staged by then is gone with it. */
function logLost({ saleId, epoch }: Sale, { ordersLost, withoutRoom }: RebuiltRequests, log: Log): void {
  if (ordersLost > 0) log.warn({ saleId, epoch, ordersLost }, 'MySQL lost orders of this sale; their units are kept');
  for (const [request, entry] of withoutRoom) {
    const lost = { saleId, request, entry: formatRequestEntry(entry) };
    log.error(lost, 'MySQL lost an order whose units are taken; this line is its last trace');
  }
}

/** Every bucket, also one that gets nothing: that renews its lease. */
async function stageAll(
  store: RepairStore,
  refs: readonly BucketRef[],
  token: string,
  entries: readonly (readonly StoredRequest[])[],
): Promise<void> {
  for (const [index, ref] of refs.entries()) {
    const word = await store.stage(ref, token, entries[index] ?? []);
    if (word === 'superseded') throw new Superseded();
  }
}

/**
 * An owner who moves the sale meanwhile is answered that it is in repair, so what they wrote in MySQL is done for them. The last
 * bucket comes first: requests that go to another bucket go to a later one, and a death in between may not forget them.
 */
async function swapAll(
  raised: Sale,
  refs: readonly BucketRef[],
  token: string,
  { unitsLeft }: RebuiltRequests,
  { store, sales }: RepairPorts,
): Promise<void> {
  const now = await sales.find(raised.saleId);
  if (now === null || now.state === 'draft' || now.epoch !== raised.epoch) throw new Superseded();
  const { state, epoch, opensAtMs, closesAtMs, limitPerBuyer, buckets } = now;
  for (const ref of refs.toReversed()) {
    const rest = unitsLeft[ref.bucket] ?? 0;
    const rebuilt = { unitsLeft: rest, state, epoch, opensAtMs, closesAtMs, limitPerBuyer, buckets };
    const word = await store.swap(ref, token, rebuilt);
    switch (word) {
      case 'swapped':
        break;
      case 'superseded':
        throw new Superseded();
      default:
        assertNever(word);
    }
  }
  const after = await sales.find(raised.saleId);
  if (after === null || after.state === state || after.state === 'draft') return;
  await store.setState(after, after.state);
}
