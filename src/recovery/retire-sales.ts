import { bucketRefsOf } from '../core/bucket.js';
import { BucketFaults } from '../core/bucket-faults.js';
import { OperationalError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import { purchaseKey, splitPurchaseKey } from '../core/purchase.js';
import { repairNeedOf } from '../core/sale-repair.js';
import type { Sale } from '../core/sale.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { ReconcileRepository } from '../core/ports/reconcile-repository.js';
import type { ReconcileStore } from '../core/ports/reconcile-store.js';
import type { RepairRepository, RepairStore } from '../core/ports/repair-stores.js';
import type { RetirementRepository } from '../core/ports/sale-repository.js';
import type { SaleStore } from '../core/ports/stock-store.js';
import type { RecoveryMetrics } from './metrics.js';
import { removeStaleMarkers } from './reconcile/count-units.js';
import type { RowPorts } from './rows-of-sale.js';
import type { ReconcileAdmin, ReconcileResult } from './reconcile/reconcile-admin.js';

export interface RetirePorts {
  readonly sales: Pick<RetirementRepository, 'due' | 'retire'>;
  readonly store: Pick<BatchStore, 'withPending'> &
    Pick<RepairStore, 'statusOf' | 'askForRepair'> &
    Pick<ReconcileStore, 'requests' | 'recordedMarkers' | 'removeMarkers'>;
  readonly repository: Pick<ReconcileRepository, 'rowsOf' | 'stuckRows'> &
    RowPorts['repository'] &
    Pick<RepairRepository, 'parkedBatchesOf'>;
  readonly reconcile: Pick<ReconcileAdmin, 'run' | 'jobs'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RecoveryMetrics;
}

export interface RetireOptions {
  /** A sale that has been over for so long is retired, ms. */
  readonly afterMs: number;
  /** Markers that are older are no longer asked for, ms. */
  readonly markerAgeMs: number;
}

/**
 * Why a sale is kept, the first reason that holds.
 * - `pending`: a batch is deducted and not marked as recorded
 * - `parked`: a dead letter waits for a person
 * - `outbox`: something that must follow from its rows is not done
 * - `compensation`: a repair of one of its findings is not done
 * - `in_repair`: it is being rebuilt
 * - `differs`: Redis and MySQL do not agree, or were not compared whole
 * - `only_in_redis`: Redis may have lost data of it, and has a request that MySQL has no row of
 */
type KeptReason = 'pending' | 'parked' | 'outbox' | 'compensation' | 'in_repair' | 'differs' | 'only_in_redis';

const ACTOR = 'keeper';
/** Sales that are due and may be kept; the others wait for these. */
const DUE_MAX = 10_000;
/** Sales of one run; the comparison of each reads all its orders. */
const TRIED_MAX = 50;
/** A sale that was kept is looked at again after so long. */
const TRY_AGAIN_MS = 10 * 60_000;
/** One whose Redis did not answer, after so long: those of another server come first. */
const UNREADABLE_AGAIN_MS = 60_000;
/** Requests whose rows one statement looks up. */
const REQUESTS_PER_READ = 500;

/**
 * Retires sales that have been over for long: from then on every program reads them from MySQL alone, and Redis may
 * forget them. Only a sale of which Redis knows nothing that MySQL does not have is retired; any other one is kept.
 */
export function retireSales(ports: RetirePorts, options: RetireOptions): Job {
  const { sales, clock, log, metrics } = ports;
  /** saleId → why it was kept (null: it could not be read), and when it is tried again. */
  let kept = new Map<string, { readonly why: KeptReason | null; readonly dueMs: number }>();
  return {
    name: 'retire-sales',
    async runOnce(): Promise<'idle' | void> {
      const due = await sales.due(options.afterMs, DUE_MAX);
      if (due.length === 0) return 'idle';
      kept = new Map(due.flatMap(({ saleId }) => [[saleId, kept.get(saleId)] as const]).filter(isKnown));
      const ready = due.filter(({ saleId }) => (kept.get(saleId)?.dueMs ?? -Infinity) <= clock.monotonicMs());
      let failure: OperationalError | null = null;
      for (const sale of ready.slice(0, TRIED_MAX)) {
        const { saleId } = sale;
        try {
          const why = await reasonToKeep(sale, ports, options);
          if (why === 'being_compared') continue; // by another run: tried again in the next one
          if (why === null) {
            // False: another keeper was faster, or the sale was rebuilt since it was read
            if (await sales.retire(sale, ACTOR)) metrics.saleRetired();
            continue;
          }
          if (kept.get(saleId)?.why !== why) log.warn({ saleId, why }, 'a sale that is long over cannot be retired');
          kept.set(saleId, { why, dueMs: clock.monotonicMs() + TRY_AGAIN_MS });
        } catch (error) {
          if (!(error instanceof OperationalError)) throw error;
          failure ??= error; // one bucket that does not answer must not keep the other sales
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
  { markerAgeMs }: RetireOptions,
): Promise<KeptReason | 'being_compared' | null> {
  const { store, repository, reconcile } = ports;
  const { saleId } = sale;
  const refs = bucketRefsOf(sale);
  const pending = await store.withPending(refs);
  if (pending.refs.length > 0) return 'pending';
  for (const fault of pending.faults) throw fault;
  if ((await repository.parkedBatchesOf(saleId)).length > 0) return 'parked';
  if ((await repository.stuckRows(saleId, { olderThanMs: 0, attemptsMin: 0 }, 1)).length > 0) return 'outbox';
  if ((await reconcile.jobs({ saleId, state: 'pending' }, { max: 1 })).length > 0) return 'compensation';

  switch (repairNeedOf(sale, await store.statusOf(refs))) {
    case 'in_repair':
    case 'old_epoch':
      return 'in_repair';
    case 'not_loaded':
    case 'other_server':
      // It is not rebuilt to be forgotten: what Redis has lost of it is in MySQL, and what it still has is compared.
      if (await hasMoreThanRows(sale, ports)) {
        await store.askForRepair(saleId); // then reconcile can judge it
        return 'only_in_redis';
      }
      await removeStaleMarkers(sale, ports, { markerAgeMs });
      return null;
    case null: {
      const request = { saleId, apply: false, waitMs: 0, actor: ACTOR };
      const first = await reconcile.run(request);
      if (first.counts.stale_marker === undefined) return judgeRun(first);
      await removeStaleMarkers(sale, ports, { markerAgeMs });
      return judgeRun(await reconcile.run(request));
    }
  }
}

/** Another comparison of a sale ends within seconds: it says nothing of the sale. */
function judgeRun({ outcome, salesTaken }: ReconcileResult): 'differs' | 'being_compared' | null {
  if (outcome === 'match') return null;
  return salesTaken > 0 ? 'being_compared' : 'differs';
}

/** Whether Redis has a request of the sale that MySQL has no row of. */
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

export interface ForgetPorts {
  readonly sales: Pick<RetirementRepository, 'toForget' | 'forgotten'>;
  readonly store: Pick<SaleStore, 'forget'>;
}

/** An api may keep a sale snapshot in memory for so long. */
const FORGET_AFTER_MS = 60_000;
/** Sales that Redis forgets in one run. */
const FORGOTTEN_PER_RUN = 100;

/**
 * Removes retired sales from Redis, when no program believes an older snapshot of them any more. If this process dies in
 * between, the next run removes what is left.
 * @param options `snapshotMs`: how long apis share a snapshot
 */
export function forgetRetiredSales(
  { sales, store }: ForgetPorts,
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
