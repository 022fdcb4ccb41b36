import { connect } from 'node:net';
import { parseEndpoint } from './client-options.js';

/** `/readyz` answers within a second, with the reason. */
const CONNECT_TIMEOUT_MS = 700;

export type BrokerProbe =
  | { readonly state: 'reachable' }
  /** `detail` is for the operator who reads `/readyz`. */
  | { readonly state: 'unreachable' | 'failing'; readonly detail: string };

/**
 * Checks that the proxy accepts connections and that the last call of the channel succeeded. The check costs a TCP
 * connect and no message, so `/readyz` can run it every second. Never throws.
 * @param endpoint `host:port`
 * @param health of the channel that matters to the asking process; without it only the port is probed
 */
export async function probeBroker(endpoint: string, health?: ChannelHealth): Promise<BrokerProbe> {
  const refusal = await tryConnect(endpoint);
  if (refusal !== null) return { state: 'unreachable', detail: `${endpoint}: ${refusal}` };
  if (health?.isFailing()) return { state: 'failing', detail: `${endpoint} is open, but: ${health.lastError}` };
  return { state: 'reachable' };
}

/** Returns null if the port is open, else the reason. */
async function tryConnect(endpoint: string): Promise<string | null> {
  let host: string;
  let port: number;
  try {
    ({ host, port } = parseEndpoint(endpoint));
  } catch (error) {
    return (error as Error).message;
  }
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (answer: string | null): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => end(`no connection within ${CONNECT_TIMEOUT_MS} ms`));
    socket.once('connect', () => end(null));
    socket.once('error', (error) => end(error.message));
  });
}

/** How long a failure counts. An unready process gets no calls, so nothing else would clear the failure. */
const FAILURE_COUNTS_MS = 10_000;

/** Tracks how the last call of a channel to its broker went, and its last error. */
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

  /** Returns true if the last call failed recently. */
  isFailing(): boolean {
    return this.#lastCallFailed && performance.now() - this.#lastFailureMs < FAILURE_COUNTS_MS;
  }
}
