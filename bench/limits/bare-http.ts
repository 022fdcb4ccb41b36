import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { BenchError } from '../bench-error.js';

/** What the bare server answers to everything. */
export interface BareAnswer {
  readonly status: number;
  /** Flat list of names and values. */
  readonly headers: readonly string[];
  readonly body: string;
}

export interface BareServer {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

const CHILD = fileURLToPath(new URL('./bare-http-child.ts', import.meta.url));

/** node:http with one constant answer, in a process of its own: the floor under every server in Node. */
export function startBareServer(answer: BareAnswer): Promise<BareServer> {
  const child = fork(CHILD, { execArgv: ['--import', 'tsx'], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) return resolve();
      child.once('exit', () => resolve());
      child.kill('SIGKILL'); // it keeps nothing
    });
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new BenchError('the bare server ended at its start')));
    child.once('message', (port) => resolve({ port: Number(port), pid: child.pid as number, stop }));
    child.send(answer);
  });
}

/** Asks once, and gives back the answer of a server as a bare server can repeat it. */
export async function captureAnswer(url: string, request: RequestInit): Promise<BareAnswer> {
  const response = await fetch(url, request);
  const own = new Set(['connection', 'date', 'keep-alive', 'content-length', 'transfer-encoding']);
  const headers = [...response.headers].filter(([name]) => !own.has(name)).flat();
  const body = await response.text();
  return { status: response.status, headers: [...headers, 'Content-Length', String(Buffer.byteLength(body))], body };
}
