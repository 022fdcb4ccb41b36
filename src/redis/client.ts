import { Cluster, Redis, type ClusterOptions, type RedisOptions as DriverOptions } from 'ioredis';
import type { Live } from '../core/live.js';
import { Tls, type TlsNames, type TlsSettings } from '../core/tls.js';
import { isByTls, readRedisAddress, type RedisAddress, type RedisHost } from './address.js';

/** One server, the master that sentinels name, or a cluster: every command with keys goes where its keys are. */
export type RedisClient = Redis | Cluster;

export interface RedisOptions extends TlsSettings {
  /** As REDIS_URL: one server, sentinels, or a cluster; by TLS where it begins with `rediss`. */
  readonly url: string;
  /** Of the servers; takes the place of the one in `url`, unless it is empty. Read again with each connection. */
  readonly password?: Live;
  readonly sentinelUser?: string;
  /** Read again with each connection. Empty: sentinels are asked without. */
  readonly sentinelPassword?: Live;
  /** How long a reply may take; after it the outcome of the command is unknown. */
  readonly replyTimeoutMs: number;
  /** Default: `CONNECT_TIMEOUT_MS`. */
  readonly connectTimeoutMs?: number;
  /** How long the marker of a batch is kept after its end, ms; default four days. */
  readonly markerLifeMs?: number;
}

/** Three tries of TCP; a server that does not answer by then is down. */
export const CONNECT_TIMEOUT_MS = 3000;

/** Reconnect quickly at first, then at most this far apart. */
const RECONNECT_MAX_MS = 1000;

/** A connection without any reply for this many reply time-outs is half-open: TCP alone would take minutes to say so. */
const SILENT_REPLY_TIMEOUTS = 2;

/**
 * How often a cluster may send a command on. A server that sends it on, or says TRYAGAIN, has not run it, so this is
 * the one way in which a `deduct` is sent again.
 */
const REDIRECTIONS_MAX = 5;
/** Between tries while a slot with some keys here and some there moves. */
const TRY_AGAIN_MS = 50;

const AGAIN_AFTER_END_MS = 100;

const reconnectDelayMs = (attempt: number): number => Math.min(50 * attempt, RECONNECT_MAX_MS);

/**
 * A client that never queues while disconnected and never sends a command twice: a purchase must fail within
 * milliseconds when Redis is away, and a `deduct` must not be repeated behind our back (protocol rule 2).
 * It is not connected yet.
 */
export function createClient(options: RedisOptions): RedisClient {
  const address = readRedisAddress(options.url);
  return address.kind === 'cluster' ? createCluster(address, options) : createServerClient(address, options);
}

export const REDIS_TLS_NAMES: TlsNames = {
  prefix: 'REDIS_TLS',
  address: 'REDIS_URL',
  off: 'begin REDIS_URL with redis in the place of rediss',
};

/** Null: in plain text. */
export const tlsOf = (options: RedisOptions): Tls | null =>
  isByTls(options.url) ? new Tls(REDIS_TLS_NAMES, options) : null;

/** One server, or the master that sentinels name. */
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
    // for a master that stopped without closing its connections: the sentinels name another one
    failoverDetector: true,
    // for a master that became a replica: connect again, but do not send the refused command again
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
  connectAgainAfterEnd(redis);
  return withPasswords(redis, options);
}

/**
 * The driver gives up for good, with status `end`, when sentinels name another master while it connects to one: its
 * `failoverDetector` takes the connector away from under the connect. Until somebody closes it, it is started again.
 */
export function connectAgainAfterEnd(redis: Pick<Redis, 'on' | 'connect' | 'disconnect'>): void {
  let isClosed = false;
  const disconnect = redis.disconnect.bind(redis);
  redis.disconnect = (reconnect = false) => {
    if (!reconnect) isClosed = true;
    disconnect(reconnect);
  };
  redis.on('end', () => {
    const again = (): void => (isClosed ? undefined : void redis.connect().catch(() => undefined)); // ends again: so do we
    setTimeout(again, AGAIN_AFTER_END_MS).unref();
  });
}

/** The driver takes them from its options with each connection: those in files are then as they are now. */
function withPasswords(redis: Redis, { password, sentinelPassword }: RedisOptions): Redis {
  for (const [name, now] of Object.entries({ password, sentinelPassword })) {
    if (now === undefined || now() === '') continue; // the one in the url counts
    Object.defineProperty(redis.options, name, { get: now, enumerable: true, configurable: true });
  }
  return redis;
}

/** A certificate is for a name: without this the driver would connect to the address behind it. */
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
    // A lost connection must not send what may have run; a cluster that is down says so to the buyer.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: TRY_AGAIN_MS,
    redisOptions: { ...connectionOptions(options), ...login, ...(tls === null ? {} : { tls: tls.optionsFor() }) },
  });
  return cluster.on('+node', (server: Redis) => void withPasswords(server, options));
}

/**
 * A connection of its own for subscriptions; not connected yet. In a cluster every server gets all messages, so it goes
 * to one of those that REDIS_URL names, and to the next one when that is away.
 */
export function createSubscriberClient(options: RedisOptions): Redis {
  const address = readRedisAddress(options.url);
  // PurchaseNotifications subscribes again by itself; and a subscriber may be without a reply for long
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
      Object.assign(redis.options, nextNode()); // read at each connect
      return reconnectDelayMs(attempt);
    },
  });
  return withPasswords(redis, options);
}

/** Options of each single connection. */
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

/** Every server that may hold keys: one, or the masters of a cluster as they are known now. */
export const mastersOf = (redis: RedisClient): readonly Redis[] =>
  redis instanceof Cluster ? redis.nodes('master') : [redis];
