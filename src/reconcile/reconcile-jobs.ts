import type { ReconcileMeters } from '../ports/reconcile-meters.js';
import type { ReconcileDesk } from './reconcile-desk.js';

const ACTOR = 'keeper';

/** Compares the books of every recent sale; `apply` makes jobs of what it finds, which `compensateJob` works off. */
export function reconcileJob(
  { desk, meters }: { readonly desk: Pick<ReconcileDesk, 'run'>; readonly meters: ReconcileMeters },
  { apply }: { readonly apply: boolean },
): { readonly name: string; runOnce(): Promise<void> } {
  return {
    name: 'reconcile',
    async runOnce(): Promise<void> {
      const { counts } = await desk.run({ apply, waitMs: 0, actor: ACTOR });
      meters.reconciled(counts);
    },
  };
}

/** Works off compensation jobs, whoever made them. */
export function compensateJob({
  desk,
  meters,
}: {
  readonly desk: Pick<ReconcileDesk, 'compensate' | 'jobCounts'>;
  readonly meters: ReconcileMeters;
}): { readonly name: string; runOnce(): Promise<void> } {
  return {
    name: 'compensate',
    async runOnce(): Promise<void> {
      await desk.compensate(ACTOR);
      meters.jobs(await desk.jobCounts());
    },
  };
}
