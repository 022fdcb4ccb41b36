import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Registry } from 'prom-client';
import { AlertWatch, readAlertRules, type Series } from '../core/conditions.js';
import { OperationalError } from '../core/errors.js';
import { bugLog } from '../core/job.js';
import { PACKAGE_ROOT } from '../core/package-root.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { ProgramKind, ProgramReports } from '../core/ports/program-reports.js';
import type { ReadyReport } from '../http/services.js';
import { version } from '../process/version.js';

const ALERTS_FILE = new URL('deploy/prometheus/alerts.yml', PACKAGE_ROOT);
const REPORT_EVERY_MS = 2000;
/** A process that misses five reports no longer counts as running. */
const REPORT_LIFE_MS = 5 * REPORT_EVERY_MS;
/** Limits the wait for a server that hangs, so that the process can report it. */
const READY_WITHIN_MS = 1000;

export interface ReportProgramParts {
  readonly kind: ProgramKind;
  readonly reports: ProgramReports;
  /** The metrics of this process, on which its alerts are judged. */
  readonly registry: Registry;
  readonly ready: () => Promise<ReadyReport>;
  /** Returns the buyers in waiting rooms by sale. Only an api has any. */
  readonly waiting?: () => Readonly<Record<string, number>>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Reports that this process runs, whether it is ready and which conditions it sees. Withdraws the report when the signal aborts.
 * A failed report never stops the process, since reports only inform people.
 */
export async function reportProgram(parts: ReportProgramParts, signal: AbortSignal): Promise<void> {
  const { kind, reports, registry, ready, waiting = () => ({}), clock, log } = parts;
  const processId = randomUUID();
  const id = `${hostname()}:${process.pid}`;
  const watch = new AlertWatch(readAlertRules(readFileSync(ALERTS_FILE, 'utf8')));
  const onBug = bugLog('could not report this process', { clock, log });
  const quietly = async (call: () => Promise<void>): Promise<void> => {
    try {
      await call();
    } catch (err) {
      if (err instanceof OperationalError) log.debug({ err }, 'could not report this process; the next report follows');
      else onBug(err);
    }
  };
  const report = async (): Promise<void> => {
    const series = await seriesIn(registry, watch.metrics);
    const now = { nowMs: Math.round(clock.nowMs()), monotonicMs: clock.monotonicMs() };
    const conditions = watch.look((metric) => series.get(metric) ?? [], now);
    const problems = await problemsOf(ready, clock);
    const isReady = problems.length === 0;
    const said = { kind, id, version, ready: isReady, problems, conditions, waiting: waiting() };
    await reports.report(processId, said, REPORT_LIFE_MS);
  };
  while (!signal.aborted) {
    await quietly(report);
    await clock.sleep(REPORT_EVERY_MS, signal);
  }
  await quietly(() => reports.withdraw(processId));
}

async function problemsOf(ready: () => Promise<ReadyReport>, clock: Clock): Promise<string[]> {
  const timer = new AbortController();
  const late = clock
    .sleep(READY_WITHIN_MS, timer.signal)
    .then(() => [`Not all servers answer within ${READY_WITHIN_MS} ms.`]);
  const asked = ready().then(
    ({ dependencies }) => dependencies.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}.`),
    (error: unknown) => [error instanceof Error ? error.message : String(error)],
  );
  const problems = await Promise.race([asked, late]);
  timer.abort();
  return problems;
}

async function seriesIn(registry: Registry, metrics: readonly string[]): Promise<Map<string, readonly Series[]>> {
  const found = new Map<string, readonly Series[]>();
  for (const name of metrics) {
    const metric = await registry.getSingleMetric(name)?.get();
    if (metric !== undefined) found.set(name, metric.values);
  }
  return found;
}
