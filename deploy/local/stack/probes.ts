import { createConnection } from 'mysql2/promise';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A server on this machine answers in milliseconds; one that is stopped or hangs never does. */
const PROBE_TIMEOUT_MS = 2_000;

/** A probe resolves null when the server answers as it should, else with the reason why not. It never throws. */
export type ProbeResult = string | null;

/** Redis answers PONG; while it loads its file it answers -LOADING. */
export function probeRedis(port: number): Promise<ProbeResult> {
  return talk(port, 'PING\r\n', (reply) => (reply.startsWith('+PONG') ? null : reply.trim()));
}

/** Somebody accepts connections. Says nothing about a process that is stopped: the kernel accepts for it. */
export function probePort(port: number): Promise<ProbeResult> {
  return talk(port, null, () => null);
}

/** A real connection and a real statement: MariaDB opens its port before it can serve. */
export async function probeMariadb(url: string): Promise<ProbeResult> {
  try {
    const connection = await createConnection({ uri: url, connectTimeout: PROBE_TIMEOUT_MS });
    connection.on('error', () => undefined); // it is thrown by the query as well
    try {
      await connection.query({ sql: 'SELECT 1', timeout: PROBE_TIMEOUT_MS });
      await connection.end();
      return null;
    } finally {
      connection.destroy();
    }
  } catch (error) {
    return reasonOf(error);
  }
}

/** Connects, sends, and judges the first bytes that come back; without a request the connection is enough. */
function talk(port: number, request: string | null, judge: (reply: string) => ProbeResult): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const end = (result: ProbeResult): void => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, () => end(`no answer within ${PROBE_TIMEOUT_MS} ms`));
    socket.on('error', (error) => end(reasonOf(error)));
    socket.on('close', () => end('the connection was closed'));
    socket.on('connect', () => (request === null ? end(null) : socket.write(request)));
    socket.on('data', (data) => end(judge(data.toString('utf8'))));
  });
}

export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return message || code || 'it failed without a reason';
}

export interface WaitOptions {
  readonly timeoutMs: number;
  readonly everyMs: number;
  /** Ends the wait early; the wait then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Asks again and again until the answer is yes.
 * @param check resolves true to end the wait; what it throws is fatal and ends it too
 * @returns false when the time is up
 */
export async function waitUntil(check: () => boolean | Promise<boolean>, options: WaitOptions): Promise<boolean> {
  const endsAtMs = performance.now() + options.timeoutMs;
  while (true) {
    options.signal?.throwIfAborted();
    if (await check()) return true;
    if (performance.now() >= endsAtMs) return false;
    await sleep(options.everyMs);
  }
}
