import { bucketRefsOf } from '../../core/bucket.js';
import { BucketFaults } from '../../core/bucket-faults.js';
import { OperationalError } from '../../core/errors.js';
import type { Job } from '../../core/job.js';
import type { Clock } from '../../core/ports/clock.js';
import type { RepairStore } from '../../core/ports/repair-stores.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import { type RepairNeed, repairNeedOf } from '../../core/sale-repair.js';
import { LIVE_STATES, type Sale } from '../../core/sale.js';
import type { RecoveryMetrics } from '../metrics.js';
import { type RepairOptions, type RepairOrder, type RepairPorts, repairSale, type SaleRepair } from './repair-sale.js';
import { statusOfSales } from './sale-status.js';

/** Where sales that need a repair are found. */
interface SalesAndBuckets {
  readonly sales: SaleRepository;
  readonly repairs: RepairStore;
}

interface SaleInNeed {
  readonly sale: Sale;
  readonly need: RepairNeed;
  /** The epoch of each bucket when the need was seen. */
  readonly seenEpochs: readonly number[];
}

/** Maximum number of sales per query. Closed sales that closed last come first. */
const SALES_MAX = 10_000;

/**
 * Finds warm, open and paused sales that need a repair.
 * @param faults collects faults of silent buckets; the need of their sales is unknown
 * @throws OperationalError
 */
async function liveInNeed({ sales, repairs }: SalesAndBuckets, faults: BucketFaults): Promise<SaleInNeed[]> {
  return inNeed(await sales.list({ states: LIVE_STATES, max: SALES_MAX }), repairs, faults);
}

/**
 * Finds closed sales, last closed first, whose repair has begun and whose process has died: nothing of them is recorded
 * or released. Other closed sales wait for a request, because all data that Redis may have lost is in MySQL.
 * @throws OperationalError
 */
async function closedInNeed({ sales, repairs }: SalesAndBuckets, faults: BucketFaults): Promise<SaleInNeed[]> {
  const closed = await sales.list({ states: ['closed'], retired: false, max: SALES_MAX, order: 'closed_last' });
  return (await inNeed(closed, repairs, faults)).filter(({ need }) => need === 'in_repair' || need === 'old_epoch');
}

/** Finds closed sales that need a repair that was requested. @throws OperationalError */
async function askedInNeed(
  { sales, repairs }: SalesAndBuckets,
  max: number,
  faults: BucketFaults,
): Promise<SaleInNeed[]> {
  const found: SaleInNeed[] = [];
  for (const saleId of await repairs.asked(max)) {
    const sale = await sales.find(saleId);
    const ofSale = new BucketFaults();
    const [need] = sale?.state === 'closed' ? await inNeed([sale], repairs, ofSale) : [];
    if (need !== undefined) found.push(need);
    else if (ofSale.isEmpty) await repairs.answered(saleId);
    else faults.addAll(ofSale);
  }
  return found;
}

/** @throws OperationalError */
async function isInNeed(saleId: string, { sales, repairs }: SalesAndBuckets, faults: BucketFaults): Promise<boolean> {
  const sale = await sales.find(saleId);
  return sale !== null && (await inNeed([sale], repairs, faults)).length > 0;
}

async function inNeed(sales: readonly Sale[], repairs: RepairStore, faults: BucketFaults): Promise<SaleInNeed[]> {
  const found: SaleInNeed[] = [];
  for (const { sale, buckets } of await statusOfSales(sales, repairs, faults)) {
    if (buckets.length < sale.buckets) continue;
    const need = repairNeedOf(sale, buckets);
    if (need !== null) found.push({ sale, need, seenEpochs: buckets.map(({ epoch }) => epoch) });
  }
  return found;
}

/** `not_needed` means that every bucket can be trusted and `force` was not set; nothing was changed. */
export type OrderedRepair = SaleRepair | { readonly outcome: 'not_needed' };

/** Repairs a sale for an operator. If only `force` asks for it, only the epoch changes. @throws OperationalError */
export async function repairAsked(
  saleId: string,
  force: boolean,
  ports: RepairPorts,
  options: RepairOptions,
  order: RepairOrder,
): Promise<OrderedRepair> {
  const sale = await ports.sales.find(saleId);
  if (sale === null) return { outcome: 'not_found' };
  if (!force && sale.state !== 'draft' && sale.retiredAtMs === null) {
    const statuses = await ports.repairs.statusOf(bucketRefsOf(sale));
    if (repairNeedOf(sale, statuses) === null) return { outcome: 'not_needed' };
    return repairSale(sale, ports, options, { ...order, seenEpochs: statuses.map(({ epoch }) => epoch) });
  }
  return repairSale(sale, ports, options, order);
}

export interface RepairJobPorts extends RepairPorts {
  readonly metrics: RecoveryMetrics;
}

const ACTOR = 'keeper';
/** A repair mostly waits for the workers. After a restart of Redis, a hundred sales must not wait for each other. */
const REPAIRS_AT_ONCE = 24;

/** Interval between checks for further sales while repairs are under way. */
export const LOOK_EVERY_MS = 1000;

/**
 * Repairs live sales, newest first. A run ends with its last repair. Until then it takes up further sales, so a short
 * repair does not wait for a long one. A sale that is not in Redis must be missing twice in a row, because `warm` may
 * be under way.
 */
