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
   * How long a marker is kept after the end of its batch, ms. No check-back or delayed deduct comes later: a broker
   * drops a half message after `fileReservedTime` (72 h), even after downtime (docs/decisions/0024).
   */
  readonly markerLifeMs: number;
  /** Returns every server that may hold keys: the single server, or the masters of a cluster. */
  masters(): readonly Redis[];
  /** Returns how many of our scripts each server knows. Default: all servers. @throws what the driver throws */
  scriptsLoaded(servers?: readonly Redis[]): Promise<number>;
  close(): Promise<void>;
}

const MARKER_LIFE_MS = 4 * 24 * 3_600_000;

/** For what a connection never does, see `createClient`. @throws OperationalError redis, if the first connect fails */
export async function connectRedis(options: RedisOptions, log: Log): Promise<RedisConnection> {
  const redis = createClient(options);
  const scripts = loadScripts(redis);
  let lastError = '';
  redis.on('error', (error: Error) => {
    if (error.message !== lastError) log.warn({ err: error }, 'redis connection error');
    lastError = error.message; // the reconnect loop repeats the error every second
  });
  // A restarted server has lost the scripts. Their next use would load them too.
  const load = (server: Redis): Promise<void> =>
    scripts.load(server).catch((err: unknown) => log.warn({ err }, 'the scripts were not loaded'));
  redis.on('ready', () => {
    lastError = '';
    for (const server of mastersOf(redis)) void welcome(server, load);
  });
  if (redis instanceof Cluster) {
    // Waits for the driver's own check of a server: our check would fail on a server that is still connecting.
    redis.on('+node', (server: Redis) => (redis.status === 'ready' ? void welcome(server, load) : undefined));
  }
  const refused = new RefusalWatch(redis, options);
  try {
    await Promise.race([
      untilReady(redis, CONNECTS_MAX * (options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS)),
      refused.promise,
    ]);
    // A cluster server that is not connected yet refuses all commands but the first. PING is of no use: a server whose
    // disk is full refuses it, but must not prevent a start.
    await Promise.all(mastersOf(redis).flatMap((server) => [server.time(), server.info('server')]));
  } catch (cause) {
    redis.disconnect();
    const address = readRedisAddress(options.url);
    const where = `Redis at ${namedAddress(address)}`;
    const reason = refusalIn(cause, options) ?? refused.reason ?? (await silentRefusal(address, tlsOf(options)));
    const sentence = reason === null ? `cannot reach ${where}; check that it is running` : `${where} ${reason}`;
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

/** Records why a server refuses us. The driver reports only a closed connection and keeps asking the sentinels. */
class RefusalWatch {
  reason: string | null = null;
  /** Rejects when the server, or every server of a cluster, has refused us. */
  readonly promise: Promise<never>;
  readonly #redis: RedisClient;
  #asked = false;
  readonly #onError: (error: unknown) => void;
  readonly #onNodeError: (error: unknown) => void;

  constructor(redis: RedisClient, options: RedisOptions) {
    this.#redis = redis;
    let refuse = (_: unknown): void => undefined;
    this.promise = new Promise((_resolve, reject) => (refuse = reject));
    this.promise.catch(() => undefined); // nobody awaits the promise once we are connected
    this.#onNodeError = (error) => (this.reason ??= refusalIn(error, options));
    this.#onError = (error) => {
      this.#onNodeError(error);
      if (this.reason !== null) refuse(error);
      else if (NO_SENTINEL.test(String(error))) void this.#askWhy(options).then(() => this.reason && refuse(error));
    };
    redis.on('error', this.#onError);
    redis.on('node error', this.#onNodeError); // only one server of a cluster refused; another may accept us
  }

  /** Finds the reason itself, because the driver keeps only the message of a sentinel's error, not its code. */
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

/** Replies of a server that does not know us or denies us a command, each with a text for the operator. */
const REFUSALS: readonly (readonly [RegExp, (message: string, login: string) => string])[] = [
  [
    /^NOAUTH|HELLO must be called with the client already authenticated/,
    (message) => `requires a password: put it into REDIS_URL, or set REDIS_PASSWORD (${message})`,
  ],
  [
    /WRONGPASS|invalid password|invalid username-password/,
    (message, login) => `refuses the login: correct ${login} (${message})`,
  ],
  [
    /NOPERM/,
    (message) => `denies a command to the user of this program: grant the rights in docs/security.md (${message})`,
  ],
  [
    /Protocol error, got "\\u0015"|Protocol error, got "\x15"/,
    (message) => `uses TLS: begin REDIS_URL with rediss (${message})`,
  ],
];

/** Says why a server refuses us, as the rest of a sentence that begins with the server, or null for another cause. */
function refusalIn(error: unknown, options: RedisOptions): string | null {
  const { lastNodeError } = (error ?? {}) as { readonly lastNodeError?: unknown };
  if (lastNodeError !== undefined) return refusalIn(lastNodeError, options);
  const byTls = tlsReason(error, REDIS_TLS_NAMES, tlsOf(options));
  if (byTls !== null) return byTls;
  const message = error instanceof Error ? error.message : String(error);
  const login = options.password?.() ? 'the user in REDIS_URL, or REDIS_PASSWORD' : 'user and password in REDIS_URL';
  return REFUSALS.find(([pattern]) => pattern.test(message))?.[1](message, login) ?? null;
}

/** Number of connects to wait for: the driver tries one server after the other, and starts again if its check fails. */
const CONNECTS_MAX = 5;

/** Waits for the event, because the promise of `connect()` never settles if the driver starts again in the meantime. */
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

/** Identifies a server: after a reconnect, the connection object is new. */
export const nameOf = ({ options: { host = '', port = 0 } }: Redis): string => `${host}:${port}`;

/** Connects to a newly discovered server before the first buyer needs it. */
async function welcome(server: Redis, load: (server: Redis) => Promise<void>): Promise<void> {
  if (server.status === 'wait') await server.connect().catch(() => undefined); // the next command reports the error
  if (server.status === 'ready') await load(server);
}

/** Wraps an error of the driver once. Not retryable if the same command would fail again. */
export function redisFault(what: string, cause: unknown): OperationalError {
  return new OperationalError('redis', `${what}: ${reasonOf(cause)}`, { retryable: !isCertainToRepeat(cause), cause });
}

/** Replies of servers that take no commands or writes now, or refuse us. Redis 6 has the code inside the message. */
const PASSING = new RegExp(
  String.raw`\b(?:${[
    ...['OOM', 'MISCONF', 'READONLY', 'NOREPLICAS', 'LOADING', 'MASTERDOWN', 'BUSY', 'UNKILLABLE', 'NOSCRIPT'],
    ...['MOVED', 'ASK', 'TRYAGAIN', 'CLUSTERDOWN', 'NOAUTH', 'WRONGPASS', 'NOPERM'],
  ].join('|')})\b|used memory|Script killed|max number of clients`,
);

/** True if the server ran the command or script, and it failed because of its input or of the data. */
const isCertainToRepeat = (cause: unknown): boolean =>
  cause instanceof ReplyError && !PASSING.test((cause as Error).message);

/** Errors of the driver that name its own settings, each with a text for the operator. */
const DRIVER_WORDS: readonly (readonly [RegExp, string])[] = [
  [/max retries per request/i, 'the connection to Redis was lost'],
  [
    /enableOfflineQueue|Connection is closed|Cluster is ended|No subscriber for the cluster/,
    'there is no connection to Redis',
  ],
  [/^Command timed out$/, 'Redis did not answer in time'],
];

export function reasonOf(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause);
  return DRIVER_WORDS.find(([pattern]) => pattern.test(message))?.[1] ?? message;
}

/** Runs a read or an idempotent write. Turns driver errors into OperationalErrors, and leaves a Bug as it is. */
export async function asOperationalError<T>(what: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    if (cause instanceof Bug) throw cause;
    throw cause instanceof OperationalError ? cause : redisFault(what, cause);
  }
}

/** Sends commands whose keys share a slot together. @throws what the driver throws, for any of them */
export async function pipelined(redis: RedisClient, commands: (string | number)[][]): Promise<unknown[]> {
  const replies = (await redis.pipeline(commands).exec()) ?? [];
  if (replies.length < commands.length) throw new Error('the pipeline was cut off');
  return replies.map(([error, reply]) => {
    if (error) throw error;
    return reply;
  });
}

/** Runs one query per bucket, in order. On several servers, each can fail alone. @throws Bug */
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

/** Resolves as soon as any server answers. @throws OperationalError redis */
export async function pingAnyServer({ redis, masters }: RedisConnection): Promise<void> {
  const servers = masters();
  if (servers.length === 0) await asOperationalError('ping', () => redis.ping()); // reports why there is no server
  const pings = servers.map((server) => server.ping());
  await asOperationalError('ping', () => Promise.any(pings).catch(async () => pings[0]));
}

/** Returns the Unix ms of the server with the key, the clock of a bucket. @throws what the driver throws */
export async function serverNowMs(redis: RedisClient, key: string): Promise<number> {
  // In a pipeline, TIME goes to the server of the key.
  const replies = await redis.pipeline([['time'], ['exists', key]]).exec();
  const [error, time] = replies?.[0] ?? [new Error('the pipeline was cut off')];
  if (error) throw error;
  return timeToMs(time as [seconds: string, micros: string]);
}

/** @param reply of TIME */
export const timeToMs = ([seconds, micros]: readonly unknown[]): number =>
  Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
