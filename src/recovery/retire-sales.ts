import { bucketRefsOf } from '../core/bucket.js';
import { BucketFaults } from '../core/bucket-faults.js';
import { OperationalError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import { purchaseKey, splitPurchaseKey } from '../core/purchase.js';
import type { Sale } from '../core/sale.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { CompensationRepository } from '../core/ports/compensation-repository.js';
import type { Log } from '../core/ports/log.js';
import type { RunOutcome } from '../core/ports/reconcile-runs.js';
import type { RepairRepository } from '../core/ports/repair-stores.js';
import type { RetirementRepository } from '../core/ports/sale-repository.js';
import type { SaleStore } from '../core/ports/stock-store.js';
import type { RecoveryMetrics } from './metrics.js';
import { repairNeedIn } from './repair/sale-status.js';
import { type BothSides, removeStaleMarkers } from './stale-markers.js';

/** Access to both sides of ended sales, and to everything that may keep such a sale. */
export interface RetirePorts extends BothSides {
  readonly sales: RetirementRepository;
  readonly batches: BatchStore;
  readonly parkedBatchesOf: RepairRepository['parkedBatchesOf'];
  readonly reconcile: {
    readonly jobs: CompensationRepository['list'];
    /** Compares Redis and MySQL. `none`: another process compares this sale. */
    readonly compareEnded: (
      saleId: string,
    ) => Promise<{ readonly outcome: RunOutcome; readonly hasStaleMarkers: boolean }>;
  };
  readonly log: Log;
  readonly metrics: RecoveryMetrics;
}

/**
 * The first reason to keep a sale.
 * - `pending`: a batch is deducted but not marked as recorded
 * - `parked`: a dead letter waits for an operator
 * - `outbox`: an outbox row of its orders is not done
 * - `compensation`: a repair of one of its findings is not done
 * - `in_repair`: it is being rebuilt
 * - `differs`: Redis and MySQL do not agree, or were not compared completely
 * - `only_in_redis`: Redis may have lost data of it, and has a request without a row in MySQL
 */
type KeptReason = 'pending' | 'parked' | 'outbox' | 'compensation' | 'in_repair' | 'differs' | 'only_in_redis';

const ACTOR = 'keeper';
/** Maximum number of due sales that a run reads. Kept sales are counted too, so they may make other sales wait. */
const DUE_MAX = 10_000;
/** Maximum number of sales per run. Each comparison reads all orders. */
const TRIED_MAX = 50;
const TRY_AGAIN_MS = 10 * 60_000;
/** Pause if the Redis server of a sale did not answer. Sales on other servers come first. */
const UNREADABLE_AGAIN_MS = 60_000;
const REQUESTS_PER_READ = 500;

/**
 * Retires sales that have been over for long: from then on, every program reads them only from MySQL, and Redis may
 * forget them. A sale is kept unless MySQL has everything that Redis knows.
 * @param afterMs how long after its end a sale is retired
 * @param markerAgeMs age after which no check-back needs a marker
 */
export function retireSales(
  ports: RetirePorts,
  { afterMs, markerAgeMs }: { readonly afterMs: number; readonly markerAgeMs: number },
): Job {
  const { sales, clock, log, metrics } = ports;
  /** saleId → why it was kept (null: could not be read), and when it is tried again. */
  let kept = new Map<string, { readonly why: KeptReason | null; readonly dueMs: number }>();
  return {
    name: 'retire-sales',
    async runOnce(): Promise<'idle' | void> {
      const due = await sales.due(afterMs, DUE_MAX);
      if (due.length === 0) return 'idle';
      kept = new Map(due.flatMap(({ saleId }) => [[saleId, kept.get(saleId)] as const]).filter(isKnown));
      const ready = due.filter(({ saleId }) => (kept.get(saleId)?.dueMs ?? -Infinity) <= clock.monotonicMs());
      let failure: OperationalError | null = null;
      for (const sale of ready.slice(0, TRIED_MAX)) {
        const { saleId } = sale;
        try {
          const why = await reasonToKeep(sale, ports, markerAgeMs);
          if (why === 'being_compared') continue; // another run is comparing it; the next run tries again
          if (why === null) {
            // False if another keeper was faster, or the sale has been rebuilt since it was read
            if (await sales.retire(sale, ACTOR)) metrics.saleRetired();
            continue;
          }
          if (kept.get(saleId)?.why !== why) log.warn({ saleId, why }, 'a sale that ended long ago cannot be retired');
          kept.set(saleId, { why, dueMs: clock.monotonicMs() + TRY_AGAIN_MS });
        } catch (error) {
          if (!(error instanceof OperationalError)) throw error;
          failure ??= error; // a bucket that does not answer must not block the other sales
          kept.set(saleId, { why: null, dueMs: clock.monotonicMs() + UNREADABLE_AGAIN_MS });
        }
      }
      if (failure !== null) throw failure;
    },
  };
}

const isKnown = <T>(entry: readonly [string, T | undefined]): entry is readonly [string, T] => entry[1] !== undefined;

async function reasonToKeep(
  sale: Sale,
  ports: RetirePorts,
  markerAgeMs: number,
): Promise<KeptReason | 'being_compared' | null> {
  const { batches, repairs, repository, parkedBatchesOf, reconcile } = ports;
  const { saleId } = sale;
  const pending = await batches.withPending(bucketRefsOf(sale));
  if (pending.refs.length > 0) return 'pending';
  for (const fault of pending.faults) throw fault;
  if ((await parkedBatchesOf(saleId)).length > 0) return 'parked';
  if ((await repository.stuckRows(saleId, { olderThanMs: 0, attemptsMin: 0 }, 1)).length > 0) return 'outbox';
  if ((await reconcile.jobs({ saleId, state: 'pending' }, { max: 1 })).length > 0) return 'compensation';

  switch (await repairNeedIn(sale, repairs)) {
    case 'in_repair':
    case 'old_epoch':
      return 'in_repair';
    case 'not_loaded':
    case 'other_server':
      // The sale is not rebuilt only to be forgotten: MySQL has everything that Redis lost, and the rest is compared.
      if (await hasMoreThanRows(sale, ports)) {
        await repairs.askForRepair(saleId); // after the repair, reconcile can judge it
        return 'only_in_redis';
      }
      await removeStaleMarkers(sale, ports, markerAgeMs);
      return null;
    case null: {
      let compared = await reconcile.compareEnded(saleId);
      if (compared.outcome === 'match' && compared.hasStaleMarkers) {
        await removeStaleMarkers(sale, ports, markerAgeMs);
        compared = await reconcile.compareEnded(saleId); // nothing may have changed while they were removed
      }
      // If another run is comparing the sale, nothing is known about it yet; that run will end within seconds.
      return compared.outcome === 'match' ? null : compared.outcome === 'none' ? 'being_compared' : 'differs';
    }
  }
}

/** Whether Redis has a request without a row in MySQL. */
async function hasMoreThanRows(sale: Sale, { store, repository }: RetirePorts): Promise<boolean> {
  for (const ref of bucketRefsOf(sale)) {
    for await (const page of store.requests(ref)) {
      const keys = [...new Set(page.map(([key]) => key))];
      for (let start = 0; start < keys.length; start += REQUESTS_PER_READ) {
        const some = keys.slice(start, start + REQUESTS_PER_READ);
        const rows = new Set((await repository.rowsOf(sale.saleId, some.map(splitPurchaseKey))).map(purchaseKey));
        if (some.some((key) => !rows.has(key))) return true;
      }
    }
  }
  return false;
}

/** How long an api may keep a sale snapshot in memory. */
const FORGET_AFTER_MS = 60_000;
const FORGOTTEN_PER_RUN = 100;

/**
 * Removes retired sales from Redis once no program can use an older snapshot of them. The next run removes what is
 * left.
 * @param options `snapshotMs`: how long apis share a snapshot
 */
export function forgetRetiredSales(
  { sales, store }: { readonly sales: RetirementRepository; readonly store: SaleStore },
  { snapshotMs }: { readonly snapshotMs: number },
): Job {
  return {
    name: 'forget-retired-sales',
    async runOnce(): Promise<'idle' | void> {
      const faults = new BucketFaults();
      const forget = async (sale: Sale): Promise<void> => {
        await store.forget(sale);
        await sales.forgotten(sale.saleId);
      };
      const retired = await sales.toForget(FORGET_AFTER_MS + snapshotMs, FORGOTTEN_PER_RUN);
      if (retired.length === 0) return 'idle';
      await faults.forEach(retired, forget, 1);
      faults.throwIfAny();
    },
  };
}
