import { flawOfSecret } from '../hmac.js';
import { readPublicKey } from '../public-key.js';
import { SCHEMA, type Config, type Section, type SectionName } from './schema.js';
import type { Key } from './key.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Names every bad key at once, each with what it must be. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the configuration is not usable:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** Rules between keys. Each gets the sections whose keys are all good and answers with a sentence, or null. */
const CROSS_RULES: ((config: Partial<Config>) => string | null)[] = [
  ({ worker, mysql }) =>
    worker && mysql && mysql.poolMax < 2 * worker.loops
      ? `MYSQL_POOL_MAX must be at least twice WORKER_LOOPS (both topics are consumed), but is ${mysql.poolMax}`
      : null,
  ({ worker, mysql }) =>
    worker && mysql && worker.invisibleMs < 2 * mysql.queryTimeoutMs
      ? `WORKER_INVISIBLE_MS must be at least twice MYSQL_QUERY_TIMEOUT_MS, but is ${worker.invisibleMs}`
      : null,
  ({ repair, mysql }) =>
    repair && mysql && repair.leaseMs <= mysql.queryTimeoutMs
      ? `REPAIR_LEASE_MS must be above MYSQL_QUERY_TIMEOUT_MS, but is ${repair.leaseMs}`
      : null,
  ({ failPoint }) =>
    failPoint && failPoint.point !== '' && failPoint.environment === 'production'
      ? 'FAILPOINT is for tests and refused where NODE_ENV is production'
      : null,
  ({ payment, failPoint }) =>
    payment?.provider === 'simulator' && failPoint?.environment === 'production'
      ? 'PAYMENT_PROVIDER must not be simulator where NODE_ENV is production: no money would move'
      : null,
  ({ payment }) =>
    payment && payment.webhookSecretBefore !== '' && payment.webhookSecret === ''
      ? 'PAYMENT_WEBHOOK_SECRET must be set where PAYMENT_WEBHOOK_SECRET_BEFORE is'
      : null,
  ({ payment }) => (payment ? flawOfProvider(payment) : null),
  ({ redis }) =>
    redis && redis.waitReplicas > 0 && redis.url.startsWith('redis+cluster:')
      ? 'REDIS_WAIT_REPLICAS must be 0 with a cluster: the replicas of one of its servers say nothing of the others'
      : null,
  ({ brokerAccess }) =>
    brokerAccess && (brokerAccess.key === '') !== (brokerAccess.secret === '')
      ? 'ROCKETMQ_ACCESS_KEY and ROCKETMQ_ACCESS_SECRET must both be set, or neither'
      : null,
  ({ auth }) => (auth ? flawOfTokenKeys(auth) : null),
  ({ http }) =>
    http && http.headersTimeoutMs > http.requestTimeoutMs
      ? `HTTP_HEADERS_TIMEOUT_MS must not be above HTTP_REQUEST_TIMEOUT_MS, but is ${http.headersTimeoutMs}`
      : null,
  ({ http, notifications }) =>
    http && notifications && notifications.streamsMax >= http.maxConnections
      ? `EVENTS_STREAMS_MAX must be below HTTP_CONNECTIONS_MAX (a stream is a connection), but is ${notifications.streamsMax}`
      : null,
  ({ operators }) =>
    operators && operators.consoleStreamsMax >= operators.maxConnections
      ? `CONSOLE_STREAMS_MAX must be below OPERATORS_CONNECTIONS_MAX (a stream is a connection), but is ${operators.consoleStreamsMax}`
      : null,
  ({ batch }) =>
    batch && batch.queueMax < batch.sizeMax
      ? `BATCH_QUEUE_MAX must be at least BATCH_SIZE_MAX, but is ${batch.queueMax}`
      : null,
  ({ batch }) =>
    batch && batch.waitMaxMs < 2 * batch.gatherMs
      ? `BATCH_WAIT_MAX_MS must be at least twice BATCH_GATHER_MS, but is ${batch.waitMaxMs}`
      : null,
];

/** The key goes along with each call, so it must not travel where others can read it. */
function flawOfProvider({ provider, apiKey, apiUrl, webhookMode }: Section<'payment'>): string | null {
  if (provider !== 'stripe' && provider !== 'http') return null;
  if (apiKey === '') return `PAYMENT_API_KEY must be set where PAYMENT_PROVIDER is ${provider}`;
  if (apiUrl === '' && provider === 'http') return 'PAYMENT_API_URL must be set where PAYMENT_PROVIDER is http';
  if (apiUrl !== '') {
    const { protocol, hostname } = new URL(apiUrl);
    if (protocol === 'http:' && !['localhost', '127.0.0.1', '[::1]'].includes(hostname)) {
      return 'PAYMENT_API_URL must begin with https: it would show PAYMENT_API_KEY to the network';
    }
  }
  if (provider !== 'stripe') return null;
  const mode = /^[sr]k_(live|test)_/.exec(apiKey)?.[1];
  if (mode === undefined) {
    return 'PAYMENT_API_KEY must be a secret or restricted key of Stripe, which begins with sk_live_, sk_test_, rk_live_ or rk_test_';
  }
  return mode === webhookMode
    ? null
    : `PAYMENT_WEBHOOK_MODE must be ${mode}, as the key of Stripe in PAYMENT_API_KEY is, but is ${webhookMode}`;
}

function flawOfTokenKeys({ algorithm, key, keys, issuers }: Section<'auth'>): string | null {
  if (key === '') {
    if (keys !== '' || issuers !== '') return null;
    return 'JWT_SECRET is not set: tokens are checked with JWT_SECRET, JWT_KEYS or the keys of JWT_ISSUERS';
  }
  if (algorithm === 'HS256') {
    const flaw = flawOfSecret(key);
    return flaw === null ? null : `JWT_SECRET ${flaw}, where JWT_ALGORITHM is HS256`;
  }
  const read = readPublicKey(key);
  if ('flaw' in read) return `JWT_SECRET ${read.flaw}, where JWT_ALGORITHM is ${algorithm}`;
  return read.algorithm === algorithm ? null : `JWT_SECRET is a key for ${read.algorithm}, not for ${algorithm}`;
}

/**
 * Reads the given sections from the environment, checks them whole and freezes them.
 * @throws ConfigError with every problem found
 */
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
  return Object.freeze(config) as Config<S[number]>;
}

/**
 * The environment as a program has set it up that runs us inside itself: what it sets goes before what is around it.
 * @param settings by the name of the variable; one that is undefined is not set
 */
export function withSettings(
  settings: Readonly<Record<string, string | number | undefined>>,
  env: Environment = process.env,
): Environment {
  const set = Object.entries(settings).filter(([, value]) => value !== undefined);
  return { ...env, ...Object.fromEntries(set.map(([name, value]) => [name, String(value)])) };
}

function readKey(key: Key<unknown>, env: Environment, problems: string[]): unknown {
  const text = env[key.env];
  if (text === undefined || text === '') {
    if (key.optional) return '';
    if (key.fallback === undefined) problems.push(`${key.env} is not set: ${key.doc}`);
    return key.fallback;
  }
  try {
    return key.parse(text);
  } catch (error) {
    problems.push(`${key.env} ${(error as Error).message}`);
    return undefined;
  }
}
