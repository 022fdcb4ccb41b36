import type { Job } from '../../core/job.js';
import type { Log } from '../../core/ports/log.js';
import type { RunOutcome } from '../../core/ports/reconcile-runs.js';
import type { SaleSchedule } from '../../core/ports/sale-repository.js';

const ACTOR = 'keeper';

/** Sales of one run. A comparison reads the whole sale, and openings do not wait for it. */
const SALES_PER_RUN = 10;
/** A sale with findings is compared again after so long; the findings themselves are reported by reconcile. */
const AGAIN_MS = 10 * 60_000;
/**
 * A sale that could only be compared in part, after so long. Mostly Redis may have lost data of it, which is no difference
 * and stays so until somebody asks for the sale or it is retired: after a restart these are all sales that are over.
 */
const PARTLY_AGAIN_MS = 24 * 60 * 60_000;
/** One that could not be compared, after so long: those behind it come first. */
const FAILED_AGAIN_MS = 60_000;

export interface CompareEndedPorts {
  readonly schedule: SaleSchedule;
  /** Compares Redis and MySQL for one sale; `none` while somebody else does. @throws OperationalError */
  readonly compare: (saleId: string) => Promise<RunOutcome>;
  readonly log: Log;
}

/**
 * Compares each sale of the keeper after its end, until Redis and MySQL agree once: the last step of a sale before it
 * may be put away.
 * @param afterMs since the end of its window; by then nothing of it is too young to be judged
 */
export function compareEnded(
  { schedule, compare, log }: CompareEndedPorts,
  { afterMs }: { readonly afterMs: number },
): Job {
  return {
    name: 'compare-ended',
    async runOnce(): Promise<'idle' | void> {
      const failures: unknown[] = [];
      const ended = await schedule.toCompare(afterMs, SALES_PER_RUN);
      if (ended.length === 0) return 'idle';
      for (const { saleId } of ended) {
        try {
          const outcome = await compare(saleId);
          if (outcome === 'match') await schedule.compared(saleId, ACTOR);
          else if (outcome === 'partly') await schedule.compareLater(saleId, PARTLY_AGAIN_MS);
          else if (outcome !== 'none') {
            log.warn({ saleId, outcome }, 'Redis and MySQL do not agree on a sale that is over');
            await schedule.compareLater(saleId, AGAIN_MS);
          }
        } catch (error) {
          failures.push(error);
          await schedule.compareLater(saleId, FAILED_AGAIN_MS).catch((other: unknown) => failures.push(other));
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
