import { Cluster, Redis, type RedisOptions as DriverOptions } from 'ioredis';
import { readRedisAddress, type RedisAddress, type RedisHost } from './address.js';

/** One server, the master that sentinels name, or a cluster: every command with keys goes where its keys are. */
export type RedisClient = Redis | Cluster;

export interface RedisOptions {
  /** As REDIS_URL: one server, sentinels, or a cluster. */
  readonly url: string;
  /** How long a reply may take; after it the outcome of the command is unknown. */
  readonly replyTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** How long the marker of a batch is kept after its end, ms; default four days. */
  readonly markerLifeMs?: number;
}

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

/** One server, or the master that sentinels name. */
function createServerClient(
  address: Exclude<RedisAddress, { kind: 'cluster' }>,
  options: RedisOptions,
  more: DriverOptions = {},
): Redis {
  const driver = { ...connectionOptions(options), enableOfflineQueue: false, retryStrategy: reconnectDelayMs, ...more };
  if (address.kind === 'server') return new Redis(address.url, driver);
  const { sentinels, master, db, login } = address;
  return new Redis({
    ...driver,
    ...login,
    sentinels: sentinels.map((one) => ({ ...one })),
    name: master,
    db,
    sentinelRetryStrategy: reconnectDelayMs,
    // for a master that stopped without closing its connections: the sentinels name another one
    failoverDetector: true,
    // for a master that became a replica: connect again, but do not send the refused command again
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
}

function createCluster({ nodes, login }: RedisAddress & { kind: 'cluster' }, options: RedisOptions): Cluster {
  return new Cluster([...nodes], {
    lazyConnect: true,
    enableOfflineQueue: false,
    clusterRetryStrategy: reconnectDelayMs,
    slotsRefreshTimeout: options.connectTimeoutMs,
    maxRedirections: REDIRECTIONS_MAX,
    // A lost connection must not send what may have run; a cluster that is down says so to the buyer.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: TRY_AGAIN_MS,
    redisOptions: { ...connectionOptions(options), ...login },
  });
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
  let tried = 0;
  const nextNode = (): RedisHost => address.nodes[tried++ % address.nodes.length] as RedisHost;
  const redis: Redis = new Redis({
    ...connectionOptions(options),
    ...listening,
    ...address.login,
    ...nextNode(),
    enableOfflineQueue: false,
    retryStrategy: (attempt) => {
      Object.assign(redis.options, nextNode()); // read at each connect
      return reconnectDelayMs(attempt);
    },
  });
  return redis;
}

/** Options of each single connection. */
function connectionOptions({ replyTimeoutMs, connectTimeoutMs }: Omit<RedisOptions, 'url'>) {
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
