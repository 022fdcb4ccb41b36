import { createConnection } from 'mysql2/promise';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectByTls, type ConnectionOptions } from 'node:tls';
import { connectionOptions, type MysqlServer } from '../../../src/mysql/server.js';
import type { CertificateFiles } from './certificates.js';
import { GrantedTime } from './granted-time.js';

/** A local server answers in milliseconds, unless it is stopped or hangs. */
const PROBE_TIMEOUT_MS = 2_000;

/** Null if the server answers correctly, otherwise the reason. A probe never throws. */
export type ProbeResult = string | null;

/**
 * Checks that Redis answers PONG. While Redis loads its file, it answers -LOADING. A Redis that an older version of
 * this stack started without a password refuses AUTH but serves.
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

/** Checks that the port accepts connections. The kernel accepts them even for a stopped process. */
export function probePort(port: number): Promise<ProbeResult> {
  return talk(port, null, () => null);
}

/** Opens a real connection and runs a statement, because a server opens its port before it can serve. */
export async function probeMysql(server: MysqlServer): Promise<ProbeResult> {
  try {
    const connection = await createConnection({ ...connectionOptions(server), connectTimeout: PROBE_TIMEOUT_MS });
    connection.on('error', () => undefined); // a failed query throws the error as well
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

/** Connects, sends, and judges the received bytes until they suffice. Without a request, the connection suffices. */
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
  /** Timeout in granted time. */
  readonly timeoutMs: number;
  readonly everyMs: number;
  /** Ends the wait early, which then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Repeats a check until it is true.
 * @param check resolves true to end the wait; its errors are fatal and end the wait
 * @returns false after the timeout
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
