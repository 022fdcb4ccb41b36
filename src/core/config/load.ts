import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { flawOfSecret } from '../hmac.js';
import { isLoopback } from '../ip-address.js';
import { NOT_SET, type Live } from '../live.js';
import { readPublicKey } from '../public-key.js';
import { utf8Of } from '../text.js';
import { fixedAt, REMOVED } from './removed.js';
import { allKeys, SCHEMA, type Config, type Section, type SectionName } from './schema.js';
import { fileVariable, type Key } from './key.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Names every bad key at once, with its accepted values. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the configuration is invalid:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** Rules between keys. Each gets the sections without a bad key, and returns a sentence about the problem, or null. */
const CROSS_RULES: ((config: Partial<Config>) => string | null)[] = [
  ({ worker, mysql }) =>
    worker && mysql && mysql.poolMax < 2 * worker.loops
      ? `MYSQL_POOL_MAX must be at least twice WORKER_LOOPS (both topics are consumed), but is ${mysql.poolMax}`
      : null,
  ({ worker, mysql }) =>
    worker && mysql && worker.invisibleMs < 2 * mysql.queryTimeoutMs
      ? `WORKER_INVISIBLE_MS must be at least twice MYSQL_QUERY_TIMEOUT_MS, but is ${worker.invisibleMs}`
      : null,
  ({ environment }) =>
    environment?.overrides === 'on' && environment.kind === 'production'
      ? 'TEST_OVERRIDES is for tests only; remove it, or do not set NODE_ENV to production'
      : null,
  ({ payment, environment }) =>
    payment?.provider === 'simulator' && environment?.kind === 'production'
      ? 'PAYMENT_PROVIDER must not be simulator if NODE_ENV is production, because the simulator moves no money'
      : null,
  ({ payment }) =>
    payment && payment.webhookSecretBefore !== '' && payment.webhookSecret === ''
      ? 'PAYMENT_WEBHOOK_SECRET must be set if PAYMENT_WEBHOOK_SECRET_BEFORE is set'
      : null,
  ({ payment }) => (payment ? flawOfProvider(payment) : null),
  ({ redis }) =>
    redis && redis.waitReplicas > 0 && /^rediss?\+cluster:/.test(redis.url)
      ? 'REDIS_WAIT_REPLICAS must be 0 with a cluster, because the replicas of one server say nothing about the others'
      : null,
  ({ brokerAccess }) =>
    brokerAccess && (brokerAccess.key === '') !== (brokerAccess.secret() === '')
      ? 'ROCKETMQ_ACCESS_KEY and ROCKETMQ_ACCESS_SECRET must both be set, or neither'
      : null,
  ({ brokerAccess }) =>
    brokerAccess && brokerAccess.key === '' && brokerAccess.sessionToken() !== ''
      ? 'ROCKETMQ_ACCESS_KEY must be set if ROCKETMQ_SESSION_TOKEN is set'
      : null,
  ({ brokerAccess }) =>
    brokerAccess
      ? flawOfTls('ROCKETMQ_TLS', brokerAccess, brokerAccess.tls === 'off' ? 'ROCKETMQ_TLS must be on' : null)
      : null,
  ({ mysql }) => (mysql ? flawOfTls('MYSQL_TLS', mysql, mysql.tls === 'off' ? 'MYSQL_TLS must be on' : null) : null),
  ({ redis }) =>
    redis
      ? flawOfTls('REDIS_TLS', redis, redis.url.startsWith('rediss') ? null : 'REDIS_URL must begin with rediss')
      : null,
  ({ mysql }) => (mysql && mysql.password() !== '' ? flawOfPassword('MYSQL', mysql.url) : null),
  ({ redis }) => (redis && redis.password() !== '' ? flawOfPassword('REDIS', redis.url) : null),
  ({ redis }) =>
    redis && redis.sentinelUser !== '' && redis.sentinelPassword() === ''
      ? 'REDIS_SENTINEL_PASSWORD must be set if REDIS_SENTINEL_USER is set'
      : null,
  ({ auth }) => (auth ? flawOfTokenKeys(auth) : null),
  ({ http, notifications }) =>
    http && notifications && notifications.streamsMax >= http.maxConnections
      ? `EVENTS_STREAMS_MAX must be below HTTP_CONNECTIONS_MAX (a stream is a connection), but is ${notifications.streamsMax}`
      : null,
  ({ batch }) =>
    batch && batch.queueMax < batch.sizeMax
      ? `BATCH_QUEUE_MAX must be at least BATCH_SIZE_MAX, but is ${batch.queueMax}`
      : null,
];

interface TlsFiles {
  readonly tlsCa: Live;
  readonly tlsCert: Live;
  readonly tlsKey: Live;
  readonly tlsServerName: string;
}

