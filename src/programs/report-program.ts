import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Registry } from 'prom-client';
import { AlertWatch, readAlertRules, type Series } from '../core/conditions.js';
import { OperationalError } from '../core/errors.js';
import { bugLog, toNextTick } from '../core/job.js';
import { PACKAGE_ROOT } from '../core/package-root.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import { OutageLog } from '../core/outage-log.js';
import { withoutPoint } from '../core/text.js';
import type { OwnReport, ProgramKind, ProgramReports } from '../core/ports/program-reports.js';
import type { ReadyReport } from '../http/services.js';
import { version } from '../process/version.js';

const ALERTS_FILE = new URL('deploy/prometheus/alerts.yml', PACKAGE_ROOT);
const REPORT_EVERY_MS = 2000;
/** A process that misses five reports no longer counts as running. */
const REPORT_LIFE_MS = 5 * REPORT_EVERY_MS;
export interface ReportProgramParts {
  readonly kind: ProgramKind;
  readonly reports: ProgramReports;
  /** The metrics of this process, from which its alerts are judged. */
  readonly registry: Registry;
  readonly ready: () => Promise<ReadyReport>;
  /** Returns the number of buyers in waiting rooms, by sale. Only an api has any. */
  readonly waiting?: () => Readonly<Record<string, number>>;
  /** Receives each report, even if Redis does not store it. */
  readonly onReport?: (own: OwnReport) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Reports readiness and conditions, until the signal aborts. A failed report never stops the process. */
export async function reportProgram(parts: ReportProgramParts, signal: AbortSignal): Promise<void> {
  const { kind, reports, registry, ready, waiting = () => ({}), onReport = () => undefined, clock, log } = parts;
  const processId = randomUUID();
  const id = `${hostname()}:${process.pid}`;
  const watch = new AlertWatch(readAlertRules(readFileSync(ALERTS_FILE, 'utf8')));
  const onBug = bugLog('could not report this process', { clock, log });
  const outage = new OutageLog(log, {
    begins: 'Redis takes no report of this process, so consoles of other apis do not show it',
    ends: 'Redis takes reports of this process again',
  });
  /** @returns why Redis did not store it, or null */
  const quietly = async (call: () => Promise<void>): Promise<string | null> => {
    try {
      await call();
      outage.end();
      return null;
    } catch (err) {
      if (err instanceof OperationalError) outage.failed(err);
      else onBug(err);
      return (err as Error).message;
    }
  };
  let notReadySinceMs: number | null = null;
  let refusedSinceMs: number | null = null;
  const report = async (): Promise<void> => {
    const series = await seriesIn(registry, watch.metrics);
    const now = { nowMs: Math.round(clock.nowMs()), monotonicMs: clock.monotonicMs() };
    const conditions = watch.look((metric) => series.get(metric) ?? [], now);
    const problems = await problemsOf(ready);
    const isReady = problems.length === 0;
    notReadySinceMs = isReady ? null : (notReadySinceMs ?? now.nowMs);
    const state = { ready: isReady, notReadySinceMs, problems, conditions };
    const said = { kind, id, version, ...state, waiting: waiting() };
    const why = await quietly(() => reports.report(processId, said, REPORT_LIFE_MS));
    refusedSinceMs = why === null ? null : (refusedSinceMs ?? now.nowMs);
    const refusal = why === null || refusedSinceMs === null ? null : { why, sinceMs: refusedSinceMs };
    onReport({ report: said, atMs: clock.monotonicMs(), refusal });
  };
  while (!signal.aborted) {
    await report().catch(onBug);
    await toNextTick(clock, REPORT_EVERY_MS, signal);
  }
  await quietly(() => reports.withdraw(processId));
}

const problemsOf = (ready: () => Promise<ReadyReport>): Promise<string[]> =>
  ready().then(
    ({ dependencies }) =>
      dependencies.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${withoutPoint(detail)}.`),
    (error: unknown) => [error instanceof Error ? error.message : String(error)],
  );

async function seriesIn(registry: Registry, metrics: readonly string[]): Promise<Map<string, readonly Series[]>> {
  const found = new Map<string, readonly Series[]>();
  for (const name of metrics) {
    const metric = await registry.getSingleMetric(name)?.get();
    if (metric !== undefined) found.set(name, metric.values);
  }
  return found;
}
