import { Redis } from 'ioredis';
import { OperationalError } from '../domain/errors.js';
import type { Log } from '../ports/log.js';
import { loadScripts, type RunScript } from './scripts.js';

export interface RedisOptions {
  /** `redis://[user:password@]host:port[/db]` or `rediss://…`. */
  readonly url: string;
  /** How long a reply may take; after it the outcome of the command is unknown. */
  readonly replyTimeoutMs: number;
  readonly connectTimeoutMs: number;
}

export interface RedisConnection {
  readonly redis: Redis;
  readonly run: RunScript;
  /** How many of our scripts the server knows. @throws what the driver throws */
  scriptsLoaded(): Promise<number>;
  close(): Promise<void>;
}

/** Reconnect quickly at first, then at most this far apart. */
const RECONNECT_MAX_MS = 1000;

/** A connection without any reply for this many reply time-outs is half-open: TCP alone would take minutes to say so. */
const SILENT_REPLY_TIMEOUTS = 2;

/**
 * One connection. It never queues while disconnected and never sends a command twice: a purchase must hear within
 * milliseconds that Redis is away, and a `deduct` must not be repeated behind our back (protocol rule 2).
 * @throws OperationalError redis, when the first connect fails
 */
export async function connectRedis(options: RedisOptions, log: Log): Promise<RedisConnection> {
  const redis = new Redis(options.url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: options.replyTimeoutMs,
    socketTimeout: SILENT_REPLY_TIMEOUTS * options.replyTimeoutMs,
    connectTimeout: options.connectTimeoutMs,
    retryStrategy: (attempt) => Math.min(50 * attempt, RECONNECT_MAX_MS),
  });
  const scripts = loadScripts(redis);
  let lastError = '';
  redis.on('error', (error: Error) => {
    if (error.message !== lastError) log.warn({ err: error }, 'redis connection error');
    lastError = error.message; // the reconnect loop repeats it every second
  });
  redis.on('ready', () => {
    lastError = '';
    // A server that was started anew has forgotten them. They would also be sent with their next use.
    scripts.load().catch((err: unknown) => log.warn({ err }, 'the scripts were not loaded'));
  });
  try {
    await redis.connect();
  } catch (cause) {
    redis.disconnect();
    throw new OperationalError('redis', `cannot reach Redis at ${hostOf(options.url)}: is it running?`, {
      retryable: true,
      cause,
    });
  }
  return {
    redis,
    run: scripts.run,
    scriptsLoaded: () => scripts.loaded(),
    close: async () => {
      await redis.quit().catch(() => redis.disconnect());
    },
  };
}

/** Turns what the driver threw into our error, once. */
export function redisFault(what: string, cause: unknown): OperationalError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new OperationalError('redis', `${what}: ${reason}`, { retryable: true, cause });
}

/** Runs one read or idempotent write; a driver error becomes an OperationalError. */
export async function guarded<T>(what: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    throw redisFault(what, cause);
  }
}

/** Resolves when the server answers. @throws OperationalError redis */
export async function pingRedis({ redis }: RedisConnection): Promise<void> {
  await guarded('ping', () => redis.ping());
}

function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}