/**
 * @param off starts a sentence that says how to switch TLS on; null if it is on
 * @returns what is wrong, or null
 */
function flawOfTls(prefix: string, { tlsCa, tlsCert, tlsKey, tlsServerName }: TlsFiles, off: string | null) {
  const [ca, cert, key] = [tlsCa(), tlsCert(), tlsKey()];
  const set = [
    ['CA', ca],
    ['CERT', cert],
    ['KEY', key],
    ['SERVER_NAME', tlsServerName],
  ].find(([, text]) => text !== '');
  if (off !== null)
    return set === undefined ? null : `${off} if ${prefix}_${set[0]} is set, because nothing is encrypted now`;
  if ((cert === '') !== (key === '')) return `${prefix}_CERT and ${prefix}_KEY must both be set, or neither`;
  if (cert !== '' && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    return `${prefix}_KEY must be the key of ${prefix}_CERT, but is the key of another certificate`;
  }
  try {
    createSecureContext({ ca: ca || undefined, cert: cert || undefined, key: key || undefined });
    return null;
  } catch (error) {
    return `${prefix}_CA, ${prefix}_CERT and ${prefix}_KEY cannot be used by OpenSSL: ${(error as Error).message}`;
  }
}

/** Refuses two passwords, because it would be unclear which to use. */
const flawOfPassword = (name: string, url: string): string | null =>
  /^[^/]+:\/\/[^/@]*:[^/@]+@/.test(url)
    ? `${name}_URL must have no password if ${name}_PASSWORD is set; keep only one of them`
    : null;

/** Checks the payment provider. Its key is sent with each call, so the network must not see it. */
function flawOfProvider({ provider, apiKey, apiUrl, webhookMode }: Section<'payment'>): string | null {
  if (provider !== 'stripe' && provider !== 'http') return null;
  if (apiKey === '') return `PAYMENT_API_KEY must be set if PAYMENT_PROVIDER is ${provider}`;
  if (apiUrl === '' && provider === 'http') return 'PAYMENT_API_URL must be set if PAYMENT_PROVIDER is http';
  if (apiUrl !== '') {
    const { protocol, hostname } = new URL(apiUrl);
    if (protocol === 'http:' && !isLoopback(hostname)) {
      return 'PAYMENT_API_URL must begin with https, so that PAYMENT_API_KEY stays secret on the network';
    }
  }
  if (provider !== 'stripe') return null;
  const mode = /^[sr]k_(live|test)_/.exec(apiKey)?.[1];
  if (mode === undefined) {
    return 'PAYMENT_API_KEY must be a secret or restricted key of Stripe, which begins with sk_live_, sk_test_, rk_live_ or rk_test_';
  }
  return mode === webhookMode
    ? null
    : `PAYMENT_WEBHOOK_MODE must be ${mode} like the Stripe key in PAYMENT_API_KEY, but is ${webhookMode}`;
}

function flawOfTokenKeys({ algorithm, key, keys, issuers }: Section<'auth'>): string | null {
  if (key === '') {
    if (keys !== '' || issuers !== '') return null;
    return 'JWT_SECRET is not set: tokens are checked with JWT_SECRET, JWT_KEYS or the keys of JWT_ISSUERS';
  }
  if (algorithm === 'HS256') {
    const flaw = flawOfSecret(key);
    return flaw === null ? null : `JWT_SECRET ${flaw} (JWT_ALGORITHM is HS256)`;
  }
  const read = readPublicKey(key);
  if ('flaw' in read) return `JWT_SECRET ${read.flaw} (JWT_ALGORITHM is ${algorithm})`;
  return read.algorithm === algorithm ? null : `JWT_SECRET is a key for ${read.algorithm}, not for ${algorithm}`;
}

