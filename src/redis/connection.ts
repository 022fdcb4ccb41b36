import { Cluster, ReplyError, type Redis } from 'ioredis';
import { Bug, OperationalError } from '../core/errors.js';
import type { Log } from '../core/ports/log.js';
import { tlsReason } from '../core/tls.js';
import { namedAddress, readRedisAddress } from './address.js';
import {
  CONNECT_TIMEOUT_MS,
  createClient,
  mastersOf,
  REDIS_TLS_NAMES,
  tlsOf,
  type RedisClient,
  type RedisOptions,
} from './client.js';
import { loadScripts, type RunScript } from './scripts.js';
import { silentRefusal } from './silent-refusal.js';

export type { RedisClient, RedisOptions } from './client.js';

export interface RedisConnection {
  readonly redis: RedisClient;
  readonly run: RunScript;
  /**
   * Keeps a marker this long after the end of its batch, ms. No check-back and no delayed deduct arrives later: a broker
   * drops a half message after `fileReservedTime` (72 h), even if the broker was down (docs/decisions/0024).
   */
  readonly markerLifeMs: number;
  /** Every server that may hold keys: one, or the masters of a cluster. */
  masters(): readonly Redis[];
  /** How many of our scripts each of these servers knows; absent: every server. @throws what the driver throws */
  scriptsLoaded(servers?: readonly Redis[]): Promise<number>;
  close(): Promise<void>;
}

const MARKER_LIFE_MS = 4 * 24 * 3_600_000;

/**
 * One connection, or one to each server of a cluster. See `createClient` for what it never does.
 * @throws OperationalError redis, when the first connect fails
 */
export async function connectRedis(options: RedisOptions, log: Log): Promise<RedisConnection> {
  const redis = createClient(options);
  const scripts = loadScripts(redis);
  let lastError = '';
  redis.on('error', (error: Error) => {
    if (error.message !== lastError) log.warn({ err: error }, 'redis connection error');
    lastError = error.message; // the reconnect loop repeats it every second
  });
  // A restarted server does not have the scripts. Their next use would also send them.
  const load = (server: Redis): Promise<void> =>
    scripts.load(server).catch((err: unknown) => log.warn({ err }, 'the scripts were not loaded'));
  redis.on('ready', () => {
    lastError = '';
    for (const server of mastersOf(redis)) void welcome(server, load);
  });
  if (redis instanceof Cluster) {
    // Not before the driver has made its own check at one of them, which a server that is just being connected fails.
    redis.on('+node', (server: Redis) => (redis.status === 'ready' ? void welcome(server, load) : undefined));
  }
  const refused = new RefusalWatch(redis, options);
  try {
    await Promise.race([
      untilReady(redis, CONNECTS_MAX * (options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS)),
      refused.promise,
    ]);
    // Before it is connected a server of a cluster refuses all but the first command. Not PING: a server whose disk is full
    // refuses that, and must not keep a program from starting.
    await Promise.all(mastersOf(redis).flatMap((server) => [server.time(), server.info('server')]));
  } catch (cause) {
    redis.disconnect();
    const address = readRedisAddress(options.url);
    const where = `Redis at ${namedAddress(address)}`;
    const reason = refusalIn(cause, options) ?? refused.reason ?? (await silentRefusal(address, tlsOf(options)));
    const sentence = reason === null ? `cannot reach ${where}: is it running?` : `${where} ${reason}`;
    throw new OperationalError('redis', sentence, { retryable: reason === null, cause });
  } finally {
    refused.stop();
  }
  return {
    redis,
    run: scripts.run,
    markerLifeMs: options.markerLifeMs ?? MARKER_LIFE_MS,
    masters: () => mastersOf(redis),
    scriptsLoaded: (servers = mastersOf(redis)) => scripts.loaded(servers),
    close: async () => {
      await redis.quit().catch(() => undefined);
      redis.disconnect(); // quit does not close the connections to sentinels
    },
  };
}

const NO_SENTINEL = /All sentinels are unreachable/;

/**
 * Hears why a server does not let us in: the driver itself would only say that the connection was closed, and it asks sentinels
 * again and again.
 */
