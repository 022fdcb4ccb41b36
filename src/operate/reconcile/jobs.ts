import type { Job } from '../../core/job.js';
import type { RecoveryMetrics } from '../../recovery/metrics.js';
import type { ReconcileAdmin } from './reconcile-admin.js';

const ACTOR = 'keeper';

interface Reconciling {
  readonly admin: ReconcileAdmin;
  readonly metrics: RecoveryMetrics;
}

/** Redis or MySQL did not answer while some sales were compared. The next run tries them again. */
export class SalesNotCompared extends Error {
  constructor(sales: number) {
    super(`${sales} ${sales === 1 ? 'sale was' : 'sales were'} not compared; the warnings above say why`);
    this.name = 'SalesNotCompared';
  }
}

/**
 * Compares Redis and MySQL for every recent sale. `apply` creates jobs for the findings, which `compensateJob` carries
 * out.
 */
export function reconcileJob({ admin, metrics }: Reconciling, { apply }: { readonly apply: boolean }): Job {
  return {
    name: 'reconcile',
    async runOnce(): Promise<void> {
      const { counts, salesFailed } = await admin.run({ apply, waitMs: 0, actor: ACTOR });
      metrics.reconciled(counts);
      if (salesFailed > 0) throw new SalesNotCompared(salesFailed);
    },
  };
}

/** Maximum number of rows that one statement removes. The findings of a run may be large. */
const REMOVED_PER_STEP = 100;
const STEPS_MAX = 20;

/** Removes records of old runs and compensated jobs. */
export function tidyRuns(admin: ReconcileAdmin, { keepMs }: { readonly keepMs: number }): Job {
  return {
    name: 'tidy-runs',
    async runOnce(): Promise<void> {
      for (let steps = 1; steps <= STEPS_MAX; steps++) {
        if (!(await admin.removeOld(keepMs, REMOVED_PER_STEP))) return;
      }
    },
  };
}

/** Carries out compensation jobs, including jobs that operators created. */
export function compensateJob({ admin, metrics }: Reconciling): Job {
  return {
    name: 'compensate',
    async runOnce(): Promise<void> {
      await admin.compensate(ACTOR);
      metrics.compensationJobs(await admin.jobCounts());
    },
  };
}

/** Publishes how many compensation jobs there are. Operators change them too, so this job counts them. */
export function watchCompensations({ admin, metrics }: Reconciling): Job {
  return {
    name: 'watch-compensations',
    async runOnce(): Promise<'idle' | void> {
      const counts = await admin.jobCounts();
      metrics.compensationJobs(counts);
      if (counts.pending === 0) return 'idle';
    },
  };
}