/** Checks each value and the rules between them. Freezes the result. @throws ConfigError with every problem found */
export function loadConfig<const S extends readonly SectionName[]>(
  sections: S,
  env: Environment = process.env,
): Config<S[number]> {
  const problems: string[] = [];
  const config: Record<string, unknown> = {};
  for (const name of sections) {
    const section: Record<string, unknown> = {};
    const problemsBefore = problems.length;
    for (const [field, key] of Object.entries(SCHEMA[name]) as [string, Key<unknown>][]) {
      const value = readKey(key, env, problems);
      if (value !== undefined) section[field] = value;
    }
    if (problems.length === problemsBefore) config[name] = Object.freeze(section);
  }
  for (const rule of CROSS_RULES) {
    const problem = rule(config as Partial<Config>);
    if (problem !== null) problems.push(problem);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze({ ...config, ...derivedFrom(config as Partial<Config>) }) as Config<S[number]>;
}

/** Derives values from settings, so an operator never has to change two together. */
function derivedFrom({ reconcile, redis, repair, mysql }: Partial<Config>): Partial<Config> {
  // If the life of a marker is unknown, no marker is stale.
  const markerAgeMs = reconcile?.markerAgeMs || (redis?.markerLifeMs ?? Infinity);
  // If a lease expired during a statement, two keepers could rebuild the same sale.
  const leaseMs = Math.max(repair?.leaseMs ?? 0, Math.ceil(1.25 * (mysql?.queryTimeoutMs ?? 0)));
  return {
    ...(reconcile && { reconcile: Object.freeze({ ...reconcile, markerAgeMs }) }),
    ...(repair && { repair: Object.freeze({ ...repair, leaseMs }) }),
  };
}

/**
 * Returns the environment of an app that runs Seckill as a library. A setting beats a variable of the app, even if one
 * of them names a file.
 * @param settings by variable name; undefined: not set
 */
export function withSettings(
  settings: Readonly<Record<string, string | number | boolean | undefined>>,
  env: Environment = process.env,
): Environment {
  const set = Object.entries(settings).filter(([, value]) => value !== undefined);
  const others = set.flatMap(([name]) => OTHER_WAY.get(name) ?? []).map((name) => [name, '']);
  const own = set.map(([name, value]) => [name, String(value)]);
  return { ...env, ...Object.fromEntries([...others, ...own]) };
}

/** Maps each variable to the variable that names its file, and back. */
const OTHER_WAY: ReadonlyMap<string, string> = new Map(
  allKeys()
    .filter(({ fromFile }) => fromFile)
    .flatMap(({ env }): [string, string][] => [
      [env, fileVariable(env)],
      [fileVariable(env), env],
    ]),
);

/** Returns the text, or the content of its file. Empty if not set or unreadable. */
export function settingText({ env: name, fromFile }: Key<unknown>, env: Environment): string {
  const path = fromFile ? (env[fileVariable(name)] ?? '') : '';
  if (path === '') return env[name] ?? '';
  try {
    return readSecretFile(path);
  } catch {
    return '';
  }
}

/** Returns whether a test replaces fixed values. */
const takesOverrides = (env: Environment): boolean => env.TEST_OVERRIDES === 'on' && env.NODE_ENV !== 'production';

const FIXED = allKeys().filter(({ isFixed }) => isFixed);

/** Settings of earlier releases, each with the end of the warning about it, which says what replaces the setting. */
const REMOVED_NAMES: ReadonlyMap<string, string> = new Map([
  ...FIXED.map(({ env, fallback, unit }): [string, string] => [env, fixedAt(fallback as number, unit)]),
  ...Object.entries(REMOVED),
]);

/** Returns whether a variable was a setting of an earlier release. */
export const isRemoved = (name: string): boolean => REMOVED_NAMES.has(name);

/** Returns a sentence for each setting of an earlier release that no longer has any effect. */
export function removedSettings(env: Environment): string[] {
  const inForce = new Set(takesOverrides(env) ? FIXED.map((key) => key.env) : []);
  return [...REMOVED_NAMES]
    .filter(([name]) => (env[name] ?? '') !== '' && !inForce.has(name))
    .map(([name, now]) => `${name} was removed in 1.1.0: ${now}.`);
}

function readKey(key: Key<unknown>, env: Environment, problems: string[]): unknown {
  if (key.isFixed && !takesOverrides(env)) return key.fallback;
  let name = key.env;
  try {
    const path = key.fromFile ? (env[fileVariable(key.env)] ?? '') : '';
    const text = env[key.env] ?? '';
    if (path !== '') {
      if (text !== '') throw new Error(`and ${fileVariable(key.env)} must not both be set; keep only one of them`);
      name = fileVariable(key.env);
      return key.parse(readSecretFile(path), () => readSecretFile(path));
    }
    if (text !== '') return key.parse(text);
  } catch (error) {
    problems.push(`${name} ${(error as Error).message}`);
    return undefined;
  }
  if (key.optional) return key.live ? NOT_SET : '';
  if (key.fallback === undefined) problems.push(`${key.env} is not set: ${key.doc}`);
  return key.fallback;
}

/** Enough for a hundred certificates of authorities. */
const FILE_BYTES_MAX = 1024 * 1024;

/** Returns the text of a file without its final newline. @throws Error with the end of a sentence */
function readSecretFile(path: string): string {
  let bytes: Buffer;
  try {
    const { size } = statSync(path);
    if (size > FILE_BYTES_MAX) throw new Error(`names ${path}, which is larger than ${FILE_BYTES_MAX} bytes`);
    bytes = readFileSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === undefined ? error : new Error(`names ${path}, which cannot be read (${code})`, { cause: error });
  }
  const text = utf8Of(bytes)?.replace(/\r?\n$/, '');
  if (text === undefined) throw new Error(`names ${path}, which is not UTF-8 text`);
  if (text === '') throw new Error(`names ${path}, which is empty`);
  return text;
}
