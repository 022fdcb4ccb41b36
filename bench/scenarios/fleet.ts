import { splitSlice, type BuyerSlice } from '../load/buyers.js';
import { runClosedLoop } from '../load/closed-loop.js';
import type { LoadPlan, LoadResult } from '../load/load.js';
import { microsEach, sampleCpu } from '../measure.js';
import { cpuTimes } from '../session/cpu.js';
import { growth, scrape } from '../session/metrics.js';
import type { Program } from '../session/programs.js';
import type { ProcessName } from '../session/session.js';
import { assertPassed, BUYERS_PER_SECOND, checkSaleOf, secondsOf, startApi, type Context } from './context.js';

/** Figures of `win` on several apis, or with several settings. */
export interface FleetFigures {
  readonly kind: 'fleet';
  readonly scenario: 'fleet' | 'paired';
  readonly rows: readonly FleetRow[];
}

export interface FleetRow {
  readonly title: string;
  readonly landedPerSecond: number;
  readonly batchSizeMean: number;
  /** CPU µs per accepted purchase. */
  readonly cpuMicros: Readonly<Record<ProcessName, number>>;
}

interface FleetLoad {
  readonly title: string;
  readonly apis: readonly Program[];
  readonly buckets: number;
  /** True: each lane of buyers goes to one api. False: any buyer may go to any api. */
  readonly byLane: boolean;
}

/** Runs `win` on one api, and then on --apis apis: with one bucket, --buckets buckets, and lanes of buyers. */
export async function fleet(context: Context): Promise<FleetFigures> {
  const { session, options } = context;
  const { apis: count, buckets } = options;
  const more: Program[] = [];
  try {
    while (more.length < count - 1) more.push(await startApi(context, `api-${more.length + 2}`));
    const apis = [session.program('api'), ...more];
    const several = { apis, buckets };
    const loads: readonly FleetLoad[] = [
      { title: '1 api × 1 bucket', apis: apis.slice(0, 1), buckets: 1, byLane: false },
      { title: `${count} apis × 1 bucket`, apis, buckets: 1, byLane: false },
      { title: `${count} apis × ${buckets} buckets`, ...several, byLane: false },
      { title: `${count} apis × ${buckets} buckets, by lane`, ...several, byLane: true },
    ];
    const rows: FleetRow[] = [];
    for (const load of [{ ...several, title: 'warm-up', byLane: true }, ...loads]) {
      const row = await measureFleet(context, load);
      if (load.title !== 'warm-up') rows.push(row);
    }
    return { kind: 'fleet', scenario: 'fleet', rows };
  } finally {
    await Promise.all(more.map((api) => api.stop()));
  }
}

/** @throws BenchError if the check of its sale fails */
async function measureFleet(context: Context, { title, apis, buckets, byLane }: FleetLoad): Promise<FleetRow> {
  const { session, options } = context;
  const seconds = secondsOf(context, 'fleet');
  const slice = context.buyers.take(seconds * BUYERS_PER_SECOND.win);
  const sale = await session.stores.openSale(title, slice.count, buckets);
  const connections = Math.ceil(options.connections / apis.length);
  const path = `/v1/sales/${sale.saleId}/purchases`;
  const cpuOf = (): Record<ProcessName, number> => {
    const ofApis = apis.reduce((sum, { pid }) => sum + (cpuTimes(pid)?.own ?? 0), 0);
    return { ...sampleCpu(session).processes, api: ofApis };
  };
  const metricsOf = () => Promise.all(apis.map((api) => scrape(api.operatorsPort)));
  const [metrics, cpu] = [await metricsOf(), cpuOf()];
  const plans = apis.map(({ port }, part): LoadPlan => {
    const common = { port, path, connections, seconds };
    if (byLane) return { ...common, buyers: slice, lanes: { part, of: apis.length } };
    return { ...common, buyers: partOf(slice, part, apis.length) };
  });
  const loads = await Promise.all(plans.map((plan) => runClosedLoop(plan, session.signal)));
  const accepted = loads.reduce((sum, load: LoadResult) => sum + load.accepted, 0);
  const landedAtMs = await session.stores.waitUntilLanded(sale.saleId, accepted, session.signal);
  const [after, cpuAfter] = [await metricsOf(), cpuOf()];
  apis.forEach((api) => api.assertAlive());
  assertPassed(await checkSaleOf(context, sale, loads), title);
  await session.stores.empty();
  const grown = (series: string): number =>
    metrics.reduce((sum, before, api) => sum + growth(before, after[api] as typeof before, series), 0);
  const batches = Math.max(1, grown('seckill_batch_size_count'));
  const tookSeconds = (landedAtMs - Math.min(...loads.map(({ startedAtMs }) => startedAtMs))) / 1000;
  session.progress(`fleet: ${title}: ${accepted} accepted in ${batches} batches`);
  return {
    title,
    landedPerSecond: accepted / tookSeconds,
    batchSizeMean: grown('seckill_batch_size_sum') / batches,
    cpuMicros: microsEach(cpu, cpuAfter, accepted),
  };
}

function partOf(slice: BuyerSlice, part: number, of: number): BuyerSlice {
  const count = Math.floor(slice.count / of);
  const [, rest] = splitSlice(slice, part * count);
  return { ...rest, count };
}
