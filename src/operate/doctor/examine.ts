import { pause } from '../../core/after.js';
import type { Environment } from '../../core/config/load.js';
import type { Section } from '../../core/config/schema.js';
import type { Asked } from '../../core/doctor/check.js';
import type { MysqlFacts } from '../../core/doctor/mysql-checks.js';
import type { Reach } from '../../core/doctor/reach.js';
import type { RedisFacts } from '../../core/doctor/redis-checks.js';
import { OperationalError } from '../../core/errors.js';
import { NOT_SET } from '../../core/live.js';
import type { Log } from '../../core/ports/log.js';
import type { ProgramKind } from '../../core/ports/program-reports.js';
import { sentence, withoutPoint } from '../../core/text.js';
import { TOPICS } from '../../core/topics.js';
import { openMysqlPool } from '../../mysql/pool.js';
import { readMysqlFacts } from '../../mysql/read-facts.js';
import { addressOf } from '../../mysql/server.js';
import { connectRedis } from '../../redis/connection.js';
import { createProgramReports } from '../../redis/program-reports.js';
import { createOutboxMark } from '../../redis/outbox-mark.js';
import { readRedisFacts } from '../../redis/read-facts.js';
import { systemClock } from '../../process/system-clock.js';
import { brokersKnownTo, parseAddress, type BrokerAddress } from '../../rocketmq/admin/broker-state.js';
import { askRemoting, RemotingError, REQUEST, type RemotingAddress } from '../../rocketmq/admin/remoting.js';
import { readTopicLists } from '../../rocketmq/admin/topic-lists.js';
import { parseEndpoint, proxiesOf } from '../../rocketmq/client-options.js';
import { type BrokerAccess, brokerAccessOf } from '../../rocketmq/credentials.js';
import { probeAsStranger, probeTopics } from '../../rocketmq/probe-topics.js';
import { freeShareOf, reachOf } from './machine.js';
import { readBrokerFacts, type BrokerSays } from './read-broker-facts.js';
import { reportOn, type Report } from './report.js';
import type { BrokerFacts, OpenPort, RocketmqFacts } from './rocketmq-checks.js';
import { readSection, sectionOf, settingsIn } from './settings.js';

/** Time-out of one answer. A healthy server takes milliseconds. */
const ANSWER_WITHIN_MS = 3000;
/** Time-out of all answers of a server, including the connect. */
const SERVER_WITHIN_MS = 10_000;
const CONNECT_WITHIN_MS = 1500;
/** Short, because the answer of a resolver is only a detail and must not delay the report. */
const LOOKUP_WITHIN_MS = 2000;

/** Asks all servers in parallel for at most some ten seconds. Changes nothing. Never rejects because of a server. */
export async function examine(
  env: Environment,
  options: {
    /** The programs whose settings must be valid. */
    readonly programs: readonly ProgramKind[];
    readonly cluster: string | null;
    /** Ids of checks whose risk the operator accepts. */
    readonly accepted?: ReadonlySet<string>;
  },
): Promise<Report> {
  const redisAsked = askRedis(env);
  const published = within(ANSWER_WITHIN_MS, redisAsked).then((asked) => asked?.published ?? null);
  const [{ redis, programs }, mysql, rocketmq] = await Promise.all([
    redisAsked,
    inTime('MySQL', askMysql(env, published)),
    askRocketmq(env, options.cluster),
  ]);
  const withPrograms = 'down' in mysql ? mysql : { ...mysql, programs };
  const settings = settingsIn(env, options.programs);
  return reportOn({ settings, redis, mysql: withPrograms, rocketmq }, options.accepted);
}

/** Turns a time-out or an error of the server into a finding. @throws any other error of `asking` */
async function inTime<F extends object>(server: string, asking: Promise<Asked<F>>): Promise<Asked<F>> {
  try {
    const asked = await within(SERVER_WITHIN_MS, asking);
    if (asked !== null) return asked;
    return silent(`${server} did not answer within ${SERVER_WITHIN_MS / 1000} s.`, 'Check whether it hangs.');
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    const said = error.message.replace(/^mysql: \w+: /, 'MySQL refuses this program: ');
    return silent(sentence(said), `Check its address and login, and that ${server} runs.`);
  }
}

const silent = (down: string, todo: string) => ({ down, todo });

const notUsable = (wrong: string) => silent(wrong, 'Set it, or correct it.');

/** Used if a look-up fails or takes too long: a server on another machine that is not visibly open to outsiders. */
const ELSEWHERE: Reach = { at: 'private', open: null };

/** Never rejects. */
async function reach(host: string, port: number): Promise<Reach> {
  const found = reachOf(host.replace(/^\[(.*)\]$/, '$1'), port).catch(() => ELSEWHERE);
  return (await within(LOOKUP_WITHIN_MS, found)) ?? ELSEWHERE;
}

