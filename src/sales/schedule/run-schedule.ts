import { OperationalError } from '../../core/errors.js';
import type { Job } from '../../core/job.js';
import type { Sale } from '../../core/sale.js';
import type { Log } from '../../core/ports/log.js';
import type { SaleSchedule } from '../../core/ports/sale-repository.js';
import type { SaleAdmin } from '../sale-admin.js';
import type { ScheduleMetrics } from './metrics.js';
import type { Missing, Readiness } from './readiness.js';

const ACTOR = 'keeper';

/** Those that wait longest come first, and the next run goes on. */
const SALES_PER_RUN = 500;
const SALES_AT_ONCE = 16;
/** At least so long before its opening a warm sale is opened in Redis, whose own clock then lets buyers in. */
const AHEAD_MS = 30_000;

export interface RunSchedulePorts {
  readonly schedule: Pick<SaleSchedule, 'due'>;
  readonly sales: Pick<SaleAdmin, 'warm' | 'open' | 'close'>;
  readonly readiness: (sale: Sale) => Promise<Readiness>;
  readonly metrics: Pick<ScheduleMetrics, 'notReady'>;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

/**
 * Runs the sales that have a warm time (docs/decisions/0025): warms, checks, opens and closes each when its time has come. A step is
 * made only if the sale still is as it was read, so two keepers, or a keeper and a person, never undo each other's work.
 * @param everyMs the pause between two runs
 */
export function runSchedule(ports: RunSchedulePorts, { everyMs }: { readonly everyMs: number }): Job {
  const { schedule, readiness, metrics, log } = ports;
  const aheadMs = Math.max(AHEAD_MS, 3 * everyMs);
  let said = new Map<string, string>();

  /** @returns what is missing; nothing for a sale that needs no start any more */
  const advance = async (sale: Sale): Promise<readonly Missing[]> => {
    if (sale.state === 'draft') {
      const warmed = await ports.sales.warm(sale.saleId, ACTOR, sale);
      return warmed.outcome === 'done' ? advance(warmed.sale) : [];
    }
    const { missing, redisNowMs } = await readiness(sale);
    const isOver = redisNowMs === null ? sale.state !== 'warm' : redisNowMs >= sale.closesAtMs;
    if (isOver) {
      await ports.sales.close(sale.saleId, ACTOR, sale);
      return [];
    }
    if (sale.state !== 'warm') return []; // by the clock of its Redis it is not over yet
    const isTime = redisNowMs !== null && redisNowMs >= sale.opensAtMs - aheadMs;
    if (isTime && missing.every(({ need }) => need !== 'stock')) await ports.sales.open(sale.saleId, ACTOR, sale);
    return missing;
  };

  return {
    name: 'run-schedule',
    async runOnce(): Promise<void> {
      const notReady = new Map<string, readonly Missing[]>();
      const failures: unknown[] = [];
      const step = async (sale: Sale): Promise<void> => {
        const missing = await advance(sale).catch((error: unknown): Missing[] => {
          failures.push(error);
          return sale.state === 'draft' || sale.state === 'warm' ? [failed(error)] : [];
        });
        if (missing.length > 0) notReady.set(sale.saleId, missing);
      };
      const due = await schedule.due(SALES_PER_RUN);
      // a sale whose Redis does not answer delays few others, and stops none
      for (let at = 0; at < due.length; at += SALES_AT_ONCE)
        await Promise.all(due.slice(at, at + SALES_AT_ONCE).map(step));
      metrics.notReady([...notReady].map(([saleId, missing]) => [saleId, missing.length]));
      said = reported(notReady, said, log);
      if (failures.length > 0) throw failures[0];
    },
  };
}

const failed = (error: unknown): Missing => {
  const detail = error instanceof OperationalError ? `${error.dependency} does not answer` : 'its step failed';
  return { need: 'stock', detail: `${detail}: ${error instanceof Error ? error.message : String(error)}` };
};

/** Says once what is missing, and once that it is there. @returns what was said, by sale */
function reported(
  notReady: ReadonlyMap<string, readonly Missing[]>,
  said: ReadonlyMap<string, string>,
  log: RunSchedulePorts['log'],
): Map<string, string> {
  const saying = new Map<string, string>();
  for (const [saleId, missing] of notReady) {
    const text = missing.map(({ need, detail }) => `${need}: ${detail}`).join('; ');
    saying.set(saleId, text);
    if (said.get(saleId) !== text) log.warn({ saleId, missing: text }, 'a sale that starts soon is not ready');
  }
  for (const saleId of said.keys())
    if (!saying.has(saleId)) log.info({ saleId }, 'nothing is missing for a sale any more');
  return saying;
}
