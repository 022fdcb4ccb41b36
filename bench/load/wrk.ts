import { spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { BenchError } from '../bench-error.js';
import { requestFrame, type LoadGenerator, type LoadPlan, type LoadResult } from './load.js';
import { cpuTimes } from '../session/cpu.js';

const SCRIPT = fileURLToPath(new URL('./wrk.lua', import.meta.url));
/** One thread of wrk sends 100,000 requests a second; a second one would only take turns with the servers. */
const THREADS = 1;
/** How long answers may take after the end of the load before wrk is ended with requests open. */
const TAIL_SECONDS = 30;
/** A slower answer counts as an error. */
const TIMEOUT_SECONDS = 10;
const KILL_AFTER_MS = 5000;

/** What `done` of wrk.lua prints: counts, Unix ms, latencies in µs. */
export interface WrkReport {
  readonly sent: number;
  readonly stray: number;
  readonly ranOut: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly answered: number;
  readonly refused: number;
  readonly socketErrors: number;
  readonly timeouts: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** Finds the line of our script in what wrk prints. @throws BenchError with what it printed instead */
export function parseWrkOutput(output: string): WrkReport {
  const line = /^RESULT (\{.*\})$/m.exec(output)?.[1];
  if (line === undefined) throw new BenchError(`wrk gave no result: ${output.trim().slice(-500) || 'it was silent'}`);
  return JSON.parse(line) as WrkReport;
}

/** The stray requests of wrk.lua are no purchases: /healthz answers them 200. */
export function loadResultOf(report: WrkReport, cpuSeconds: number): LoadResult {
  const answered = report.answered - report.stray;
  return {
    sent: report.sent,
    answered,
    accepted: answered - report.refused,
    errors: report.socketErrors + report.timeouts,
    startedAtMs: report.startedAtMs,
    endedAtMs: report.endedAtMs,
    latency: {
      p50: report.p50 / 1000,
      p99: report.p99 / 1000,
      p999: report.p999 / 1000,
      max: report.max / 1000,
    },
    ranOutOfBuyers: report.ranOut > 0,
    cpuSeconds,
  };
}

/** @returns null when wrk is not on the PATH */
export function findWrk(): LoadGenerator | null {
  const { stdout, stderr, error } = spawnSync('wrk', ['-v'], { encoding: 'utf8', timeout: 5000 });
  const version = /^wrk (\S+)/m.exec(`${stdout ?? ''}${stderr ?? ''}`)?.[1];
  if (error !== undefined || version === undefined) return null;
  return { name: `wrk ${version}`, run: runWrk };
}

async function runWrk(plan: LoadPlan, signal: AbortSignal): Promise<LoadResult> {
  signal.throwIfAborted();
  const before = cpuTimes('self');
  const output = await wrk(plan, signal);
  const after = cpuTimes('self');
  // The only child that ended meanwhile: programs are not restarted under load.
  return loadResultOf(parseWrkOutput(output), (after?.children ?? 0) - (before?.children ?? 0));
}

function wrkArgs(plan: LoadPlan): string[] {
  const { port, path, buyers, connections, seconds } = plan;
  const { head, tail } = requestFrame(plan);
  const numbers = [buyers.recordBytes, buyers.first, buyers.count, THREADS, connections / THREADS, seconds * 1000];
  const limits = [
    '-t',
    THREADS,
    '-c',
    connections,
    '-d',
    `${seconds + TAIL_SECONDS}s`,
    '--timeout',
    `${TIMEOUT_SECONDS}s`,
  ];
  const target = ['-s', SCRIPT, `http://127.0.0.1:${port}${path}`];
  return [...limits, ...target, '--', buyers.path, ...numbers, head, tail].map(String);
}

/** Ends wrk as soon as its script has every answer: by SIGINT, on which wrk prints its report. */
function wrk(plan: LoadPlan, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('wrk', wrkArgs(plan), { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let drained = 0;
    let killTimer: NodeJS.Timeout | undefined;
    const end = (): void => {
      child.kill('SIGINT');
      killTimer ??= setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS);
    };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (line === 'drained') {
        if (++drained === THREADS) end();
      } else output += `${line}\n`;
    });
    signal.addEventListener('abort', end, { once: true });
    child.once('error', (cause) => reject(new BenchError(`wrk does not start: ${cause.message}`, { cause })));
    child.once('close', () => {
      clearTimeout(killTimer);
      signal.removeEventListener('abort', end);
      if (signal.aborted) reject(signal.reason as Error);
      else resolve(output);
    });
  });
}
