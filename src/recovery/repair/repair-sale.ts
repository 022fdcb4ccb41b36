import { randomBytes } from 'node:crypto';
import { batchIn, type Batch } from '../../core/batch.js';
import { assertNever } from '../../core/errors.js';
import { formatRequestEntry } from '../../core/outcome.js';
import type { Sale } from '../../core/sale.js';
import type { WorkerProgress } from '../../core/ports/channels.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import type { SaleRows } from '../../core/ports/reconcile-repository.js';
import type { StoredRequest } from '../../core/ports/reconcile-store.js';
import type { RepairRepository, RepairStore } from '../../core/ports/repair-stores.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import type { SaleStore } from '../../core/ports/stock-store.js';
import { type BucketRef, bucketRefsOf } from '../../core/bucket.js';
import { retried, rowsOfSale } from '../rows-of-sale.js';
import { awaitQuiet, whyBusySale } from './await-quiet.js';
import { RebuiltRequests } from './rebuilt-requests.js';

export interface RepairPorts {
  readonly repairs: RepairStore;
  readonly setState: SaleStore['setState'];
  readonly repository: RepairRepository & SaleRows;
  readonly sales: SaleRepository;
  /** Null if the broker cannot be asked. */
  readonly progress: WorkerProgress | null;
  readonly clock: Clock;
  readonly log: Log;
}

export interface RepairOptions {
  /** The workers count as finished when they have written no order of the sale for this long, as in `awaitQuiet`. */
  readonly quietMs: number;
  readonly waitMaxMs: number;
  /** Lease of a repair, ms, renewed by a timer and every command. When it ends, another repair can take over. */
  readonly leaseMs: number;
}

export interface RepairOrder {
  /** The actor, for the audit log. */
  readonly actor: string;
  /** Epochs of the buckets when the need was seen. If absent, the sale is repaired in any case. */
  readonly seenEpochs?: readonly number[];
  /** Number of buckets that the sale is to have, a multiple of its current number. If absent, the number stays. */
  readonly buckets?: number;
  readonly onStep?: (step: RepairStep) => void;
}

/** The step just completed. */
export type RepairStep =
  | { readonly step: 'locked' | 'quiet' }
  | { readonly step: 'epoch'; readonly epoch: number }
  | { readonly step: 'staged'; readonly rows: number; readonly held: number; readonly ordersLost: number };

/**
 * - `repaired`: the sale is rebuilt, in the state that MySQL has
 * - `busy`: another repair is under way
 * - `superseded`: another repair took over, or Redis restarted again; later steps of this repair were not done
 * - `not_found`: no such sale; `draft`: never loaded; `retired`: only in MySQL for good
 */
export type SaleRepair =
  | {
      readonly outcome: 'repaired';
      readonly epoch: number;
      readonly unitsLeft: number;
      /** Number of requests that have a row. */
      readonly rows: number;
      /** Number of requests without a row, held for their batch. */
      readonly held: number;
      /** Requests ordered in Redis without a row. They keep entry and units until an operator decides. */
      readonly ordersLost: number;
      readonly tookMs: number;
    }
  | { readonly outcome: 'busy' | 'superseded' | 'not_found' | 'draft' | 'retired' };

/** Thrown when another repair has locked the bucket, so this one must stop. */
class Superseded extends Error {}

/**
 * Rebuilds the data of one sale in Redis from MySQL, and from the data in Redis that is not in MySQL yet. During the
 * repair the sale is locked: no purchase is accepted, and `markRecorded` and releases are retried later. If this
 * process dies, the sale stays locked until the next repair, which starts from the beginning. Late commands of this
 * repair then have no effect. Source: protocol rule 12
 * @throws OperationalError; the sale stays locked until the next repair
 */
