import type { ILogger } from 'rocketmq-client-nodejs';
import { OperationalError } from '../core/errors.js';
import type { Log } from '../core/ports/log.js';
import type { BrokerAccess } from './credentials.js';

/** The client refuses a request time-out below this. */
const REQUEST_TIMEOUT_MS_MIN = 1000;
/** Long enough for a broker that pauses for garbage, short enough for a buyer who waits. */
export const REQUEST_TIMEOUT_MS_DEFAULT = 3000;

/** Options of every channel and source. */
export interface ConnectionOptions extends Pick<BrokerAccess, 'credentials' | 'tls'> {
  /** `host:port` of the gRPC endpoint. */
  readonly endpoint: string;
  /**
   * Every call goes to `endpoint`, whatever address the broker names; default false. For a broker behind a port
   * mapping or a proxy; wrong for several brokers that run their own proxy each.
   */
  readonly pinEndpoint?: boolean;
  /** One call (send, commit, ack …), in ms; default 3000, at least 1000. */
  readonly requestTimeoutMs?: number;
  readonly log: Log;
  readonly start?: StartLimits;
}

/** How long a start may take. */
export interface StartLimits {
  /** One `startup()`, in ms; default 20000. */
  readonly startupTimeoutMs?: number;
  /** New instances tried in all; default 3. */
  readonly attempts?: number;
}

/** Where the broker is and who asks. One client instance serves one topic (a second one can hang its start). */
export interface ClientAddress {
  /** `host:port` of the gRPC endpoint. */
  readonly endpoint: string;
  readonly topic: string;
  /** Consumers only. */
  readonly group?: string;
}

/** Name or IPv4, and port. The client misreads a list, IPv6 or a url. */
const ENDPOINT = /^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?):([0-9]{1,5})$/;

/**
 * Takes `host:port` apart.
 * @throws OperationalError, not retryable: the setting is wrong
 */
export function parseEndpoint(endpoint: string): { readonly host: string; readonly port: number } {
  const match = ENDPOINT.exec(endpoint);
  const port = Number(match?.[3]);
  if (!match?.[1] || port < 1 || port > 65_535) {
    throw new OperationalError(
      'rocketmq',
      `ROCKETMQ_ENDPOINT must be one host:port such as 127.0.0.1:18081 (no url, list or IPv6), not "${endpoint}"`,
      { retryable: false },
    );
  }
  return { host: match[1], port };
}

/** The part of the client's options that producer and consumer share. */
export function baseClientOptions(address: ClientAddress, options: ConnectionOptions) {
  parseEndpoint(address.endpoint);
  return {
    endpoints: address.endpoint,
    namespace: '',
    ...(options.credentials === null ? {} : { sessionCredentials: options.credentials }),
    requestTimeout: Math.max(options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS_DEFAULT, REQUEST_TIMEOUT_MS_MIN),
    logger: clientLogger(options.log, address),
    pinEndpoint: options.pinEndpoint ?? false,
    tls: options.tls ?? null,
  };
}

/**
 * The client's own logger writes below HOME, and without `debug` its rollback throws before it sends. It logs every
 * commit at info, so its info is dropped: our adapters log what matters.
 */
export function clientLogger(log: Log, address: ClientAddress): Required<ILogger> {
  const fields = { topic: address.topic, group: address.group };
  return {
    debug: () => undefined,
    info: () => undefined,
    warn: (...args: unknown[]) => log.debug({ ...fields, client: text(args) }, 'rocketmq client warns'),
    error: (...args: unknown[]) => log.debug({ ...fields, client: text(args) }, 'rocketmq client reports an error'),
    close: () => undefined,
  };
}

function text(args: unknown[]): string {
  let next = 1;
  const first = args[0];
  if (typeof first !== 'string') return args.map(String).join(' ');
  return first.replace(/%[sdjo]/g, (mark) => (next < args.length ? String(args[next++]) : mark));
}

/**
 * True for the error that a client's telemetry stream may still raise after its release, without a listener.
 * For the `uncaughtException` handler of a process that is stopping: this one may be ignored.
 */
export function isClientShutdownNoise(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, details } = error as { code?: unknown; details?: unknown };
  return code === 1 && typeof details === 'string' && /cancelled/i.test(details);
}