async function within<T>(ms: number, asking: Promise<T>): Promise<T | null> {
  const timer = new AbortController();
  const late = pause(ms, timer.signal).then(() => null);
  return Promise.race([asking, late]).finally(() => timer.abort());
}

async function askRedis(env: Environment): Promise<{
  readonly redis: Asked<RedisFacts>;
  /** Number of processes that report to Redis that they run. Null if unknown. */
  readonly programs: number | null;
  /** The highest number of a published event. Null if unknown. */
  readonly published: bigint | null;
}> {
  let programs: number | null = null;
  let published: bigint | null = null;
  const ask = async (): Promise<Asked<RedisFacts>> => {
    const read = readSection('redis', env);
    if ('wrong' in read) return notUsable(read.wrong);
    const { section: options } = read;
    const connection = await openForLook(options);
    try {
      const says = await readRedisFacts(connection);
      programs = await createProgramReports(connection, systemClock)
        .live()
        .then((live) => live.length)
        .catch(() => null);
      published = await createOutboxMark(connection).read();
      const servers = await Promise.all(
        says.map(async ({ address, port, dataDir, ...facts }) => {
          const where = await reach(address, port);
          return { ...facts, reach: where, disk: dataDir === null ? null : await freeShareOf(dataDir, where) };
        }),
      );
      return { servers, waitReplicas: options.waitReplicas };
    } finally {
      void connection.close(); // closing a connection to a server that hangs takes a while
    }
  };
  const redis = await inTime('Redis', ask());
  return { redis, programs, published };
}

/** @throws OperationalError redis, with the messages that the client logged */
async function openForLook(options: Section<'redis'>) {
  const said: string[] = [];
  const log: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (fields) => said.push((fields as { err?: Error }).err?.message ?? ''),
    error: () => undefined,
  };
  const timeouts = { replyTimeoutMs: ANSWER_WITHIN_MS, connectTimeoutMs: CONNECT_WITHIN_MS };
  try {
    return await connectRedis({ ...options, ...timeouts }, log);
  } catch (error) {
    const [reason] = said.filter((text) => text !== '');
    if (!(error instanceof OperationalError) || reason === undefined || error.message.includes(reason)) throw error;
    throw new OperationalError('redis', `${error.message} It says: ${reason}`, { retryable: true, cause: error });
  }
}

async function askMysql(env: Environment, marked: Promise<bigint | null>): Promise<Asked<MysqlFacts>> {
  const read = readSection('mysql', env);
  if ('wrong' in read) return notUsable(read.wrong);
  const { section: options } = read;
  const { poolMax } = options;
  const timeouts = { queryTimeoutMs: ANSWER_WITHIN_MS, connectTimeoutMs: ANSWER_WITHIN_MS };
  const pool = openMysqlPool({ ...options, poolMax: 2, ...timeouts }); // `mysql.locks` needs two sessions
  try {
    const published = await marked; // before the next number is read, which only moves away from the mark
    const { dataDir, ...says } = await readMysqlFacts(pool);
    const { host, port } = addressOf(options);
    const where = await reach(host, port);
    const witness = sectionOf('keeper', env)?.witness ?? 'off';
    return {
      ...says,
      witness,
      poolMax,
      programs: null,
      published,
      reach: where,
      disk: await freeShareOf(dataDir, where),
    };
  } finally {
    void pool.close().catch(() => undefined);
  }
}

async function askRocketmq(env: Environment, cluster: string | null): Promise<RocketmqFacts> {
  const place = sectionOf('rocketmq', env)?.endpoint ?? '';
  const namesrv = sectionOf('repair', env)?.namesrv ?? '';
  const markerLifeMs = sectionOf('redis', env)?.markerLifeMs ?? Infinity;
  const wanted = readSection('brokerAccess', env);
  if ('wrong' in wanted) {
    // without these settings the proxy is not asked, because it would be blamed for them
    const endpoint = { place, refusal: withoutPoint(wanted.wrong), reach: ELSEWHERE };
    const nameServer = namesrv === '' ? ('unset' as const) : { problem: wanted.wrong };
    const nothing = { strangers: null, brokers: [], silent: [], ports: [] };
    return { endpoint, nameServer, ...nothing, encrypted: wantsTls(env), markerLifeMs };
  }
  const access = brokerAccessOf(wanted.section);
  const asStranger = brokerAccessOf({ ...wanted.section, key: '', tlsCert: NOT_SET, tlsKey: NOT_SET });
  const [proxy, looked] = await Promise.all([
    askProxies(place, access),
    askBrokers(namesrv, { access, asStranger, cluster }),
  ]);
  return {
    ...proxy,
    ...looked,
    encrypted: (access.tls ?? null) !== null,
    ports: [...proxy.ports, ...looked.ports],
    markerLifeMs,
  };
}

