import type { Config } from '../../core/config/schema.js';
import type { Job, PlannedJob } from '../../core/job.js';
import type { DueWork } from '../../core/ports/due-work.js';
import type { RecoveryMetrics } from '../../recovery/metrics.js';
import type { ReconcileAdmin } from './reconcile-admin.js';

const ACTOR = 'keeper';

/** Interval for removing old records, which is not urgent. */
const TIDY_EVERY_MS = 60_000;

interface Reconciling {
  readonly reconcile: ReconcileAdmin;
  readonly metrics: RecoveryMetrics;
}

interface Keeper extends Reconciling {
  readonly config: Config<'reconcile'>;
  readonly everyMs: number;
  readonly due: (work: DueWork, job: Job) => Job;
}

/** Compensations run even if the keeper does not compare, because an operator may have ordered them. */
export function reconcileJobs(keeper: Keeper): PlannedJob[] {
  const { config, everyMs, reconcile, due } = keeper;
  const { everyMs: compareEveryMs, apply, keepMs } = config.reconcile;
  const jobs: PlannedJob[] = [
    [everyMs, due('compensation', compensateJob(keeper))],
    [everyMs, watchCompensations(keeper)],
    [TIDY_EVERY_MS, tidyRuns(reconcile, { keepMs })],
  ];
  if (compareEveryMs > 0) jobs.push([compareEveryMs, reconcileJob(keeper, { apply: apply === 'true' })]);
  return jobs;
}

/** Thrown if Redis or MySQL did not answer while some sales were compared. The next run tries them again. */
export class SalesNotCompared extends Error {
  constructor(sales: number) {
    super(`${sales} ${sales === 1 ? 'sale was' : 'sales were'} not compared; the warnings above say why`);
    this.name = 'SalesNotCompared';
  }
}

/** Compares every recent sale. `apply` creates jobs for findings, which `compensateJob` carries out. */
export function reconcileJob({ reconcile, metrics }: Reconciling, { apply }: { readonly apply: boolean }): Job {
  return {
    name: 'reconcile',
    async runOnce(): Promise<void> {
      const { counts, salesFailed } = await reconcile.run({ apply, waitMs: 0, actor: ACTOR });
      metrics.reconciled(counts);
      if (salesFailed > 0) throw new SalesNotCompared(salesFailed);
    },
  };
}

/** Maximum number of rows that one statement removes. The findings of a run may be large. */
const REMOVED_PER_STEP = 100;
const STEPS_MAX = 20;

export function tidyRuns(reconcile: ReconcileAdmin, { keepMs }: { readonly keepMs: number }): Job {
  return {
    name: 'tidy-runs',
    async runOnce(): Promise<void> {
      for (let steps = 1; steps <= STEPS_MAX; steps++) {
        if (!(await reconcile.removeOld(keepMs, REMOVED_PER_STEP))) return;
      }
    },
  };
}

/** Carries out compensation jobs, including jobs that operators created. */
export function compensateJob({ reconcile, metrics }: Reconciling): Job {
  return {
    name: 'compensate',
    async runOnce(): Promise<void> {
      await reconcile.compensate(ACTOR);
      metrics.compensationJobs(await reconcile.jobCounts());
    },
  };
}

/** Publishes the number of compensation jobs. Operators change them too, so this job counts them. */
function watchCompensations({ reconcile, metrics }: Reconciling): Job {
  return {
    name: 'watch-compensations',
    async runOnce(): Promise<'idle' | void> {
      const counts = await reconcile.jobCounts();
      metrics.compensationJobs(counts);
      if (counts.pending === 0) return 'idle';
    },
  };
}
