import type { Registry } from 'prom-client';
import type { Config, Section } from '../core/config/schema.js';
import { startProblems } from '../core/doctor/check.js';
import { MYSQL_START_CHECKS } from '../core/doctor/mysql-checks.js';
import { OperationalError } from '../core/errors.js';
import { readKeyring } from '../core/hmac.js';
import { MessageSignatures, SignedMessages } from '../core/message-signatures.js';
import type { DeadLetterRepository } from '../core/ports/dead-letter-repository.js';
import { recent } from '../core/recent.js';
import type { Log } from '../core/ports/log.js';
import type { ReadyReport } from '../http/services.js';
import type { IssuerKeys } from '../http/token-keys.js';
import { type MysqlPool, openMysqlPool } from '../mysql/pool.js';
import { readMysqlStartFacts } from '../mysql/read-facts.js';
import type { ClockWatch } from '../orders/clock-watch.js';
import type { OrderIdMinter } from '../orders/order-id-minter.js';
import { namedAddress, readRedisAddress } from '../redis/address.js';
import { connectRedis, type RedisConnection } from '../redis/connection.js';
import { findRedisMisconfiguration, probeRedis, probeRedisWrites } from '../redis/probe.js';
import { createSignatureMetrics } from '../rocketmq/metrics.js';
import { type ChannelHealth, probeBroker } from '../rocketmq/probe.js';
import { brokerAccessOf } from '../rocketmq/credentials.js';
import type { ConnectionOptions } from '../rocketmq/client-options.js';
import type { Opened } from './all-or-nothing.js';
import { systemClock } from './system-clock.js';
import { createPoolWaits } from './telemetry.js';
import { type OpenTracing, openTracing } from './tracing.js';

/** Which servers a program uses, without logins: its first line of log says so, since a wrong address may answer as well. */
export function serversOf({
  mysql,
  redis,
  rocketmq,
  repair,
}: Config<'mysql' | 'redis' | 'rocketmq'> & Partial<Config<'repair'>>): Record<string, string> {
  const { host, pathname } = new URL(mysql.url);
  return {
    mysql: `${host}${pathname}`,
    redis: namedAddress(readRedisAddress(redis.url)),
    rocketmq: rocketmq.endpoint,
    ...(repair === undefined || repair.namesrv === '' ? {} : { nameServer: repair.namesrv }),
  };
}

/**
 * Connects to Redis, and refuses one that must not hold stock: it evicts, keeps no log, or its clock is wrong.
 * @throws OperationalError redis, with a sentence per problem
 */
