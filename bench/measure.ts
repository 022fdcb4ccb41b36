import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadResult } from './load/load.js';
import { cpuTimes, machineTimes, yardstickMicros } from './session/cpu.js';
import { growth, scrape, sumOf } from './session/metrics.js';
import type { ProcessName, Session } from './session/session.js';

/** Users of CPU: our processes, the load generator, the bench and all other programs. */
export type CpuUser = ProcessName | 'load generator' | 'bench' | 'others';

/** Measures one load on one sale until the last accepted order is in MySQL. */
export interface Measured<L extends LoadResult = LoadResult> {
  readonly load: L;
  /** Committed orders of this load. */
  readonly landed: number;
  /** Seconds between the first request and the last committed order. */
  readonly landedSeconds: number;
  /** Seconds between the first request and the last answer. */
  readonly answeredSeconds: number;
  /** CPU seconds from the first request to the last committed order. */
  readonly cpuSeconds: Readonly<Record<CpuUser, number>>;
  /** Average number of idle cores. Time that the hypervisor took away does not count. */
  readonly idleCores: number;
  /** Speed of the machine just before the load: CPU µs of one HMAC. */
  readonly yardstickMicros: number;
  /** Average number of purchases per batch that the api formed; 0 without a batch. */
  readonly batchSizeMean: number;
  /** Answers of the purchase endpoint by word, as counted by the api. */
  readonly answersByCode: Readonly<Record<string, number>>;
}

/** CPU times are in hundredths of a second. After a pause, the sampler sees the final figures of the processes. */
const SETTLE_MS = 50;
const PROGRESS_MS = 5000;

/** Runs a load against a sale and waits until each of its accepted purchases is an order. */
export async function measure<L extends LoadResult>(
  session: Session,
  saleId: string,
  run: (path: string) => Promise<L>,
): Promise<Measured<L>> {
  const { stores, signal } = session;
  const api = session.program('api');
  const soldBefore = await soldOf(session, saleId);
  const metricsBefore = await scrape(api.operatorsPort);
  const yardstick = yardstickMicros();
  await sleep(SETTLE_MS);
  const before = sampleCpu(session);
  const ticker = reportProgress(session, saleId);
  const load = await run(`/v1/sales/${saleId}/purchases`).finally(() => clearInterval(ticker));
  const landedAtMs = await stores.waitUntilLanded(saleId, soldBefore + load.accepted, signal);
  const after = sampleCpu(session);
  session.assertAlive();
  const metricsAfter = await scrape(api.operatorsPort);
  const batches = growth(metricsBefore, metricsAfter, 'seckill_batch_size_count');
  return {
    load,
    landed: (await soldOf(session, saleId)) - soldBefore,
    landedSeconds: Math.max(0, landedAtMs - load.startedAtMs) / 1000,
    answeredSeconds: (load.endedAtMs - load.startedAtMs) / 1000,
    ...cpuBetween(before, after, load.cpuSeconds),
    yardstickMicros: yardstick,
    batchSizeMean: batches === 0 ? 0 : growth(metricsBefore, metricsAfter, 'seckill_batch_size_sum') / batches,
    answersByCode: answersBetween(metricsBefore, metricsAfter),
  };
}

/** Reports the number of orders from time to time. */
function reportProgress(session: Session, saleId: string): NodeJS.Timeout {
  const startedAtMs = performance.now();
  const report = async (): Promise<void> => {
    const sold = await soldOf(session, saleId);
    session.progress(
      `  after ${Math.round((performance.now() - startedAtMs) / 1000)} s: ${sold.toLocaleString('en')} orders`,
    );
  };
  return setInterval(() => void report().catch(() => undefined), PROGRESS_MS);
}

interface CpuSample {
  readonly processes: Readonly<Record<ProcessName, number>>;
  readonly bench: number;
  readonly machine: { readonly busy: number; readonly all: number };
  readonly atMs: number;
}

export function sampleCpu(session: Session): CpuSample {
  const processes = Object.fromEntries(
    Object.entries(session.pids()).map(([name, pid]) => [name, cpuTimes(pid)?.own ?? 0]),
  ) as Record<ProcessName, number>;
  return { processes, bench: cpuTimes('self')?.own ?? 0, machine: machineTimes(), atMs: performance.now() };
}

/** Returns the CPU µs of each process per counted thing. */
export const microsEach = (before: CpuSample['processes'], after: CpuSample['processes'], count: number) =>
  Object.fromEntries(
    Object.entries(after).map(([name, end]) => [name, ((end - before[name as ProcessName]) * 1e6) / count]),
  ) as CpuSample['processes'];

function cpuBetween(
  before: CpuSample,
  after: CpuSample,
  loadGenerator: number,
): Pick<Measured, 'cpuSeconds' | 'idleCores'> {
  const processes = Object.fromEntries(
    Object.entries(after.processes).map(([name, end]) => [name, end - before.processes[name as ProcessName]]),
  ) as Record<ProcessName, number>;
  const bench = after.bench - before.bench;
  const ours = Object.values(processes).reduce((sum, seconds) => sum + seconds, bench + loadGenerator);
  const busy = after.machine.busy - before.machine.busy;
  const idle = after.machine.all - before.machine.all - busy;
  return {
    cpuSeconds: { ...processes, 'load generator': loadGenerator, bench, others: Math.max(0, busy - ours) },
    idleCores: idle / ((after.atMs - before.atMs) / 1000),
  };
}

type Samples = Awaited<ReturnType<typeof scrape>>;

function answersBetween(before: Samples, after: Samples): Record<string, number> {
  const answers: Record<string, number> = {};
  for (const series of after.keys()) {
    const code = /^seckill_http_answers_total\{.*code="([a-z_]+)".*\}$/.exec(series)?.[1];
    if (code === undefined || !series.includes('route="purchase"')) continue;
    const count = sumOf(after, series) - sumOf(before, series);
    if (count > 0) answers[code] = count;
  }
  return answers;
}

async function soldOf({ stores }: Session, saleId: string): Promise<number> {
  const [row] = await stores.mysql.query<{ sold: number }>('SELECT sold FROM sales WHERE id = ?', [saleId]);
  return row?.sold ?? 0;
}
