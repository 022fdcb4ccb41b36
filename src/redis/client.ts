import { Cluster, Redis, type ClusterOptions, type RedisOptions as DriverOptions } from 'ioredis';
import type { Live } from '../core/live.js';
import { Tls, type TlsNames, type TlsSettings } from '../core/tls.js';
import { isByTls, readRedisAddress, type RedisAddress, type RedisHost } from './address.js';

/** A server, the master behind sentinels, or a cluster, where the driver finds the server of each key. */
export type RedisClient = Redis | Cluster;

export interface RedisOptions extends TlsSettings {
  /** Form of REDIS_URL: a server, sentinels, or a cluster. Uses TLS if the scheme begins with `rediss`. */
  readonly url: string;
  /** Password for the servers. Replaces the password in `url` unless it is empty. Read again for each connection. */
  readonly password?: Live;
  readonly sentinelUser?: string;
  /** Read again for each connection. Empty: no password. */
  readonly sentinelPassword?: Live;
  /** How long a reply may take, ms. After that, the outcome of the command is unknown. */
  readonly replyTimeoutMs: number;
  /** Default: `CONNECT_TIMEOUT_MS`. */
  readonly connectTimeoutMs?: number;
  /** How long a marker is kept after the end of its batch, ms. Default: four days. */
  readonly markerLifeMs?: number;
}

/** Long enough for three TCP attempts. A server that has not answered by then is down. */
export const CONNECT_TIMEOUT_MS = 3000;

/** Upper bound of the reconnect delay, which starts short. */
const RECONNECT_MAX_MS = 1000;

/** Without any reply for this many time-outs, a connection counts as half-open. TCP would take minutes to notice. */
const SILENT_REPLY_TIMEOUTS = 2;

/**
 * How often a cluster may redirect a command. A server that redirects, or replies TRYAGAIN, has not run the command, so
 * only then is a `deduct` sent again.
 */
const REDIRECTIONS_MAX = 5;
/** While a slot moves, its keys are split between two servers. */
const TRY_AGAIN_MS = 50;

const AGAIN_AFTER_END_MS = 100;

const reconnectDelayMs = (attempt: number): number => Math.min(50 * attempt, RECONNECT_MAX_MS);

/**
 * The client never queues commands while disconnected and never sends a command twice: a purchase must fail within
 * milliseconds when Redis is down, and a `deduct` must not be repeated unnoticed (protocol rule 2). It is not connected
 * yet.
 */
export function createClient(options: RedisOptions): RedisClient {
  const address = readRedisAddress(options.url);
  return address.kind === 'cluster' ? createCluster(address, options) : createServerClient(address, options);
}

export const REDIS_TLS_NAMES: TlsNames = {
  prefix: 'REDIS_TLS',
  address: 'REDIS_URL',
  off: 'begin REDIS_URL with redis instead of rediss',
};

/** Null if the connection is not encrypted. */
export const tlsOf = (options: RedisOptions): Tls | null =>
  isByTls(options.url) ? new Tls(REDIS_TLS_NAMES, options) : null;

