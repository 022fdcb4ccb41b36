import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { BenchError } from '../bench-error.js';
import { forkFile } from './child.js';

export interface BareAnswer {
  readonly status: number;
  /** Flat list of header names and values. */
  readonly headers: readonly string[];
  readonly body: string;
}

export interface BareServer {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

/** The api asks the kernel for the same backlog. A smaller backlog delays connections by a second. */
const BACKLOG = 4096;

const THIS_FILE = fileURLToPath(import.meta.url);

/** Runs node:http with a constant answer in a separate process, as the lowest possible cost of a Node server. */
export function startBareServer(answer: BareAnswer): Promise<BareServer> {
  const child = forkFile(THIS_FILE);
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      if (child.exitCode !== null || child.signalCode !== null) return resolve();
      child.once('exit', () => resolve());
      child.kill('SIGKILL'); // the server has no data to lose
    });
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new BenchError('the bare server ended right after its start')));
    child.once('message', (port) => resolve({ port: Number(port), pid: child.pid as number, stop }));
    child.send(answer);
  });
}

/** Sends one request, and returns the server's answer in a form that a bare server can repeat. */
export async function captureAnswer(url: string, request: RequestInit): Promise<BareAnswer> {
  const response = await fetch(url, request);
  const own = new Set(['connection', 'date', 'keep-alive', 'content-length', 'transfer-encoding']);
  const headers = [...response.headers].filter(([name]) => !own.has(name)).flat();
  const body = await response.text();
  return { status: response.status, headers: [...headers, 'Content-Length', String(Buffer.byteLength(body))], body };
}

if (process.argv[1] === THIS_FILE) serve();

/** Runs in the child process. */
function serve(): void {
  process.once('message', (message) => {
    const { status, headers, body } = message as BareAnswer;
    // Leaves the body unread, like an api that refuses from memory.
    const server = createServer((_req, res) => {
      res.writeHead(status, headers as string[]);
      res.end(body, 'latin1');
    });
    server.listen({ port: 0, host: '127.0.0.1', backlog: BACKLOG }, () => {
      process.send?.((server.address() as AddressInfo).port);
    });
  });
  process.once('disconnect', () => process.exit());
  process.on('SIGINT', () => undefined); // the bench ends this process
}
