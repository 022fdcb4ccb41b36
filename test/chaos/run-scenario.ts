import { afterGranted } from '../../deploy/local/stack/granted-time.js';
import type { Sale } from '../../src/core/sale.js';
import { ScenarioContext, type ContextParts } from './context.js';
import { drainHalfMessages, unregisterProducers } from './harness/broker.js';
import { restoreServers, type StackControls } from './harness/stack-controls.js';
import { until } from './harness/wait.js';
import { NO_FIGURES, type ScenarioFigures } from './scenario-sales.js';
import { idsOf, type Scenario } from './scenario.js';

/** Limit for a whole scenario, which itself asserts promises about time. */
const RUN_TIMEOUT_MS = 180_000;

/** The result of one run of a scenario. */
export interface ScenarioResult {
  readonly scenario: string;
  readonly ids: readonly string[];
  readonly title: string;
  readonly seed: number;
  readonly outcome: 'green' | 'red' | 'skipped';
  /** Why it is red or was skipped. Null if green. */
  readonly reason: string | null;
  /** Null if Redis or MySQL could not be read. */
  readonly figures: ScenarioFigures | null;
  /** Time from the end of the fault until every sale of the scenario had recovered. Null if a sale never did. */
  readonly recoveryMs: number | null;
  readonly tookMs: number;
  /** Facts that were proved. */
  readonly observations: readonly string[];
  /** Findings of the checker in a red scenario: `I3 ann/k1 was answered 2xx and has no row`. */
  readonly findings: readonly string[];
}

export interface RunScenarioParts extends ContextParts {
  readonly scenario: Scenario;
  /** Aborts the scenario, which is then red. */
  readonly signal: AbortSignal;
  /** Receives the sales of a finished scenario. */
  readonly onOver?: (sales: readonly Sale[], outcome: 'green' | 'red') => Promise<void>;
  /** Receives the end of each log of a failed scenario. */
  readonly onLogs: (text: string) => void;
}

/** Runs a scenario once: its fault, then rest and invariants. Even after a failure, programs end and servers run. */
export async function runScenario(parts: RunScenarioParts): Promise<ScenarioResult> {
  const { scenario, seed, stack, signal } = parts;
  const { name, title } = scenario;
  const ids = idsOf(scenario);
  const skipped = scenario.skip?.() ?? null;
  if (skipped !== null) {
    const nothing = { figures: NO_FIGURES, recoveryMs: null, tookMs: 0, observations: [], findings: [] };
    return { scenario: name, ids, title, seed, outcome: 'skipped', reason: skipped, ...nothing };
  }

  const startedMs = performance.now();
  const context = new ScenarioContext(parts);
  let failure: string | null = null;
  let findings: string[] = [];
  try {
    if (scenario.drainFirst) await drainHalfMessages(stack);
    await bounded(scenario.run(context), scenario.timeoutMs ?? RUN_TIMEOUT_MS, signal);
    await bounded(context.conclude(), RUN_TIMEOUT_MS, signal);
  } catch (error) {
    failure = sentenceOf(error);
    if (!signal.aborted) {
      parts.onLogs(context.programs.logTails());
      findings = await findingsBeyond(failure, context);
    }
  }
  await context.close();
  if (scenario.alone && !signal.aborted) {
    await restore(stack).catch((error: unknown) => (failure ??= sentenceOf(error)));
  }
  if (!signal.aborted) await unregisterDeadApis(context, parts);
  const figures = await context.figures().catch(() => null);
  if (figures === null) failure ??= 'Redis or MySQL could not be read';
  if (!signal.aborted) await parts.onOver?.(context.sales, failure === null ? 'green' : 'red');
  return {
    scenario: name,
    ids,
    title,
    seed,
    outcome: failure === null ? 'green' : 'red',
    reason: failure,
    figures,
    recoveryMs: context.recoveryMs,
    tookMs: Math.round(performance.now() - startedMs),
    observations: context.observations,
    findings,
  };
}

/** Makes every server run, and our own connections to them work again. */
async function restore({ servers, redis }: StackControls): Promise<void> {
  await restoreServers(servers);
  await until('Redis answers', async () => (await redis.redis.ping()) === 'PONG');
}

/** Makes the broker forget killed apis, so that the next scenario does not wait for their check-backs. */
async function unregisterDeadApis(
  { programs }: ScenarioContext,
  { scenario, stack, onLogs }: RunScenarioParts,
): Promise<void> {
  const pids = programs.all.filter(({ name, running }) => name === 'api' && !running).map(({ pid }) => pid);
  await unregisterProducers(stack, pids).catch((error: unknown) => {
    onLogs(`The broker still lists ended apis of ${scenario.name}: ${sentenceOf(error)}`);
  });
}

/** Returns the first finding of each invariant, in addition to the failure itself. */
async function findingsBeyond(failure: string, context: ScenarioContext): Promise<string[]> {
  const findings = await context.findings().catch(() => []);
  const beyond = findings.filter((finding) => !failure.includes(finding));
  const invariantOf = (finding: string): string => finding.slice(0, 'I1'.length);
  return beyond.filter((one, index) => beyond.findIndex((other) => invariantOf(other) === invariantOf(one)) === index);
}

/**
 * @throws the error of `work`, the reason of `signal`, or an error when the time is up; `work` then continues
 * unobserved
 */
async function bounded(work: Promise<void>, timeoutMs: number, signal: AbortSignal): Promise<void> {
  work.catch(() => undefined);
  let cancel = (): void => undefined;
  let abort = (): void => undefined;
  const end = new Promise<never>((_resolve, reject) => {
    cancel = afterGranted(timeoutMs, () => reject(new Error(`it had not ended after ${timeoutMs / 1000} s`)));
    abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
  try {
    await Promise.race([work, end]);
  } finally {
    cancel();
    signal.removeEventListener('abort', abort);
  }
}

function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `${error.message}${cause}`;
}