export function repairSales(ports: RepairJobPorts, options: RepairOptions): Job {
  const turns = new Turns();
  const underWay = new Map<string, Promise<void>>();
  let missed = new Set<string>();
  let errors: unknown[] = [];

  const begin = (one: SaleInNeed): void => {
    const { saleId } = one.sale;
    const ended = tryRepair(one, ports, options)
      .catch((error: unknown) => error)
      .then((error) => {
        if (error !== null) errors.push(error);
        underWay.delete(saleId);
      });
    underWay.set(saleId, ended);
  };
  const look = async (faults: BucketFaults): Promise<void> => {
    const found = (await liveInNeed(ports, faults)).filter(({ sale }) => !underWay.has(sale.saleId));
    const before = missed;
    missed = new Set(found.filter(({ need }) => need === 'not_loaded').map(({ sale }) => sale.saleId));
    const due = found.filter(({ sale, need }) => need !== 'not_loaded' || before.has(sale.saleId));
    turns.next(due, REPAIRS_AT_ONCE - underWay.size).forEach(begin);
  };

  return {
    name: 'repair-sales',
    async runOnce(): Promise<void> {
      const faults = new BucketFaults();
      errors = [];
      do {
        // if a check fails, it is retried during the repairs: other sales must not wait for the longest one
        await look(faults).catch((error: unknown) => void errors.push(error));
      } while (await isAnyLeft(underWay, ports.clock));
      if (errors.length > 0) throw errors[0];
      faults.throwIfAny();
    },
  };
}

/** Waits until all repairs have ended, or until the next check. @returns whether repairs are still under way */
async function isAnyLeft(underWay: ReadonlyMap<string, Promise<void>>, clock: Clock): Promise<boolean> {
  if (underWay.size === 0) return false;
  const pause = new AbortController();
  await Promise.race([Promise.all(underWay.values()), clock.sleep(LOOK_EVERY_MS, pause.signal)]);
  pause.abort();
  return underWay.size > 0;
}

/** Pause between two checks. There may be thousands of closed sales that are not retired. */
const CLOSED_CHECK_EVERY_MS = 30_000;

/** Repairs closed sales on request, and one sale per run whose repair died. */
export function repairClosedSales(ports: RepairJobPorts, options: RepairOptions): Job {
  let waiting: SaleInNeed[] = [];
  let checkedAtMs = -Infinity;
  return {
    name: 'repair-closed-sales',
    async runOnce(): Promise<void> {
      const nowMs = ports.clock.monotonicMs();
      const faults = new BucketFaults();
      if (nowMs - checkedAtMs >= CLOSED_CHECK_EVERY_MS) {
        waiting = await closedInNeed(ports, faults);
        checkedAtMs = nowMs;
      }
      // the requests are on one server; if it is down, repairs that died are still taken up
      const due = await askedInNeed(ports, REPAIRS_AT_ONCE, faults).catch((error: unknown): SaleInNeed[] => {
        faults.add(error);
        return [];
      });
      const next = waiting.shift();
      // otherwise another keeper was faster, or a repair was requested
      if (next !== undefined && !due.some(({ sale }) => sale.saleId === next.sale.saleId)) {
        if (await isInNeed(next.sale.saleId, ports, faults)) due.push(next);
      }
      const errors = await Promise.all(due.map((one) => tryRepair(one, ports, options)));
      const failure = errors.find((error) => error !== null);
      if (failure) throw failure;
      faults.throwIfAny();
    },
  };
}

/** Lets sales take turns, so that a sale that cannot be repaired does not block the repair of others. */
class Turns {
  readonly #had = new Set<string>();

  next(due: readonly SaleInNeed[], max: number): SaleInNeed[] {
    const waiting = due.filter(({ sale }) => !this.#had.has(sale.saleId));
    if (waiting.length === 0) this.#had.clear();
    const next = (waiting.length === 0 ? due : waiting).slice(0, max);
    for (const { sale } of next) this.#had.add(sale.saleId);
    return next;
  }
}

async function tryRepair(
  { sale, seenEpochs }: SaleInNeed,
  ports: RepairJobPorts,
  options: RepairOptions,
): Promise<OperationalError | null> {
  const { metrics, clock, log } = ports;
  const { saleId } = sale;
  const startedMs = clock.monotonicMs();
  try {
    const { outcome } = await repairSale(sale, ports, options, { actor: ACTOR, seenEpochs });
    if (outcome === 'repaired' || outcome === 'busy' || outcome === 'superseded') {
      metrics.repairTried(outcome, clock.monotonicMs() - startedMs);
    }
    return null;
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    metrics.repairTried('failed', clock.monotonicMs() - startedMs);
    // at debug, because the job fails too, and logs one line for the whole outage
    log.debug({ saleId, error: error.message }, 'a sale was not repaired, because a server failed; it stays locked');
    return error;
  }
}

/** Publishes how many sales wait for a repair, and which live sales wait too long. Works even if a repair hangs. */
export function watchSalesInRepair(
  { clock, metrics, ...ports }: SalesAndBuckets & { readonly clock: Clock; readonly metrics: RecoveryMetrics },
  { afterMs }: { readonly afterMs: number },
): Job {
  /** saleId → when the need was first seen. */
  let since = new Map<string, number>();
  let closed = 0;
  let checkedAtMs = -Infinity;
  return {
    name: 'watch-sales-in-repair',
    async runOnce(): Promise<'idle' | void> {
      const nowMs = clock.monotonicMs();
      const faults = new BucketFaults();
      const live = await liveInNeed(ports, faults);
      since = new Map(live.map(({ sale: { saleId } }) => [saleId, since.get(saleId) ?? nowMs]));
      const late = [...since.values()].map((atMs) => nowMs - atMs - afterMs).filter((lateMs) => lateMs > 0);
      metrics.overdue('sale_locked', late.length, Math.max(0, ...late));
      if (nowMs - checkedAtMs >= CLOSED_CHECK_EVERY_MS) {
        closed = (await closedInNeed(ports, faults)).length;
        checkedAtMs = nowMs;
      }
      metrics.salesInRepair(live.length, closed);
      faults.throwIfAny();
      if (live.length + closed === 0) return 'idle';
    },
  };
}
