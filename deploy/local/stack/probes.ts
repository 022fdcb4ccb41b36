import { createConnection } from 'mysql2/promise';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectByTls, type ConnectionOptions } from 'node:tls';
import { connectionOptions, type MysqlServer } from '../../../src/mysql/server.js';
import type { CertificateFiles } from './certificates.js';
import { GrantedTime } from './granted-time.js';

/** A server on this machine answers in milliseconds; one that is stopped or hangs never does. */
const PROBE_TIMEOUT_MS = 2_000;

/** A probe resolves null when the server answers as it should, else with the reason why not. It never throws. */
export type ProbeResult = string | null;

/**
 * Redis answers PONG; while it loads its file it answers -LOADING. One that was started without a password, by an older
 * version of this stack, refuses AUTH and serves all the same.
 */
export function probeRedis(
  port: number,
  password?: string,
  secure: { readonly user: string; readonly certificates: CertificateFiles } | null = null,
): Promise<ProbeResult> {
  const login = secure === null ? `AUTH ${password}` : `AUTH ${secure.user} ${password}`;
  const commands = password === undefined ? ['PING'] : [login, 'PING'];
  const judge = (replies: string): ProbeResult | undefined => {
    const lines = replies.split('\r\n');
    if (lines.length <= commands.length) return undefined; // more is on its way
    const reply = lines[commands.length - 1];
    return reply === '+PONG' ? null : replies.trim();
  };
  const request = commands.map((command) => `${command}\r\n`).join('');
  return talk(port, request, judge, secure === null ? null : tlsOptions(secure.certificates));
}

const tlsOptions = ({ ca, client, clientKey }: CertificateFiles): ConnectionOptions => ({
  ca: readFileSync(ca),
  cert: readFileSync(client),
  key: readFileSync(clientKey),
});

/** Somebody accepts connections. Says nothing about a process that is stopped: the kernel accepts for it. */
export function probePort(port: number): Promise<ProbeResult> {
  return talk(port, null, () => null);
}

/** A real connection and a real statement: a server opens its port before it can serve. */
export async function probeMysql(server: MysqlServer): Promise<ProbeResult> {
  try {
    const connection = await createConnection({ ...connectionOptions(server), connectTimeout: PROBE_TIMEOUT_MS });
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

/** Connects, sends, and judges what has come back, until that is enough; without a request the connection is. */
function talk(
  port: number,
  request: string | null,
  judge: (reply: string) => ProbeResult | undefined,
  tls: ConnectionOptions | null = null,
): Promise<ProbeResult> {
  return new Promise((resolve) => {
    let received = '';
    const where = { port, host: '127.0.0.1' };
    const socket = tls === null ? connect(where) : connectByTls({ ...where, ...tls });
    const end = (result: ProbeResult): void => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, () => end(`no answer within ${PROBE_TIMEOUT_MS} ms`));
    socket.on('error', (error) => end(reasonOf(error)));
    socket.on('close', () => end('the connection was closed'));
    socket.on('connect', () => (request === null ? end(null) : socket.write(request)));
    socket.on('data', (data) => {
      received += data.toString('latin1');
      const result = judge(received);
      if (result !== undefined) end(result);
    });
  });
}

export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return message || code || 'it failed without a reason';
}

export interface WaitOptions {
  /** In granted time. */
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
  const time = new GrantedTime();
  while (true) {
    options.signal?.throwIfAborted();
    if (await check()) return true;
    if (time.readMs() >= options.timeoutMs) return false;
    await sleep(options.everyMs);
  }
}