export async function repairSale(
  sale: Sale,
  ports: RepairPorts,
  options: RepairOptions,
  { actor, seenEpochs, buckets = sale.buckets, onStep = () => undefined }: RepairOrder,
): Promise<SaleRepair> {
  if (sale.state === 'draft') return { outcome: 'draft' };
  if (sale.retiredAtMs !== null) return { outcome: 'retired' };
  const { repairs, repository, sales, clock, log } = ports;
  const { saleId } = sale;
  const startedMs = clock.monotonicMs();
  const reshard = buckets === sale.buckets ? undefined : { from: sale.buckets, to: buckets };
  const refs = bucketRefsOf({ ...sale, buckets });
  const token = randomBytes(12).toString('hex');
  const leases = new Leases(refs, token, options.leaseMs, ports);
  try {
    // Bucket 0 is locked first and swapped last, so a second repair fails there before it has locked anything.
    for (const some of [refs.slice(0, 1), refs.slice(1)]) {
      const lock = (ref: BucketRef) => repairs.lock(ref, token, options.leaseMs, seenEpochs?.[ref.bucket]);
      const words = await Promise.all(some.map(lock));
      if (words.includes('busy')) return { outcome: 'busy' };
      if (words.includes('moved')) throw new Superseded();
    }
    onStep({ step: 'locked' });
    void leases.keep();
    // A reshard without lost data need not wait: batches that are not written yet are held and carried over.
    const isWhole = reshard !== undefined && (await isStamped(refs.slice(0, sale.buckets), repairs));
    const findSale = (id: string): Promise<Sale | null> => sales.find(id);
    const whyBusy = (): Promise<string | null> => whyBusySale(sale, refs, ports);
    if (!isWhole) await awaitQuiet(sale, { ...ports, findSale, whyBusy }, options, leases.check);
    await leases.renew();
    onStep({ step: 'quiet' });

    const epochs = (await repairs.statusOf(refs)).map(({ epoch }) => epoch);
    const raised = await repository.raiseEpoch(saleId, Math.max(...epochs) + 1, actor, reshard);
    if (raised === null && reshard === undefined) return { outcome: 'not_found' };
    // The sale was resharded in between, so this repair has not locked all buckets.
    if (raised?.buckets !== buckets) throw new Superseded();
    const { epoch } = raised;
    onStep({ step: 'epoch', epoch });

    const rebuilt = await stageRequests(raised, refs, token, leases, ports);
    const { rows, held, ordersLost } = rebuilt;
    onStep({ step: 'staged', rows, held, ordersLost });
    logLost(raised, rebuilt, log);
    await swapAll(raised, refs, token, rebuilt, ports);

    const unitsLeft = rebuilt.unitsLeft.reduce((sum, units) => sum + units, 0);
    const tookMs = clock.monotonicMs() - startedMs;
    log.info({ saleId, epoch, unitsLeft, rows, held, ordersLost, tookMs }, 'sale repaired');
    return { outcome: 'repaired', epoch, unitsLeft, rows, held, ordersLost, tookMs };
  } catch (error) {
    if (error instanceof Superseded) return { outcome: 'superseded' };
    throw error;
  } finally {
    leases.end();
  }
}

/** The leases of a repair. A timer renews them: reading a large sale, or retrying in a failover, takes longer. */
class Leases {
  readonly #end = new AbortController();
  readonly #refs: readonly BucketRef[];
  readonly #token: string;
  readonly #leaseMs: number;
  readonly #repairs: RepairStore;
  readonly #clock: Clock;
  #superseded = false;

  constructor(refs: readonly BucketRef[], token: string, leaseMs: number, { repairs, clock }: RepairPorts) {
    this.#refs = refs;
    this.#token = token;
    this.#leaseMs = leaseMs;
    this.#repairs = repairs;
    this.#clock = clock;
  }