/** Whether ROCKETMQ_TLS asks for TLS. Reads the variable itself, for settings that are not valid as a whole. */
const wantsTls = ({ ROCKETMQ_TLS: tls = '' }: Environment): boolean => tls !== '' && tls !== 'off';

type ProxyFacts = Pick<RocketmqFacts, 'endpoint' | 'strangers' | 'ports'>;

async function askProxies(place: string, access: BrokerAccess): Promise<ProxyFacts> {
  if (place === '') {
    const refusal = 'ROCKETMQ_ENDPOINT is not set or not valid';
    return { endpoint: { place, refusal, reach: ELSEWHERE }, strangers: null, ports: [] };
  }
  const all = await Promise.all(proxiesOf(place).map((proxy) => askProxy(proxy, access)));
  const refusals = all.flatMap(({ endpoint }) => endpoint.refusal ?? []);
  const reaches = all.map(({ endpoint }) => endpoint.reach);
  const farthest = (['public', 'private', 'this_machine'] as const).flatMap(
    (at) => reaches.find((one) => one.at === at) ?? [],
  );
  const said = all.flatMap(({ strangers }) => strangers ?? []);
  return {
    endpoint: { place, refusal: refusals.length === 0 ? null : refusals.join('. '), reach: farthest[0] ?? ELSEWHERE },
    strangers: said.includes('served') ? 'served' : (said[0] ?? null),
    ports: all.flatMap(({ ports }) => ports),
  };
}

async function askProxy(place: string, access: BrokerAccess): Promise<ProxyFacts> {
  const { host, port } = parseEndpoint(place);
  const [refusal, strangers, where] = await Promise.all([
    probeTopics({ endpoint: place, ...access }, Object.values(TOPICS)),
    probeAsStranger({ endpoint: place, tls: access.tls }, TOPICS.purchase),
    reach(host, port),
  ]);
  const grpc = { what: `The proxy at ${place}`, reach: where, guarded: strangers !== 'served' };
  const says = refusal === null ? null : withoutPoint(sentence(refusal));
  return { endpoint: { place, refusal: says, reach: where }, strangers, ports: [grpc] };
}

type Looked = Pick<RocketmqFacts, 'nameServer' | 'brokers' | 'silent' | 'ports'>;

async function askBrokers(
  namesrv: string,
  {
    access,
    asStranger,
    cluster,
  }: { readonly access: BrokerAccess; readonly asStranger: BrokerAccess; readonly cluster: string | null },
): Promise<Looked> {
  const nothing = { brokers: [], silent: [], ports: [] };
  if (namesrv === '') return { nameServer: 'unset', ...nothing };
  const nameServers = await Promise.all(namesrv.split(';').map((text) => nameServerPort(text, asStranger)));
  const ports = nameServers.flatMap((one) => one ?? []);
  try {
    const known = await brokersKnownTo(namesrv, access, cluster);
    const asked = await Promise.all(known.map(async (broker) => ({ broker, says: await askBroker(broker) })));
    const brokers: BrokerFacts[] = [];
    const away: { server: string; why: string }[] = [];
    for (const { broker, says } of asked) {
      if (typeof says === 'string') away.push({ server: broker.name, why: says });
      else {
        brokers.push(says);
        ports.push(...(await portsOf(broker, says)));
      }
    }
    return { nameServer: { problem: null }, brokers, silent: away, ports };
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    return { nameServer: { problem: error.message }, ...nothing, ports };
  }
}

async function askBroker(broker: BrokerAddress): Promise<BrokerSays | string> {
  try {
    return await readBrokerFacts(broker, readTopicLists());
  } catch (error) {
    if (error instanceof RemotingError) return error.message;
    throw error;
  }
}

/** A name server never asks for a login, but maybe for a certificate. @param asStranger without our certificate */
async function nameServerPort(text: string, asStranger: BrokerAccess): Promise<OpenPort | null> {
  try {
    const address = parseAddress(text, asStranger);
    const isByTls = (asStranger.adminTls ?? null) !== null;
    const guarded = isByTls && !(await serves(address));
    return { what: `The name server ${text}`, reach: await reach(address.host, address.port), guarded };
  } catch {
    return null; // the search for brokers reports it
  }
}

const serves = (nameServer: RemotingAddress): Promise<boolean> =>
  askRemoting(nameServer, REQUEST.clusterInfo).then(
    () => true,
    () => false,
  );

async function portsOf({ host, port }: RemotingAddress, broker: BrokerSays): Promise<OpenPort[]> {
  const { server, strangers, replicaPort, feedsReplicas } = broker;
  const admin = {
    what: `The admin port of ${server}`,
    reach: await reach(host, port),
    guarded: strangers === 'refused',
  };
  if (replicaPort === null) return [admin];
  // replicas need no login
  const ofReplicas = `The port for replicas of ${server}`;
  return [admin, { what: ofReplicas, reach: await reach(host, replicaPort), guarded: !feedsReplicas }];
}
