import { BucketFaults } from '../../core/bucket-faults.js';
import { OperationalError } from '../../core/errors.js';
import type { Job } from '../../core/job.js';
import type { Sale } from '../../core/sale.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import type { SaleSchedule } from '../../core/ports/sale-repository.js';
import type { SaleAdmin } from '../sale-admin.js';
import type { ScheduleMetrics } from './metrics.js';
import type { Missing, Readiness } from './readiness.js';

const ACTOR = 'keeper';

/** Number of sales per read. A run goes through all due sales. */
const SALES_PER_READ = 500;
const READS_MAX = 20;
const SALES_AT_ONCE = 16;
/** After this time, a run begins no other sale. The next run starts with the sales that open first. */
const RUN_MAX_MS = 10_000;
/** A warm sale opens in Redis at least this long before its opening. Redis then admits buyers by its own clock. */
const AHEAD_MS = 30_000;

export interface RunSchedulePorts {
  readonly schedule: SaleSchedule;
  readonly sales: SaleAdmin;
  readonly readiness: (sale: Sale) => Promise<Readiness>;
  readonly clock: Clock;
  readonly metrics: ScheduleMetrics;
  readonly log: Log;
}

/**
 * Warms, checks, opens and closes each sale with a warm time (docs/decisions/0025). A step is taken only if the sale
 * has not changed since it was read, so keepers and operators never undo each other's work. Sales that open next come
 * first, and sales whose step failed come last. So a hanging Redis server delays only its own sales, and an opening
 * does not wait for a thousand later sales.
 * @param everyMs the pause between two runs
 */
export function runSchedule(ports: RunSchedulePorts, { everyMs }: { readonly everyMs: number }): Job {
  const { schedule, readiness, clock, metrics, log } = ports;
  const aheadMs = Math.max(AHEAD_MS, 3 * everyMs);
  /** Missing parts of each sale at its last check. */
  let lacking = new Map<string, readonly Missing[]>();
  /** Sales whose last step failed. The sale that was tried longest ago comes first. */
  const failing = new Set<string>();
  let reportedBefore = new Map<string, string>();

  /** @returns what the sale lacks; empty if it no longer has to start */
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
    if (sale.state !== 'warm') return []; // the sale is not over yet by the clock of its Redis
    const isTime = redisNowMs !== null && redisNowMs >= sale.opensAtMs - aheadMs;
    if (isTime && missing.every(({ need }) => need !== 'stock')) await ports.sales.open(sale.saleId, ACTOR, sale);
    return missing;
  };

  return {
    name: 'run-schedule',
    async runOnce(): Promise<void> {
      const due = await allDue(schedule);
      const ids = new Set(due.map(({ saleId }) => saleId));
      for (const saleId of failing) if (!ids.has(saleId)) failing.delete(saleId);
      const notReady = new Map([...lacking].filter(([saleId]) => ids.has(saleId)));
      const failures: unknown[] = [];
      const endsMs = clock.monotonicMs() + RUN_MAX_MS;
      const step = async (sale: Sale): Promise<void> => {
        if (clock.monotonicMs() >= endsMs) return;
        const { saleId, state } = sale;
        failing.delete(saleId);
        const missing = await advance(sale).catch((error: unknown): Missing[] => {
          failures.push(error);
          failing.add(saleId);
          return state === 'draft' || state === 'warm' ? [failed(error)] : [];
        });
        notReady.delete(saleId);
        if (missing.length > 0) notReady.set(saleId, missing);
      };
      await new BucketFaults().forEach(inTurn(due, failing), step, SALES_AT_ONCE); // a step never rejects
      lacking = notReady;
      metrics.notReady([...notReady].map(([saleId, missing]) => [saleId, missing.length]));
      reportedBefore = reported(notReady, reportedBefore, log);
      if (failures.length > 0) throw failures[0];
    },
  };
}

async function allDue(schedule: RunSchedulePorts['schedule']): Promise<Sale[]> {
  const due: Sale[] = [];
  for (let reads = 0; reads < READS_MAX; reads++) {
    const page = await schedule.due(SALES_PER_READ, due.at(-1));
    due.push(...page);
    if (page.length < SALES_PER_READ) break;
  }
  return due;
}

/** Sorts due sales: first the sales that open next, then sales to close, then sales whose last step failed. */
function inTurn(due: readonly Sale[], failing: ReadonlySet<string>): Sale[] {
  const startsMs = ({ state, opensAtMs }: Sale): number =>
    state === 'draft' || state === 'warm' ? opensAtMs : Number.MAX_SAFE_INTEGER;
  const well = due.filter(({ saleId }) => !failing.has(saleId)).sort((a, b) => startsMs(a) - startsMs(b));
  const bySaleId = new Map(due.map((sale) => [sale.saleId, sale]));
  const last = [...failing].map((saleId) => bySaleId.get(saleId)).filter((sale) => sale !== undefined);
  return [...well, ...last];
}

const failed = (error: unknown): Missing => {
  const detail = error instanceof OperationalError ? `${error.dependency} does not answer` : 'its step failed';
  return { need: 'stock', detail: `${detail}: ${error instanceof Error ? error.message : String(error)}` };
};

/** Logs once what is missing, and once when nothing is missing any more. @returns logged texts by sale */
function reported(
  notReady: ReadonlyMap<string, readonly Missing[]>,
  reportedBefore: ReadonlyMap<string, string>,
  log: RunSchedulePorts['log'],
): Map<string, string> {
  const saying = new Map<string, string>();
  for (const [saleId, missing] of notReady) {
    const text = missing.map(({ need, detail }) => `${need}: ${detail}`).join('; ');
    saying.set(saleId, text);
    if (reportedBefore.get(saleId) !== text)
      log.warn({ saleId, missing: text }, 'a sale that starts soon is not ready');
  }
  for (const saleId of reportedBefore.keys())
    if (!saying.has(saleId)) log.info({ saleId }, 'a sale that starts soon is ready now');
  return saying;
}