class RefusalWatch {
  /** Null: none has said so. */
  reason: string | null = null;
  /** Rejects when the server, or all that there are, have refused. */
  readonly promise: Promise<never>;
  readonly #redis: RedisClient;
  #asked = false;
  readonly #onError: (error: unknown) => void;
  readonly #onNodeError: (error: unknown) => void;

  constructor(redis: RedisClient, options: RedisOptions) {
    this.#redis = redis;
    let refuse = (_: unknown): void => undefined;
    this.promise = new Promise((_resolve, reject) => (refuse = reject));
    this.promise.catch(() => undefined); // once we are connected nobody waits for it
    this.#onNodeError = (error) => (this.reason ??= refusalIn(error, options));
    this.#onError = (error) => {
      this.#onNodeError(error);
      if (this.reason !== null) refuse(error);
      else if (NO_SENTINEL.test(String(error))) void this.#askWhy(options).then(() => this.reason && refuse(error));
    };
    redis.on('error', this.#onError);
    redis.on('node error', this.#onNodeError); // one server of a cluster: another one may let us in
  }

  /** The driver keeps the message of a sentinel's error, but not its code. */
  async #askWhy(options: RedisOptions): Promise<void> {
    if (this.#asked) return;
    this.#asked = true;
    this.reason ??= await silentRefusal(readRedisAddress(options.url), tlsOf(options)).catch(() => null);
  }

  stop(): void {
    this.#redis.off('error', this.#onError);
    this.#redis.off('node error', this.#onNodeError);
  }
}

/** Replies of a server that does not know us, or lets us not do what we need, and how it says so. */
const REFUSALS: readonly (readonly [RegExp, (message: string, login: string) => string])[] = [
  [
    /^NOAUTH|HELLO must be called with the client already authenticated/,
    (message) => `asks for a password: put it into REDIS_URL, or set REDIS_PASSWORD (${message})`,
  ],
  [
    /WRONGPASS|invalid password|invalid username-password/,
    (message, login) => `refuses us: correct ${login} (${message})`,
  ],
  [
    /NOPERM/,
    (message) => `lets our user not do what a program needs: give it the rights of docs/security.md (${message})`,
  ],
  [
    /Protocol error, got "\\u0015"|Protocol error, got "\x15"/,
    (message) => `speaks TLS there: begin REDIS_URL with rediss (${message})`,
  ],
];

/** Why a server refuses us, as the rest of a sentence that begins with it; null when an error says something else. */
function refusalIn(error: unknown, options: RedisOptions): string | null {
  const { lastNodeError } = (error ?? {}) as { readonly lastNodeError?: unknown };
  if (lastNodeError !== undefined) return refusalIn(lastNodeError, options);
  const byTls = tlsReason(error, REDIS_TLS_NAMES, tlsOf(options));
  if (byTls !== null) return byTls;
  const message = error instanceof Error ? error.message : String(error);
  const login = options.password?.() ? 'the user in REDIS_URL, or REDIS_PASSWORD' : 'user and password in REDIS_URL';
  return REFUSALS.find(([pattern]) => pattern.test(message))?.[1](message, login) ?? null;
}

/** The driver tries the servers of a cluster, or of its sentinels, one after the other, and again when its check fails. */
const CONNECTS_MAX = 5;

/** Waits for the event: the promise of `connect()` stays open when the driver starts over in between. */
function untilReady(redis: RedisClient, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not ready after ${timeoutMs} ms`)), timeoutMs);
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      redis.off('ready', ready);
      settle();
    };
    const ready = (): void => end(resolve);
    redis.once('ready', ready);
    redis.connect().catch((error: unknown) => end(() => reject(error as Error)));
  });
}

/** A server that came into a cluster, or into our view of it, is connected before the first buyer needs it. */
async function welcome(server: Redis, load: (server: Redis) => Promise<void>): Promise<void> {
  if (server.status === 'wait') await server.connect().catch(() => undefined); // the next command says what is wrong
  if (server.status === 'ready') await load(server);
}

/** Turns what the driver threw into our error, once. Not retryable: the same command would fail again. */
export function redisFault(what: string, cause: unknown): OperationalError {
  return new OperationalError('redis', `${what}: ${reasonOf(cause)}`, { retryable: !isCertainToRepeat(cause), cause });
}

/**
 * What a server says that takes no command, or no write, now, or does not let us in. Redis 6 puts the code of an error that a
 * script met into the middle of its message.
 */
const PASSING = new RegExp(
  String.raw`\b(?:${[
    ...['OOM', 'MISCONF', 'READONLY', 'NOREPLICAS', 'LOADING', 'MASTERDOWN', 'BUSY', 'UNKILLABLE', 'NOSCRIPT'],
    ...['MOVED', 'ASK', 'TRYAGAIN', 'CLUSTERDOWN', 'NOAUTH', 'WRONGPASS', 'NOPERM'],
  ].join('|')})\b|used memory|Script killed|max number of clients`,
);

/** Whether the server ran the command, or the script, and it failed for what it was given or found. */
const isCertainToRepeat = (cause: unknown): boolean =>
  cause instanceof ReplyError && !PASSING.test((cause as Error).message);

/** Errors of the driver that name its own settings, in words for an operator. */
const DRIVER_WORDS: readonly (readonly [RegExp, string])[] = [
  [/max retries per request/i, 'the connection to Redis was lost'],
  [
    /enableOfflineQueue|Connection is closed|Cluster is ended|No subscriber for the cluster/,
    'there is no connection to Redis',
  ],
  [/^Command timed out$/, 'Redis did not answer in time'],
];

/** The reason of a failure, for a person. */
export function reasonOf(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause);
  return DRIVER_WORDS.find(([pattern]) => pattern.test(message))?.[1] ?? message;
}

/** Runs one read or idempotent write; a driver error becomes an OperationalError, and a bug stays one. */
export async function asOperationalError<T>(what: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    if (cause instanceof Bug) throw cause;
    throw cause instanceof OperationalError ? cause : redisFault(what, cause);
  }
}

/** Sends commands whose keys share a slot in one go. @returns their replies @throws what the driver throws, for any of them */
export async function pipelined(redis: RedisClient, commands: (string | number)[][]): Promise<unknown[]> {
  const replies = (await redis.pipeline(commands).exec()) ?? [];
  if (replies.length < commands.length) throw new Error('the pipeline was cut off');
  return replies.map(([error, reply]) => {
    if (error) throw error;
    return reply;
  });
}

/** Asks for one thing of each of many buckets, in order. They are on several servers, so each fails alone. @throws Bug */
export async function eachOrFault<R, T>(
  what: string,
  refs: readonly R[],
  ask: (ref: R) => Promise<T>,
): Promise<(T | OperationalError)[]> {
  const asked = await Promise.allSettled(refs.map((ref) => asOperationalError(what, () => ask(ref))));
  return asked.map((one) => {
    if (one.status === 'fulfilled') return one.value;
    if (one.reason instanceof OperationalError) return one.reason;
    throw one.reason;
  });
}

/** Resolves when a server answers: for what is not in one certain server. @throws OperationalError redis */
export async function pingAnyServer({ redis, masters }: RedisConnection): Promise<void> {
  const servers = masters();
  if (servers.length === 0) await asOperationalError('ping', () => redis.ping()); // says why there is none
  const pings = servers.map((server) => server.ping());
  await asOperationalError('ping', () => Promise.any(pings).catch(async () => pings[0]));
}

/**
 * Now, on the clock of the server that has the key, Unix ms: the times in a bucket are those of its own server.
 * @throws what the driver throws
 */
export async function serverNowMs(redis: RedisClient, key: string): Promise<number> {
  // TIME names no key; in a pipeline it goes where the others go
  const replies = await redis.pipeline([['time'], ['exists', key]]).exec();
  const [error, time] = replies?.[0] ?? [new Error('the pipeline was cut off')];
  if (error) throw error;
  return timeToMs(time as [seconds: string, micros: string]);
}

/** A reply of TIME as Unix ms. */
export const timeToMs = ([seconds, micros]: readonly unknown[]): number =>
  Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
