import type { Sale } from '../../src/core/sale.js';
import { Arena, type ArenaParts } from './context.js';
import { drainHalfMessages, forgetProducers } from './harness/broker.js';
import { mendServers, type StackHands } from './harness/stack-controls.js';
import { until } from './harness/wait.js';
import { idsOf, nameOf, NO_FIGURES, type RowResult } from './scenario.js';

/** Bounds a row as a whole; what it promises about time it asserts itself. */
const RUN_TIMEOUT_MS = 180_000;

export interface RunRowParts extends ArenaParts {
  /** Ends the row early; it is red then. */
  readonly signal: AbortSignal;
  /** Told of the sales of a row that is over. */
  readonly onOver?: (sales: readonly Sale[], outcome: 'green' | 'red') => Promise<void>;
  /** The end of each log of a row that failed. */
  readonly onLogs: (text: string) => void;
}

/** Runs a row once: its fault, then rest and invariants. Whatever happens, its programs end and the servers run. */
export async function runRow(parts: RunRowParts): Promise<RowResult> {
  const { row, seed, stack, signal } = parts;
  const base = { row: nameOf(row), ids: idsOf(row), title: row.title, seed };
  const reason = row.skip?.() ?? null;
  const nothing = { figures: NO_FIGURES, recoveryMs: null, tookMs: 0, bites: [], findings: [] };
  if (reason !== null) return { ...base, ...nothing, outcome: 'skipped', reason };

  const startedMs = performance.now();
  const arena = new Arena(parts);
  let failure: string | null = null;
  let findings: string[] = [];
  try {
    if (row.drained) await drainHalfMessages(stack);
    await bounded(row.run(arena), row.timeoutMs ?? RUN_TIMEOUT_MS, signal);
    await bounded(arena.conclude(), RUN_TIMEOUT_MS, signal);
  } catch (error) {
    failure = sentenceOf(error);
    if (!signal.aborted) {
      parts.onLogs(arena.programs.logTails());
      findings = await findingsBeyond(failure, arena);
    }
  }
  await arena.close();
  if (row.alone && !signal.aborted) {
    await mended(stack).catch((error: unknown) => (failure ??= sentenceOf(error)));
  }
  if (!signal.aborted) await forgetDead(arena, parts);
  const figures = await arena.figures().catch(() => null); // only servers that run have books to read
  if (figures === null) failure ??= 'its books could not be read';
  if (!signal.aborted) await parts.onOver?.(arena.sales, failure === null ? 'green' : 'red');
  return {
    ...base,
    ...{ outcome: failure === null ? 'green' : 'red', reason: failure, figures, bites: arena.bites, findings },
    ...{ recoveryMs: arena.recoveryMs, tookMs: Math.round(performance.now() - startedMs) },
  };
}

/** Every server runs, and the hands in them are connected again. */
async function mended({ servers, redis }: StackHands): Promise<void> {
  await mendServers(servers);
  await until('Redis answers', async () => (await redis.redis.ping()) === 'PONG');
}

/** The broker forgets the apis that this row has killed, so that none of the next row waits for its check-backs. */
async function forgetDead({ programs }: Arena, { row, stack, onLogs }: RunRowParts): Promise<void> {
  const pids = programs.all.filter(({ name, running }) => name === 'api' && !running).map(({ pid }) => pid);
  await forgetProducers(stack, pids).catch((error: unknown) => {
    onLogs(`The broker keeps apis of ${nameOf(row)} that are gone: ${sentenceOf(error)}`);
  });
}

/** What the books of a failed row say that its failure does not say already: the first finding of each invariant. */
async function findingsBeyond(failure: string, arena: Arena): Promise<string[]> {
  const findings = await arena.findings().catch(() => []);
  const beyond = findings.filter((finding) => !failure.includes(finding));
  const invariantOf = (finding: string): string => finding.slice(0, 'I1'.length);
  return beyond.filter((one, index) => beyond.findIndex((other) => invariantOf(other) === invariantOf(one)) === index);
}

/** @throws what `work` throws, the reason of `signal`, or that the time is up; `work` then goes on unseen */
async function bounded(work: Promise<void>, timeoutMs: number, signal: AbortSignal): Promise<void> {
  work.catch(() => undefined);
  let timer: NodeJS.Timeout | undefined;
  let abort = (): void => undefined;
  const end = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`it was not over after ${timeoutMs / 1000} s`)), timeoutMs);
    abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
  try {
    await Promise.race([work, end]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `${error.message}${cause}`;
}
