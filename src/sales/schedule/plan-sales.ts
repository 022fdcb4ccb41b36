import type { Sale } from '../../core/sale.js';
import type { SaleSchedule } from '../../core/ports/sale-repository.js';
import type { Readiness } from './readiness.js';

export const PLAN_STATUSES = ['waits', 'ready', 'not_ready', 'by_hand', 'selling', 'paused', 'over', 'missed'] as const;
/**
 * - `waits`: the keeper warms it later
 * - `ready`, `not_ready`: it starts soon or should have started; `missing` says what it lacks
 * - `by_hand`: an operator has to warm or open it
 * - `over`: the keeper or an operator still has to close it
 * - `missed`: its window is over and it was never warmed
 */
type PlanStatus = (typeof PLAN_STATUSES)[number];

export interface PlannedSale {
  readonly sale: Sale;
  readonly status: PlanStatus;
  /** A sentence for each thing that is missing. */
  readonly missing: readonly string[];
  /** When the keeper warms the sale, Unix ms. Null if an operator warms it. */
  readonly warmsAtMs: number | null;
}

export interface PlanPorts {
  readonly schedule: SaleSchedule;
  /** @throws OperationalError redis */
  readonly readiness: (sale: Sale) => Promise<Readiness>;
  readonly nowMs: () => number;
}

const SALES_MAX = 1000;

/**
 * Lists sales that open within this time or are not closed yet, with what they lack. Reads Redis and the broker only
 * for sales that start soon.
 * @throws OperationalError
 */
export async function planSales({ schedule, readiness, nowMs }: PlanPorts, withinMs: number): Promise<PlannedSale[]> {
  const planned: PlannedSale[] = [];
  for (const sale of await schedule.coming(withinMs, SALES_MAX)) {
    const status = statusOf(sale, nowMs());
    const missing = status === 'ready' || (status === 'by_hand' && sale.state === 'warm') ? await lacks(sale) : [];
    const warmsAtMs = sale.warmBeforeMs === null ? null : sale.opensAtMs - sale.warmBeforeMs;
    const isMissing = status === 'ready' && missing.length > 0;
    const late = status === 'not_ready' ? ['it should be warm already, but is a draft'] : [];
    planned.push({ sale, status: isMissing ? 'not_ready' : status, missing: [...late, ...missing], warmsAtMs });
  }
  return planned;

  async function lacks(sale: Sale): Promise<string[]> {
    const { missing } = await readiness(sale);
    return missing.map(({ need, detail }) => `${need}: ${detail}`);
  }
}

/** Returns the status according to MySQL and the clock. */
function statusOf({ state, opensAtMs, closesAtMs, warmBeforeMs }: Sale, nowMs: number): PlanStatus {
  if (state === 'draft') {
    if (closesAtMs <= nowMs) return 'missed';
    if (warmBeforeMs === null) return 'by_hand';
    return nowMs < opensAtMs - warmBeforeMs ? 'waits' : 'not_ready';
  }
  if (closesAtMs <= nowMs) return 'over';
  if (state === 'paused') return 'paused';
  if (state === 'open') return nowMs < opensAtMs ? 'ready' : 'selling';
  return warmBeforeMs === null ? 'by_hand' : 'ready';
}