  /** @throws Superseded; OperationalError redis */
  async renew(): Promise<void> {
    const words = await Promise.all(this.#refs.map((ref) => this.#repairs.stage(ref, this.#token, [])));
    if (words.includes('superseded')) throw new Superseded();
  }

  /** @throws Superseded if the timer has noticed that another repair took over; every command notices it too */
  readonly check = async (): Promise<void> => {
    if (this.#superseded) throw new Superseded();
  };

  /** Renews until `end`. Never rejects: it retries, and the next command reports the fault of Redis. */
  async keep(): Promise<void> {
    const { signal } = this.#end;
    while (!this.#superseded) {
      await this.#clock.sleep(this.#leaseMs / 3, signal);
      if (signal.aborted) return;
      try {
        await this.renew();
      } catch (error) {
        this.#superseded = error instanceof Superseded;
      }
    }
  }

  end(): void {
    this.#end.abort();
  }
}

/**
 * Stages rows first, because they decide, then requests that have units but no row. Any row written from now on is
 * `failed` or has reacquired its units in the new epoch, so a request without a row may keep its units. A request that
 * is ordered in Redis once had a row. If MySQL lost it, the entry is the last trace of the order.
 */
async function stageRequests(
  raised: Sale,
  refs: readonly BucketRef[],
  token: string,
  leases: Leases,
  ports: RepairPorts,
): Promise<RebuiltRequests> {
  const { repairs, repository } = ports;
  const rebuilt = new RebuiltRequests(raised);
  const stage = (): Promise<void> => stageAll(ports, refs, token, rebuilt.takeUnstaged());
  let staging = Promise.resolve();
  for await (const rows of rowsOfSale(raised, ports)) {
    rebuilt.addRows(rows);
    await leases.check();
    await staging;
    staging = stage(); // Redis stages these rows while MySQL sends the next ones
    staging.catch(() => undefined); // awaited later, unless something else fails first
  }
  await staging;
  // Last bucket first, because after an unfinished reshard the last buckets have the newer data.
  for (const ref of refs.toReversed()) {
    for await (const requests of repairs.requestsWithUnits(ref)) {
      rebuilt.addUnrecorded(requests);
      await stage();
    }
  }
  for (const batch of await repository.parkedBatchesOf(raised.saleId)) {
    if (!rebuilt.addParked(batch)) continue;
    await restoreMarkers(new Set([batch.bucket, ...rebuilt.homesOfHeld(batch)]), batch, token, false, repairs);
  }
  await stage();
  if (refs.length > 1) await carryPending(refs, rebuilt, token, repairs);
  return rebuilt;
}

/** Whether the buckets are on the servers that loaded them. Checked once they are locked: then nothing can be lost. */
async function isStamped(refs: readonly BucketRef[], repairs: RepairStore): Promise<boolean> {
  return (await repairs.statusOf(refs)).every(({ sameServer }) => sameServer);
}

/** Number of batches per step. Each is a few kB, in each of its buckets. */
const BATCHES_AT_ONCE = 16;

/**
 * Puts each batch into `pending` of every bucket that has units of it, so each bucket can be judged alone and the
 * re-drive finds its batches. Without a reshard, they are already there.
 */
async function carryPending(
  refs: readonly BucketRef[],
  rebuilt: RebuiltRequests,
  token: string,
  repairs: RepairStore,
): Promise<void> {
  /** Batches carried into a later bucket, where this loop finds them again. */
  const carried = new Set<string>();
  const carry = async (body: string, from: number): Promise<void> => {
    const batch = batchIn(body);
    if (batch === null || carried.has(batch.batchId)) return;
    carried.add(batch.batchId);
    const homes = rebuilt.homesOfHeld(batch);
    homes.delete(from);
    await restoreMarkers(homes, batch, token, true, repairs);
  };
  for (const ref of refs) {
    const bodies = await repairs.pendingBodies(ref);
    // Under load, dozens of batches with buyers of every bucket are on their way, while the sale is locked.
    for (let at = 0; at < bodies.length; at += BATCHES_AT_ONCE) {
      await Promise.all(bodies.slice(at, at + BATCHES_AT_ONCE).map((body) => carry(body, ref.bucket)));
    }
  }
}

async function restoreMarkers(
  buckets: ReadonlySet<number>,
  batch: Batch,
  token: string,
  isPending: boolean,
  repairs: RepairStore,
): Promise<void> {
  const restore = (bucket: number) => repairs.restoreMarker(batch, bucket, token, isPending);
  if ((await Promise.all([...buckets].map(restore))).includes('superseded')) throw new Superseded();
}

/** Called before the old data is removed: data that was not staged is lost with it. */
function logLost({ saleId, epoch }: Sale, { ordersLost, withoutRoom }: RebuiltRequests, log: Log): void {
  if (ordersLost > 0) log.warn({ saleId, epoch, ordersLost }, 'MySQL lost orders of this sale; their units are kept');
  for (const [request, entry] of withoutRoom) {
    const lost = { saleId, request, entry: formatRequestEntry(entry) };
    log.error(lost, 'MySQL lost an order, and this log line is the only record of it; its units stay taken');
  }
}

/** Staging twice changes nothing, so the call is repeated if Redis hangs. */
async function stageAll(
  { repairs, clock }: RepairPorts,
  refs: readonly BucketRef[],
  token: string,
  entries: readonly (readonly StoredRequest[])[],
): Promise<void> {
  const staging = entries.flatMap((some, index) =>
    some.length === 0 ? [] : [retried(() => repairs.stage(refs[index] as BucketRef, token, some), clock)],
  );
  if ((await Promise.all(staging)).includes('superseded')) throw new Superseded();
}

/**
 * Swaps all buckets to the new data, with the state of the sale: if an operator moved it during the repair, only MySQL
 * has the new state. The last bucket comes first: a reshard moves requests only to later buckets, and they must not be
 * lost if the process dies in between.
 */
async function swapAll(
  raised: Sale,
  refs: readonly BucketRef[],
  token: string,
  { unitsLeft }: RebuiltRequests,
  { repairs, setState, sales }: RepairPorts,
): Promise<void> {
  const now = await sales.find(raised.saleId);
  if (now === null || now.state === 'draft' || now.epoch !== raised.epoch) throw new Superseded();
  const { state, epoch, opensAtMs, closesAtMs, limitPerBuyer, buckets } = now;
  for (const ref of refs.toReversed()) {
    const rest = unitsLeft[ref.bucket] ?? 0;
    const rebuilt = { unitsLeft: rest, state, epoch, opensAtMs, closesAtMs, limitPerBuyer, buckets };
    const word = await repairs.swap(ref, token, rebuilt);
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
  await setState(after, after.state);
}
