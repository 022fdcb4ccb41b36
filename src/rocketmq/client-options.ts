import type { ILogger } from 'rocketmq-client-nodejs';
import { OperationalError } from '../core/errors.js';
import type { Log } from '../core/ports/log.js';
import type { BrokerAccess } from './credentials.js';

/** Shortest request time-out that the client accepts. */
const REQUEST_TIMEOUT_MS_MIN = 1000;
/** Long enough for a broker that pauses for garbage collection, and short enough for a waiting buyer. */
export const REQUEST_TIMEOUT_MS_DEFAULT = 3000;

export interface ConnectionOptions extends BrokerAccess {
  /** `host:port` of each proxy, separated by commas. */
  readonly endpoint: string;
  /**
   * Sends every call to `endpoint`, whatever address the broker names. For a broker behind a port mapping or a proxy,
   * not for several brokers with their own proxies. Default false.
   */
  readonly pinEndpoint?: boolean;
  /** Time-out of a call (send, commit, ack …), ms. Default: 3000; at least 1000. */
  readonly requestTimeoutMs?: number;
  readonly log: Log;
  readonly start?: StartLimits;
}

export interface StartLimits {
  /** Time-out of a `startup()`, ms. Default: 20000. */
  readonly startupTimeoutMs?: number;
  /** Total number of instances that are tried. Default: 3. */
  readonly attempts?: number;
}

/** A client serves only one topic, because a second one can make its start hang. */
export interface ClientAddress {
  /** `host:port` of each proxy, separated by commas. */
  readonly endpoint: string;
  readonly topic: string;
  /** Set only for consumers. */
  readonly group?: string;
}

/** Matches a name or IPv4 address, with a port. The client misreads IPv6 addresses and URLs. */
const ENDPOINT = /^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?):([0-9]{1,5})$/;

export const proxiesOf = (endpoint: string): readonly string[] => endpoint.split(',');

/** @throws OperationalError, not retryable, because the setting is wrong */
export function parseEndpoint(endpoint: string): { readonly host: string; readonly port: number } {
  const match = ENDPOINT.exec(endpoint);
  const port = Number(match?.[3]);
  if (!match?.[1] || port < 1 || port > 65_535) {
    throw new OperationalError(
      'rocketmq',
      `ROCKETMQ_ENDPOINT must be host:port such as 127.0.0.1:18081, separated by commas (no url or IPv6), not "${endpoint}"`,
      { retryable: false },
    );
  }
  return { host: match[1], port };
}

/** Returns the client options that producer and consumer share. */
export function baseClientOptions(address: ClientAddress, options: ConnectionOptions) {
  const proxies = proxiesOf(address.endpoint);
  for (const proxy of proxies) parseEndpoint(proxy);
  return {
    endpoints: proxies.join(';'), // the separator that the client uses
    namespace: '',
    ...(options.credentials === null ? {} : { sessionCredentials: options.credentials }),
    requestTimeout: Math.max(options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS_DEFAULT, REQUEST_TIMEOUT_MS_MIN),
    logger: clientLogger(options.log, address),
    pinEndpoint: options.pinEndpoint ?? false,
    tls: options.tls ?? null,
  };
}

/**
 * The client's own logger writes below HOME, and without `debug` its rollback throws before it sends. Its info, a line
 * per commit, is dropped: our adapters log what matters.
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
 * A telemetry stream may raise this after its release, when it has no listener. The `uncaughtException` handler of a
 * stopping process may ignore it.
 */
export function isClientShutdownNoise(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, details } = error as { code?: unknown; details?: unknown };
  return code === 1 && typeof details === 'string' && /cancelled/i.test(details);
}
