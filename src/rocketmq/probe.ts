import { connect, type Socket } from 'node:net';
import { connect as connectByTls } from 'node:tls';
import type { Tls } from '../core/tls.js';
import { parseEndpoint, proxiesOf } from './client-options.js';

/** `/readyz` must answer within a second, with the reason. */
const ANSWER_TIMEOUT_MS = 700;

export type BrokerProbe =
  | { readonly state: 'reachable' }
  /** `detail` is for the operator who reads `/readyz`. */
  | { readonly state: 'unreachable' | 'failing'; readonly detail: string };

/**
 * Checks that a proxy speaks HTTP/2 and that the last call of the channel succeeded. An open port proves nothing,
 * because a stopped process still accepts connections. Sends no message, so `/readyz` can run it every second. Never
 * throws.
 * @param endpoint `host:port` of each proxy, separated by commas
 * @param health of the caller's channel; if absent, only the proxy is checked
 * @param tls of gRPC; null: not encrypted
 */
export async function probeBroker(
  endpoint: string,
  health?: ChannelHealth,
  tls: Tls | null = null,
): Promise<BrokerProbe> {
  const proxies = proxiesOf(endpoint);
  const refusals = await Promise.all(proxies.map((proxy) => greet(proxy, tls)));
  if (!refusals.includes(null)) {
    return { state: 'unreachable', detail: proxies.map((proxy, nth) => `${proxy}: ${refusals[nth]}`).join('; ') };
  }
  if (health?.isFailing()) return { state: 'failing', detail: `${endpoint} answers, but: ${health.lastError}` };
  return { state: 'reachable' };
}

/** Start of an HTTP/2 connection (RFC 9113, 3.4): a fixed text and empty settings. Any server answers it at once. */
const GREETING = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
]);

/** Null if the server answers the greeting, otherwise the reason. */
async function greet(endpoint: string, tls: Tls | null): Promise<string | null> {
  let socket: Socket;
  try {
    const { host, port } = parseEndpoint(endpoint);
    const byTls = (own: Tls): Socket => connectByTls({ host, port, ALPNProtocols: ['h2'], ...own.optionsFor(host) });
    socket = tls === null ? connect({ host, port }) : byTls(tls);
  } catch (error) {
    return (error as Error).message;
  }
  socket.write(GREETING);
  return new Promise((resolve) => {
    const end = (answer: string | null): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => end(`no answer within ${ANSWER_TIMEOUT_MS} ms`));
    socket.once('data', () => end(null));
    socket.once('error', (error) => end(error.message));
    socket.once('end', () => end('it closes the connection'));
  });
}

/** How long a failure counts. A process that is not ready gets no calls, so nothing else would clear the failure. */
const FAILURE_COUNTS_MS = 10_000;

/** Remembers how the last call of a channel to its broker went, and its last error. */
export class ChannelHealth {
  lastError: string | null = null;
  #lastFailureMs = 0;
  #lastCallFailed = false;

  succeeded(): void {
    this.#lastCallFailed = false;
  }

  failed(error: unknown): void {
    this.#lastFailureMs = performance.now();
    this.lastError = error instanceof Error ? error.message : String(error);
    this.#lastCallFailed = true;
  }

  isFailing(): boolean {
    return this.#lastCallFailed && performance.now() - this.#lastFailureMs < FAILURE_COUNTS_MS;
  }
}
