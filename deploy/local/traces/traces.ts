import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { onNpmEnd } from '../npm-watch.js';
import { ensureZipkin } from '../stack/artifacts.js';
import { DEFAULT_ARTIFACTS_DIR } from '../stack/paths.js';
import { assertPortsFree } from '../stack/ports.js';
import { waitUntil } from '../stack/probes.js';
import { StackError } from '../stack/stack-error.js';
import { findJava } from '../stack/tools.js';
import { startBridge } from './bridge.js';

/** The default ports of the standard and of Zipkin. */
export const OTLP_PORT = 4318;
export const ZIPKIN_PORT = 9411;

export interface TracesFlags {
  readonly port: number;
  readonly zipkinPort: number;
}

export const TRACES_HELP = `
Zipkin keeps spans in memory, and forgets them with Ctrl-C. Its program (131 MB) is downloaded once, by Maven. It speaks no OTLP, so a
small server beside it translates; the links that Zipkin has no room for become tags.`;

/** Allows for a cold JVM on a busy machine. */
const START_MAX_MS = 120_000;
const STOP_MAX_MS = 10_000;
const POLL_MS = 200;
const OUTPUT_KEPT = 4_000;

/** Runs Zipkin and the server that feeds it until the signal. @throws StackError */
export async function runTraces({ port, zipkinPort }: TracesFlags, signal: AbortSignal): Promise<void> {
  onNpmEnd(signal, () => process.kill(process.pid, 'SIGTERM'));
  const claimed = [
    { port, label: 'OTLP', flag: '--port' },
    { port: zipkinPort, label: 'Zipkin', flag: '--zipkin-port' },
  ];
  for (const { flag, ...one } of claimed) assertPortsFree([one], `choose another with ${flag} <port>`);
  const java = await findJava(process.env);
  const jar = await ensureZipkin(DEFAULT_ARTIFACTS_DIR, { onText: (text) => console.error(text), signal });
  const zipkin = spawn(java, zipkinArgs(jar, zipkinPort), { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [zipkin.stdout, zipkin.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-OUTPUT_KEPT)));
  }
  const url = `http://127.0.0.1:${zipkinPort}`;
  try {
    await untilHealthy(url, zipkin, () => output, signal);
    const bridge = await startBridge(port, url);
    try {
      signal.throwIfAborted();
      console.log(greeting(url, bridge.port));
      await Promise.race([once(signal, 'abort'), once(zipkin, 'exit')]);
      if (!signal.aborted) throw new StackError(`Zipkin ended by itself: ${lastLine(output)}`);
    } finally {
      await bridge.close();
    }
  } finally {
    await stop(zipkin);
  }
}

/** Replaces Zipkin's own list of ports, which listens on every address. */
const zipkinArgs = (jar: string, port: number): string[] => [
  '-Xms64m',
  '-Xmx512m',
  '-Darmeria.ports[0].address=127.0.0.1',
  `-Darmeria.ports[0].port=${port}`,
  '-Darmeria.ports[0].protocols[0]=http',
  '-jar',
  jar,
];

async function untilHealthy(
  url: string,
  zipkin: ChildProcess,
  output: () => string,
  signal: AbortSignal,
): Promise<void> {
  const isHealthy = async (): Promise<boolean> => {
    if (zipkin.exitCode !== null) throw new StackError(`Zipkin ended at its start: ${lastLine(output())}`);
    return fetch(`${url}/health`, { signal: AbortSignal.timeout(1_000) }).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  if (await waitUntil(isHealthy, { timeoutMs: START_MAX_MS, everyMs: POLL_MS, signal })) return;
  throw new StackError(`Zipkin is not ready after ${START_MAX_MS / 1000} s: ${lastLine(output())}`);
}

const lastLine = (output: string): string => output.trim().split('\n').at(-1)?.slice(0, 300) ?? 'it said nothing';

async function stop(zipkin: ChildProcess): Promise<void> {
  if (zipkin.exitCode !== null || zipkin.signalCode !== null) return;
  const ended = once(zipkin, 'exit');
  zipkin.kill('SIGTERM');
  const lastResort = setTimeout(() => zipkin.kill('SIGKILL'), STOP_MAX_MS);
  await ended;
  clearTimeout(lastResort);
}

const greeting = (zipkinUrl: string, otlpPort: number): string => `
Zipkin shows traces at ${zipkinUrl}. In another terminal, with every purchase recorded:

  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:${otlpPort} OTEL_TRACES_SAMPLER_ARG=1 npm start

Ctrl-C ends it and forgets the traces.`;
