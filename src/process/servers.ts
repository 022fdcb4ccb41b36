import type { Registry } from 'prom-client';
import type { Config, Section } from '../core/config/schema.js';
import { startProblems } from '../core/doctor/check.js';
import { MYSQL_START_CHECKS } from '../core/doctor/mysql-checks.js';
import { OperationalError } from '../core/errors.js';
import { readKeyring } from '../core/hmac.js';
import { MessageSignatures, SignedMessages } from '../core/message-signatures.js';
import type { OutboxMark } from '../core/ports/outbox-mark.js';
import type { DeadLetterParking } from '../core/ports/dead-letters.js';
import type { Tls } from '../core/tls.js';
import { recent } from '../core/recent.js';
import type { Log } from '../core/ports/log.js';
import type { ReadyReport } from '../http/services.js';
import type { IssuerKeys } from '../http/token-keys.js';
import { lostTailOf } from '../mysql/lost-tail.js';
import { type MysqlPool, openMysqlPool, type Statements } from '../mysql/pool.js';
import { readMysqlStartFacts } from '../mysql/read-facts.js';
import type { ClockWatch } from '../orders/clock-watch.js';
import type { OrderIdMinter } from '../orders/order-id-minter.js';
import { namedAddress, readRedisAddress } from '../redis/address.js';
import { connectRedis, type RedisConnection } from '../redis/connection.js';
import { createOutboxMark } from '../redis/outbox-mark.js';
import { findRedisMisconfiguration, probeRedis, probeRedisWrites } from '../redis/probe.js';
import { createSignatureMetrics } from '../rocketmq/metrics.js';
import { type ChannelHealth, probeBroker } from '../rocketmq/probe.js';
import { brokerAccessOf } from '../rocketmq/credentials.js';
import type { ConnectionOptions } from '../rocketmq/client-options.js';
import type { Opened } from './all-or-nothing.js';
import { systemClock } from './system-clock.js';
import { createPoolWaits } from './telemetry.js';
import { type OpenTracing, openTracing } from './tracing.js';

/**
 * Returns the servers that a program uses, without logins. The first log line of the program names them, because a
 * server at a wrong address may answer too.
 */
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
 * Connects to Redis, and refuses a server that must not hold stock: it evicts keys, keeps no log, or has a wrong clock.
 * @throws OperationalError redis, with one sentence for each problem
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
 * Checks whether MySQL can store orders safely. Refuses a server that has unexpected session settings, cannot tell
 * different ids apart, or has tables without transactions.
 * @throws OperationalError mysql, with one sentence for each problem, or if MySQL does not answer
 */
export async function checkMysql(mysql: MysqlPool): Promise<void> {
  const problems = startProblems(MYSQL_START_CHECKS, await readMysqlStartFacts(mysql));
  if (problems.length === 0) return;
  throw new OperationalError('mysql', `this MySQL cannot hold orders: ${problems.join(' ')}`, { retryable: false });
}

/** The connections that every program has: the tracing exporter and the two stores. */
interface Stores {
  readonly tracing: OpenTracing;
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  /** Each new connection of `mysql` is compared with this mark. */
  readonly outboxMark: OutboxMark;
  /** Closes Redis first and tracing last. */
  close(): Promise<void>;
}

/**
 * Opens tracing, Redis and MySQL, in this order. Refuses servers that must not hold stock or orders.
 * @throws OperationalError redis or mysql; `opened` has received all parts that were already open
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
  const outboxMark = createOutboxMark(redis);
  const flawOf = (session: Statements): Promise<string | null> => lostTailOf(session, outboxMark);
  const mysql = openMysqlPool({ ...config.mysql, flawOf, onWait: createPoolWaits(registry) });
  opened(() => mysql.close());
  await checkMysql(mysql);
  return {
    tracing,
    redis,
    mysql,
    outboxMark,
    async close(): Promise<void> {
      await redis.close();
      await mysql.close();
      await tracing.close();
    },
  };
}

/** Returns how all clients of the broker connect and start. */
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

/** Signs and checks messages with the configured keys. */
export const messageSignatures = ({ keys, unsigned }: Section<'messages'>): MessageSignatures =>
  new MessageSignatures(readKeyring(keys), unsigned);

