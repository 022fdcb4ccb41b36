import type { Job } from '../../core/job.js';
import type { Log } from '../../core/ports/log.js';
import type { RunOutcome } from '../../core/ports/reconcile-runs.js';
import type { SaleSchedule } from '../../core/ports/sale-repository.js';

const ACTOR = 'keeper';

/** Maximum number of sales per run. A comparison reads the whole sale. Openings do not wait for it. */
const SALES_PER_RUN = 10;
/** Pause after findings. Reconcile reports them. */
const AGAIN_MS = 10 * 60_000;
/**
 * Pause after a partial comparison: Redis may have lost data of the sale, which is no difference. This lasts until a
 * buyer asks for the sale or it is retired; after a restart of Redis it applies to all ended sales.
 */
const PARTLY_AGAIN_MS = 24 * 60 * 60_000;
/** Pause after a failed comparison: other sales come first. */
const FAILED_AGAIN_MS = 60_000;

export interface CompareEndedPorts {
  readonly schedule: SaleSchedule;
  /** Compares Redis and MySQL. `none`: another process compares this sale. @throws OperationalError */
  readonly compare: (saleId: string) => Promise<RunOutcome>;
  readonly log: Log;
}

/**
 * Compares each sale that the keeper runs after its end, until Redis and MySQL have agreed once: the last step before
 * the sale may be retired.
 * @param afterMs after the end of the window, when all data of the sale is old enough to be judged
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
            log.warn({ saleId, outcome }, 'Redis and MySQL differ on a sale that has ended');
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