export async function openRedis(options: Section<'redis'>, log: Log): Promise<RedisConnection> {
  const connection = await connectRedis(options, log);
  try {
    const problems = await findRedisMisconfiguration(connection);
    if (problems.length === 0) {
      const probe = await probeRedis(connection);
      if (probe.ok) return connection;
      problems.push(probe.detail);
    }
    const where = namedAddress(readRedisAddress(options.url));
    throw new OperationalError('redis', `Redis at ${where} cannot hold stock: ${problems.join(' ')}`, {
      retryable: false,
    });
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/**
 * Asks MySQL whether orders may be written there, and refuses where it would do wrong with them: sessions that are not as we set
 * them up, ids that it does not tell apart, tables without transactions.
 * @throws OperationalError mysql: with a sentence per problem, or since it does not answer
 */
export async function checkMysql(mysql: MysqlPool): Promise<void> {
  const problems = startProblems(MYSQL_START_CHECKS, await readMysqlStartFacts(mysql));
  if (problems.length === 0) return;
  throw new OperationalError('mysql', `this MySQL cannot hold orders: ${problems.join(' ')}`, { retryable: false });
}

/** What every program has open: where spans go, and the two stores. */
interface Stores {
  readonly tracing: OpenTracing;
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  /** Redis first, the spans last. */
  close(): Promise<void>;
}

/**
 * Opens what spans go to, Redis and MySQL, in this order, and refuses servers that must not hold stock or orders.
 * @throws OperationalError redis or mysql; those that are open by then were given to `opened`
 */
export async function openStores(
  config: Config<'tracing' | 'redis' | 'mysql'>,
  program: 'api' | 'worker' | 'keeper',
  { registry, log, opened }: { readonly registry: Registry; readonly log: Log; readonly opened: Opened },
): Promise<Stores> {
  const tracing = await openTracing(config.tracing, program, { registry, clock: systemClock, log });
  opened(() => tracing.close());
  const redis = await openRedis(config.redis, log);
  opened(() => redis.close());
  const mysql = openMysqlPool({ ...config.mysql, onWait: createPoolWaits(registry) });
  opened(() => mysql.close());
  await checkMysql(mysql);
  return {
    tracing,
    redis,
    mysql,
    async close(): Promise<void> {
      await redis.close();
      await mysql.close();
      await tracing.close();
    },
  };
}

/** How every client of the broker connects and starts. */
export function brokerConnection(
  { rocketmq, brokerAccess }: Config<'rocketmq' | 'brokerAccess'>,
  log: Log,
): ConnectionOptions {
  return {
    endpoint: rocketmq.endpoint,
    ...brokerAccessOf(brokerAccess),
    pinEndpoint: rocketmq.route === 'endpoint',
    requestTimeoutMs: rocketmq.requestTimeoutMs,
    start: { startupTimeoutMs: rocketmq.startTimeoutMs },
    log,
  };
}

/** Signs messages, and checks them, with the configured keys. */
export const messageSignatures = ({ keys, unsigned }: Section<'messages'>): MessageSignatures =>
  new MessageSignatures(readKeyring(keys), unsigned);

/** Keeps out messages that were not signed by us. */
export function openSignedMessages(
  messages: Section<'messages'>,
  parts: { readonly deadLetters: DeadLetterRepository; readonly registry: Registry; readonly log: Log },
): SignedMessages {
  const { deadLetters, registry, log } = parts;
  if (messages.unsigned === 'accept') log.warn({}, 'messages without a signature are let in: for an update only');
  const metrics = createSignatureMetrics(registry);
  return new SignedMessages({ signatures: messageSignatures(messages), deadLetters, metrics, log });
}

/** What `/readyz` says. Asks every server at once; two requests at the same time share the answers. */
export function createReadiness(servers: {
  readonly redis: RedisConnection;
  /** Left out: it is neither asked nor waited for. */
  readonly mysql?: MysqlPool;
  readonly endpoint: string;
  readonly health?: ChannelHealth;
  /** Of a worker, which is of no use without order ids. */
  readonly minter?: Pick<OrderIdMinter, 'problem'>;
  /** Of a keeper, which ends no order while the clocks differ. */
  readonly clocks?: Pick<ClockWatch, 'problem'>;
  /** Of an api: whether it has the rules of admission in force. */
  readonly rules?: () => { readonly ok: boolean; readonly detail: string };
  /** Of an api: without the keys of an issuer none of its buyers can be let in. */
  readonly issuers?: readonly Pick<IssuerKeys, 'issuer' | 'isKnown'>[];
}): () => Promise<ReadyReport> {
  const { redis, mysql, endpoint, health, minter, clocks, rules, issuers = [] } = servers;
  const ask = async (): Promise<ReadyReport> => {
    const [redisProbe, brokerProbe, mysqlProbe] = await Promise.all([
      probeRedisWrites(redis),
      probeBroker(endpoint, health),
      mysql === undefined ? null : probeMysql(mysql),
    ]);
    const isReachable = brokerProbe.state === 'reachable';
    const dependencies = [
      { name: 'redis', ...redisProbe },
      { name: 'rocketmq', ok: isReachable, detail: isReachable ? endpoint : brokerProbe.detail },
    ];
    if (mysqlProbe !== null) dependencies.push({ name: 'mysql', ...mysqlProbe });
    if (minter !== undefined) {
      const problem = minter.problem();
      dependencies.push({ name: 'order ids', ok: problem === null, detail: problem ?? 'minted' });
    }
    if (clocks !== undefined) dependencies.push({ name: 'clocks', ...clockReport(clocks) });
    if (rules !== undefined) dependencies.push({ name: 'admission rules', ...rules() });
    for (const { issuer, isKnown: ok } of issuers) {
      const detail = ok ? 'known' : 'its address has not answered yet';
      dependencies.push({ name: `keys of ${issuer}`, ok, detail });
    }
    return { ready: dependencies.every(({ ok }) => ok), dependencies };
  };
  return recent(ask, 0, systemClock);
}

const clockReport = ({ problem }: Pick<ClockWatch, 'problem'>) => ({
  ok: problem === null,
  detail: problem ?? 'agree',
});

/** Never rejects. */
async function probeMysql(mysql: MysqlPool): Promise<{ readonly ok: boolean; readonly detail: string }> {
  const problem = await mysql.probe().then(
    () => mysql.writeRefusal(),
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  return { ok: problem === null, detail: problem ?? 'answers' };
}