function createServerClient(
  address: Exclude<RedisAddress, { kind: 'cluster' }>,
  options: RedisOptions,
  more: DriverOptions = {},
): Redis {
  const driver = { ...connectionOptions(options), enableOfflineQueue: false, retryStrategy: reconnectDelayMs, ...more };
  const tls = tlsOf(options);
  if (address.kind === 'server') {
    const redis = new Redis(address.url, driver); // not connected yet: the driver reads its options when it connects
    if (tls !== null) redis.options.tls = tls.optionsFor(redis.options.host);
    return withPasswords(redis, options);
  }
  const { sentinels, master, db, login } = address;
  const redis = new Redis({
    ...driver,
    ...login,
    ...(options.sentinelUser ? { sentinelUsername: options.sentinelUser } : {}),
    ...(tls === null ? {} : { tls: tls.optionsFor(), sentinelTLS: tls.optionsFor(), enableTLSForSentinelMode: true }),
    sentinels: sentinels.map((one) => ({ ...one })),
    name: master,
    db,
    sentinelRetryStrategy: reconnectDelayMs,
    // handles a master that stopped without closing its connections: the sentinels name another master
    failoverDetector: true,
    // handles a master that became a replica: reconnects, but does not resend the refused command
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
  connectAgainAfterEnd(redis);
  return withPasswords(redis, options);
}

/**
 * Restarts the driver until a caller closes it. The driver gives up for good, with status `end`, if sentinels name
 * another master while it connects: its `failoverDetector` then removes the connector.
 */
export function connectAgainAfterEnd(redis: Redis): void {
  let isClosed = false;
  const disconnect = redis.disconnect.bind(redis);
  redis.disconnect = (reconnect = false) => {
    if (!reconnect) isClosed = true;
    disconnect(reconnect);
  };
  redis.on('end', () => {
    const again = (): void => (isClosed ? undefined : void redis.connect().catch(() => undefined)); // may end again
    setTimeout(again, AGAIN_AFTER_END_MS).unref();
  });
}

/** Updates the options of the driver before each connection, so that passwords in files are current. */
function withPasswords(redis: Redis, { password, sentinelPassword }: RedisOptions): Redis {
  for (const [name, now] of Object.entries({ password, sentinelPassword })) {
    if (now === undefined || now() === '') continue; // the password in the url applies
    Object.defineProperty(redis.options, name, { get: now, enumerable: true, configurable: true });
  }
  return redis;
}

/** Certificates are issued for names. Otherwise the driver would connect to the address behind the name. */
const nameItself: NonNullable<ClusterOptions['dnsLookup']> = (name, done) => done(null, name);

function createCluster({ nodes, login }: RedisAddress & { kind: 'cluster' }, options: RedisOptions): Cluster {
  const tls = tlsOf(options);
  const cluster = new Cluster([...nodes], {
    lazyConnect: true,
    ...(tls === null ? {} : { dnsLookup: nameItself }),
    enableOfflineQueue: false,
    clusterRetryStrategy: reconnectDelayMs,
    slotsRefreshTimeout: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    maxRedirections: REDIRECTIONS_MAX,
    // After a lost connection, no command that may have run is sent again. Buyers hear of a cluster that is down.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: TRY_AGAIN_MS,
    redisOptions: { ...connectionOptions(options), ...login, ...(tls === null ? {} : { tls: tls.optionsFor() }) },
  });
  return cluster.on('+node', (server: Redis) => void withPasswords(server, options));
}

/**
 * Creates a separate connection, not connected yet. Every server of a cluster gets all messages, so one of the servers
 * in REDIS_URL is enough; if it is down, the next server.
 */
export function createSubscriberClient(options: RedisOptions): Redis {
  const address = readRedisAddress(options.url);
  // PurchaseNotifications resubscribes itself, and a subscriber may be without replies for long
  const listening = { autoResubscribe: false, socketTimeout: undefined };
  if (address.kind !== 'cluster') return createServerClient(address, options, listening);
  const tls = tlsOf(options);
  let tried = 0;
  const nextNode = (): RedisHost => address.nodes[tried++ % address.nodes.length] as RedisHost;
  const redis: Redis = new Redis({
    ...connectionOptions(options),
    ...listening,
    ...address.login,
    ...nextNode(),
    ...(tls === null ? {} : { tls: tls.optionsFor() }),
    enableOfflineQueue: false,
    retryStrategy: (attempt) => {
      Object.assign(redis.options, nextNode()); // these options are read at each connect
      return reconnectDelayMs(attempt);
    },
  });
  return withPasswords(redis, options);
}

function connectionOptions({ replyTimeoutMs, connectTimeoutMs = CONNECT_TIMEOUT_MS }: Omit<RedisOptions, 'url'>) {
  return {
    lazyConnect: true,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: replyTimeoutMs,
    socketTimeout: SILENT_REPLY_TIMEOUTS * replyTimeoutMs,
    connectTimeout: connectTimeoutMs,
  } satisfies DriverOptions;
}

/** Returns all servers that may hold keys: the server, or the current masters of a cluster. */
export const mastersOf = (redis: RedisClient): readonly Redis[] =>
  redis instanceof Cluster ? redis.nodes('master') : [redis];