/** Drops messages without our signature. */
export function openSignedMessages(
  messages: Section<'messages'>,
  parts: { readonly deadLetters: DeadLetterParking; readonly registry: Registry; readonly log: Log },
): SignedMessages {
  const { deadLetters, registry, log } = parts;
  if (messages.unsigned === 'accept') log.warn({}, 'unsigned messages are accepted; use this only during an upgrade');
  const metrics = createSignatureMetrics(registry);
  return new SignedMessages({ signatures: messageSignatures(messages), deadLetters, metrics, log });
}

/**
 * Returns the check behind `/readyz`. It asks all servers at once, and answers within a second even if a server hangs.
 * Requests that come at about the same time share the answers.
 */
export function createReadiness(servers: {
  readonly redis: RedisConnection;
  /** If left out, the check neither asks MySQL nor waits for it. */
  readonly mysql?: MysqlPool;
  readonly endpoint: string;
  /** TLS of the broker. Null or absent if the connection is not encrypted. */
  readonly tls?: Tls | null | undefined;
  readonly health?: ChannelHealth;
  /** Set for a worker, which is useless without order ids. */
  readonly minter?: OrderIdMinter;
  /** Set for a keeper, which ends no order while the clocks differ. */
  readonly clocks?: ClockWatch;
  /** Set for an api: whether it follows the admission rules. */
  readonly rules?: () => { readonly ok: boolean; readonly detail: string };
  /** Set for an api. Without the keys of an issuer, it cannot authenticate that issuer's buyers. */
  readonly issuers?: readonly IssuerKeys[];
}): () => Promise<ReadyReport> {
  const { redis, mysql, endpoint, tls, health, minter, clocks, rules, issuers = [] } = servers;
  const probes = [
    prompt('redis', () => probeRedisWrites(redis)),
    prompt('rocketmq', () => askBroker(endpoint, health, tls)),
    ...(mysql === undefined ? [] : [prompt('mysql', () => probeMysql(mysql))]),
  ];
  return async () => {
    const dependencies: ReadyReport['dependencies'][number][] = await Promise.all(probes.map((ask) => ask()));
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
}

type Probe = { readonly ok: boolean; readonly detail: string };

/** Time within which `/readyz` answers. A load balancer waits for a second. */
const READY_WITHIN_MS = 800;
/** How long a server's answer is reused, so that frequent requests cost the servers nothing. */
const PROBE_KEPT_MS = 500;

/**
 * Limits the wait for the probe of a server. A late probe continues, and later callers share it.
 * @param probe never rejects, and ends by itself at some time
 */
function prompt(name: string, probe: () => Promise<Probe>): () => Promise<Probe & { readonly name: string }> {
  let answeredMs: number | null = null;
  const ask = recent(
    async () => {
      const said = await probe();
      if (said.ok) answeredMs = systemClock.monotonicMs();
      return said;
    },
    PROBE_KEPT_MS,
    systemClock,
  );
  return async () => {
    const timer = new AbortController();
    const late = systemClock.sleep(READY_WITHIN_MS, timer.signal).then(async (): Promise<Probe> => {
      await new Promise(setImmediate); // lets in answers that arrived while this process was busy
      const agoMs = answeredMs === null ? null : systemClock.monotonicMs() - answeredMs;
      const before = agoMs === null ? 'none yet' : `${(agoMs / 1000).toFixed(1)} s ago`;
      return { ok: false, detail: `no answer within ${READY_WITHIN_MS} ms; last good answer: ${before}` };
    });
    const said = await Promise.race([ask(), late]);
    timer.abort();
    return { name, ...said };
  };
}

async function askBroker(endpoint: string, health?: ChannelHealth, tls?: Tls | null): Promise<Probe> {
  const probe = await probeBroker(endpoint, health, tls);
  return probe.state === 'reachable' ? { ok: true, detail: endpoint } : { ok: false, detail: probe.detail };
}

const clockReport = ({ problem }: ClockWatch) => ({
  ok: problem === null,
  detail: problem ?? 'agree',
});

/** Never rejects. */
async function probeMysql(mysql: MysqlPool): Promise<Probe> {
  const problem = await mysql.probe().then(
    () => mysql.writeRefusal(),
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  return { ok: problem === null, detail: problem ?? 'answers' };
}
