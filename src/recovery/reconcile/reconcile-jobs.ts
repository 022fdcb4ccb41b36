import type { Job } from '../../core/job.js';
import type { RecoveryMetrics } from '../metrics.js';
import type { ReconcileAdmin } from './reconcile-admin.js';

const ACTOR = 'keeper';

/** Redis or MySQL did not answer while some sales were compared; the next run tries them again. */
export class SalesNotCompared extends Error {
  constructor(sales: number) {
    super(`${sales} ${sales === 1 ? 'sale was' : 'sales were'} not compared: the warnings say why`);
    this.name = 'SalesNotCompared';
  }
}

/**
 * Compares Redis and MySQL for every recent sale; `apply` makes jobs of the findings, which `compensateJob` works off.
 */
export function reconcileJob(
  { admin, metrics }: { readonly admin: Pick<ReconcileAdmin, 'run'>; readonly metrics: RecoveryMetrics },
  { apply }: { readonly apply: boolean },
): Job {
  return {
    name: 'reconcile',
    async runOnce(): Promise<void> {
      const { counts, salesFailed } = await admin.run({ apply, waitMs: 0, actor: ACTOR });
      metrics.reconciled(counts);
      if (salesFailed > 0) throw new SalesNotCompared(salesFailed);
    },
  };
}

/** Rows removed by one statement; the findings of a run may be large. */
const REMOVED_PER_STEP = 100;
const STEPS_MAX = 20;

/** Removes records of old runs, and of what was compensated. */
export function tidyRuns(admin: Pick<ReconcileAdmin, 'removeOld'>, { keepMs }: { readonly keepMs: number }): Job {
  return {
    name: 'tidy-runs',
    async runOnce(): Promise<void> {
      for (let steps = 1; steps <= STEPS_MAX; steps++) {
        if (!(await admin.removeOld(keepMs, REMOVED_PER_STEP))) return;
      }
    },
  };
}

interface CompensatePorts {
  readonly admin: Pick<ReconcileAdmin, 'compensate' | 'jobCounts'>;
  readonly metrics: RecoveryMetrics;
}

/** Works off compensation jobs, those of operators included. */
export function compensateJob({ admin, metrics }: CompensatePorts): Job {
  return {
    name: 'compensate',
    async runOnce(): Promise<void> {
      await admin.compensate(ACTOR);
      metrics.compensationJobs(await admin.jobCounts());
    },
  };
}

/** Publishes how many compensation jobs there are: operators change them too. */
export function watchCompensations({ admin, metrics }: CompensatePorts): Job {
  return {
    name: 'watch-compensations',
    async runOnce(): Promise<'idle' | void> {
      const counts = await admin.jobCounts();
      metrics.compensationJobs(counts);
      if (counts.pending === 0) return 'idle';
    },
  };
}
