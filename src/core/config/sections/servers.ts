import { CELLS_MAX } from '../../cell.js';
import { endpoints, fixed, integer, keyList, password, pem, text, url, word, type Keys, type UrlForm } from '../key.js';

// Settings of the servers that all programs need.

/** `user:password@` with unusual characters percent-encoded, and hosts with or without a port, separated by commas. */
const WORD = /([A-Za-z0-9._~!$&*+=-]|%[0-9A-Fa-f]{2})*/.source;
const LOGIN = `(${WORD}(:${WORD})?@)?`;
const HOST = /([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/.source;
const HOSTS = `${HOST}(,${HOST})*`;

const SENTINEL_URL: UrlForm = {
  words: 'redis[s]+sentinel://[user:password@]host:port,host:port/master-name[/db]',
  pattern: new RegExp(`^rediss?\\+sentinel://${LOGIN}${HOSTS}/[A-Za-z0-9._-]+(/[0-9]{1,2})?$`),
};
const CLUSTER_URL: UrlForm = {
  words: 'redis[s]+cluster://[user:password@]host:port,host:port',
  pattern: new RegExp(`^rediss?\\+cluster://${LOGIN}${HOSTS}/?$`),
};

/**
 * @param prefix of the variables
 * @param servers that have these certificates
 * @param address the variable with their hosts
 */
const tlsKeys = (prefix: string, servers: string, address: string) =>
  ({
    tlsCa: pem({
      env: `${prefix}_CA`,
      doc: `Certificate authorities to trust for ${servers}. Not set: those of Node.js and NODE_EXTRA_CA_CERTS.`,
      holds: 'certificates',
    }),
    tlsCert: pem({
      env: `${prefix}_CERT`,
      doc: 'Client certificate with its chain, if the server asks for one.',
      holds: 'chain',
    }),
    tlsKey: pem({ env: `${prefix}_KEY`, doc: `Private key of ${prefix}_CERT.`, holds: 'key', secret: true }),
    tlsServerName: text({
      env: `${prefix}_SERVER_NAME`,
      doc: `Host name in the certificates of ${servers}. Not set: the host in ${address}.`,
      optional: true,
      minLength: 1,
      range: 'host name or IP address',
    }),
  }) as const satisfies Keys;

export const redis = {
  url: url({
    env: 'REDIS_URL',
    doc: 'Redis that holds the stock: one server, a master that sentinels name, or a cluster (name some of its servers). `rediss` uses TLS. User and password are for Redis, not for the sentinels.',
    protocols: ['redis:', 'rediss:'],
    forms: [SENTINEL_URL, CLUSTER_URL],
    secret: true,
  }),
  password: password({
    env: 'REDIS_PASSWORD',
    doc: 'Password for Redis, if REDIS_URL has none.',
  }),
  sentinelUser: text({
    env: 'REDIS_SENTINEL_USER',
    doc: 'User name for Sentinel authentication. Not set: the default user.',
    optional: true,
    minLength: 1,
    range: 'text',
  }),
  sentinelPassword: password({
    env: 'REDIS_SENTINEL_PASSWORD',
    doc: 'Password for Sentinel authentication. Not set: no password.',
  }),
  ...tlsKeys('REDIS_TLS', 'Redis and its sentinels', 'REDIS_URL'),
  replyTimeoutMs: integer({
    env: 'REDIS_REPLY_TIMEOUT_MS',
    doc: 'Time limit for a reply from Redis. After that, the outcome of the command is unknown.',
    unit: 'ms',
    fallback: 1500,
    min: 50,
    max: 30000,
  }),
  markerLifeMs: integer({
    env: 'MARKER_LIFE_MS',
    doc: 'How long Redis remembers that a batch was recorded or took no units. Must be longer than the broker keeps half messages (72 h by default).',
    unit: 'ms',
    fallback: 345600000,
    min: 1000,
    max: 2592000000,
  }),
  waitReplicas: integer({
    env: 'REDIS_WAIT_REPLICAS',
    doc: 'Number of Redis replicas that must store a purchase before its buyer gets 202 ([durability](durability.md)). 0: none.',
    unit: 'replicas',
    fallback: 0,
    min: 0,
    max: 8,
  }),
  waitReplicasMs: integer({
    env: 'REDIS_WAIT_REPLICAS_MS',
    doc: 'How long to wait for these replicas. After that, the buyer gets `outcome_unknown`, but the order is still created.',
    unit: 'ms',
    fallback: 500,
    min: 10,
    max: 10000,
  }),
} as const satisfies Keys;

export const rocketmq = {
  endpoint: endpoints({
    env: 'ROCKETMQ_ENDPOINT',
    doc: 'RocketMQ proxies (gRPC). A client that cannot reach one uses the next.',
  }),
  route: word({
    env: 'ROCKETMQ_ROUTE',
    doc: 'Address that calls use: the one that the broker returns (`handed_out`), or ROCKETMQ_ENDPOINT (`endpoint`), for a single broker behind a port mapping.',
    words: ['handed_out', 'endpoint'],
    fallback: 'handed_out',
  }),
  /** Timeout of a half message, a commit or a rollback. The client makes up to three attempts. */
  requestTimeoutMs: fixed('ROCKETMQ_REQUEST_TIMEOUT_MS', 3000),
  /** Wait of a receive, and so the time to stop a program. A proxy with default settings accepts no less. */
  receiveWaitMs: fixed('ROCKETMQ_RECEIVE_WAIT_MS', 5000),
  /** Timeout of one attempt to start a client, because an attempt may hang. */
  startTimeoutMs: fixed('ROCKETMQ_START_TIMEOUT_MS', 20_000),
  /** Maximum number of check-backs that we answer at once, because the client starts all of them together. */
  checksInParallel: fixed('ROCKETMQ_CHECKS_IN_PARALLEL', 32),
} as const satisfies Keys;

export const brokerAccess = {
  key: text({
    env: 'ROCKETMQ_ACCESS_KEY',
    doc: 'User name for RocketMQ. Not set: a broker with access control refuses the programs.',
    optional: true,
    minLength: 1,
    range: 'text',
  }),
  secret: password({
    env: 'ROCKETMQ_ACCESS_SECRET',
    doc: 'Secret of ROCKETMQ_ACCESS_KEY. It signs requests and is never sent.',
  }),
  sessionToken: password({
    env: 'ROCKETMQ_SESSION_TOKEN',
    doc: 'Session token of temporary credentials, which some clouds issue.',
  }),
  tls: word({
    env: 'ROCKETMQ_TLS',
    doc: 'Connections that use TLS: none (`off`), those to the gRPC proxy (`grpc`), or also those to name servers and brokers (`on`).',
    words: ['off', 'grpc', 'on'],
    fallback: 'off',
  }),
  ...tlsKeys('ROCKETMQ_TLS', 'RocketMQ', 'the address of each server'),
} as const satisfies Keys;

export const messages = {
  keys: keyList({
    env: 'MESSAGE_KEYS',
    doc: 'Keys that sign messages, the same for every program. The first key signs, all are accepted.',
  }),
  unsigned: word({
    env: 'MESSAGE_UNSIGNED',
    doc: 'Whether programs accept messages without a signature. Use `accept` only during an upgrade from 1.0.0.',
    words: ['refuse', 'accept'],
    fallback: 'refuse',
  }),
} as const satisfies Keys;

export const mysql = {
  url: url({
    env: 'MYSQL_URL',
    doc: 'MySQL or MariaDB database that holds the orders.',
    protocols: ['mysql:'],
    secret: true,
  }),
  password: password({ env: 'MYSQL_PASSWORD', doc: 'Password for MySQL, if MYSQL_URL has none.' }),
  tls: word({
    env: 'MYSQL_TLS',
    doc: 'Whether connections to MySQL use TLS. `on` refuses a server without TLS.',
    words: ['off', 'on'],
    fallback: 'off',
  }),
  ...tlsKeys('MYSQL_TLS', 'MySQL', 'MYSQL_URL'),
  poolMax: integer({
    env: 'MYSQL_POOL_MAX',
    doc: 'Maximum number of MySQL connections of one process. A worker needs at least twice WORKER_LOOPS.',
    unit: 'connections',
    fallback: 8,
    min: 1,
    max: 200,
  }),
  queryTimeoutMs: integer({
    env: 'MYSQL_QUERY_TIMEOUT_MS',
    doc: 'Time limit for one SQL statement.',
    unit: 'ms',
    fallback: 10000,
    min: 100,
    max: 120000,
  }),
  cell: integer({
    env: 'CELL',
    doc: 'Number of this installation if sales are divided between several ([cells](servers.md#cells)), the same for all its programs. 0: sales are not divided.',
    unit: '',
    fallback: 0,
    min: 0,
    max: CELLS_MAX,
  }),
} as const satisfies Keys;
