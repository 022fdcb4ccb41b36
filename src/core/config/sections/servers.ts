import { endpoint, integer, keyList, password, pem, text, url, word, type Keys, type UrlForm } from '../key.js';

// The servers that every program needs.

/** `user:password@` with what is odd in it percent-encoded, and hosts with or without a port, between commas. */
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

/** @param prefix begins the names. @param servers whose certificates they are about. @param address the variable that names their hosts */
const tlsKeys = (prefix: string, servers: string, address: string) =>
  ({
    tlsCa: pem({
      env: `${prefix}_CA`,
      doc: `Certificates of the authorities that sign those of ${servers}. Not set: those that Node trusts, and the ones of NODE_EXTRA_CA_CERTS.`,
      holds: 'certificates',
    }),
    tlsCert: pem({
      env: `${prefix}_CERT`,
      doc: `Our own certificate, and those between it and its authority, for servers that ask for one.`,
      holds: 'chain',
    }),
    tlsKey: pem({ env: `${prefix}_KEY`, doc: `The private key of ${prefix}_CERT.`, holds: 'key', secret: true }),
    tlsServerName: text({
      env: `${prefix}_SERVER_NAME`,
      doc: `The name that the certificates of ${servers} must have, where it is not the host in ${address}.`,
      optional: true,
      minLength: 1,
      range: 'host name or IP address',
    }),
  }) as const satisfies Keys;

export const redis = {
  url: url({
    env: 'REDIS_URL',
    doc: 'The Redis that holds the stock: one server, the master that sentinels name, or a cluster (some of its servers are enough). With rediss everything goes by TLS, sentinels too. User and password are those of the servers.',
    protocols: ['redis:', 'rediss:'],
    forms: [SENTINEL_URL, CLUSTER_URL],
    secret: true,
  }),
  password: password({
    env: 'REDIS_PASSWORD',
    doc: 'Password of the servers, where it does not stand in REDIS_URL.',
  }),
  sentinelUser: text({
    env: 'REDIS_SENTINEL_USER',
    doc: 'As whom sentinels are asked, where they have users.',
    optional: true,
    minLength: 1,
    range: 'text',
  }),
  sentinelPassword: password({
    env: 'REDIS_SENTINEL_PASSWORD',
    doc: 'Password of the sentinels. Not set: they are asked without.',
  }),
  ...tlsKeys('REDIS_TLS', 'Redis and its sentinels', 'REDIS_URL'),
  replyTimeoutMs: integer({
    env: 'REDIS_REPLY_TIMEOUT_MS',
    doc: 'How long a reply may take; after it the outcome of the command is unknown.',
    unit: 'ms',
    fallback: 1500,
    min: 50,
    max: 30000,
  }),
  connectTimeoutMs: integer({
    env: 'REDIS_CONNECT_TIMEOUT_MS',
    doc: 'How long a connect may take.',
    unit: 'ms',
    fallback: 3000,
    min: 50,
    max: 30000,
  }),
  markerLifeMs: integer({
    env: 'MARKER_LIFE_MS',
    doc: 'How long Redis remembers the end of a batch: that it was recorded, or took nothing. Longer than the broker keeps a half message (72 h).',
    unit: 'ms',
    fallback: 345600000,
    min: 1000,
    max: 2592000000,
  }),
  waitReplicas: integer({
    env: 'REDIS_WAIT_REPLICAS',
    doc: 'Replicas that must have stored a purchase before its buyer gets 202; 0: none. See docs/durability.md.',
    unit: 'replicas',
    fallback: 0,
    min: 0,
    max: 8,
  }),
  waitReplicasMs: integer({
    env: 'REDIS_WAIT_REPLICAS_MS',
    doc: 'How long the replicas may take; after it the buyer gets outcome_unknown, and the order comes all the same.',
    unit: 'ms',
    fallback: 500,
    min: 10,
    max: 10000,
  }),
} as const satisfies Keys;

export const rocketmq = {
  endpoint: endpoint({ env: 'ROCKETMQ_ENDPOINT', doc: 'gRPC endpoint of the RocketMQ proxy.' }),
  route: word({
    env: 'ROCKETMQ_ROUTE',
    doc: 'Where calls go: to the address that the broker gives, or all to ROCKETMQ_ENDPOINT, for one broker behind a port mapping.',
    words: ['handed_out', 'endpoint'],
    fallback: 'handed_out',
  }),
  requestTimeoutMs: integer({
    env: 'ROCKETMQ_REQUEST_TIMEOUT_MS',
    doc: 'How long half message, commit and rollback may take.',
    unit: 'ms',
    fallback: 3000,
    min: 1000,
    max: 10000,
  }),
  receiveWaitMs: integer({
    env: 'ROCKETMQ_RECEIVE_WAIT_MS',
    doc: 'How long a receive waits for a message; a program that stops waits as long. A proxy with default settings waits at least 5000.',
    unit: 'ms',
    fallback: 5000,
    min: 1000,
    max: 20000,
  }),
  startTimeoutMs: integer({
    env: 'ROCKETMQ_START_TIMEOUT_MS',
    doc: 'How long one try to start a client may take; a hung start is tried again.',
    unit: 'ms',
    fallback: 20000,
    min: 1000,
    max: 120000,
  }),
  checksInParallel: integer({
    env: 'ROCKETMQ_CHECKS_IN_PARALLEL',
    doc: 'Check-backs answered at once; the client starts all of them together.',
    unit: 'checks',
    fallback: 32,
    min: 1,
    max: 1000,
  }),
} as const satisfies Keys;

export const brokerAccess = {
  key: text({
    env: 'ROCKETMQ_ACCESS_KEY',
    doc: 'Name of the user as whom the programs connect to RocketMQ. Without it they give none, which a broker with access control refuses.',
    optional: true,
    minLength: 1,
    range: 'text',
  }),
  secret: password({
    env: 'ROCKETMQ_ACCESS_SECRET',
    doc: 'Secret of ROCKETMQ_ACCESS_KEY: it signs requests and is never sent.',
  }),
  sessionToken: password({
    env: 'ROCKETMQ_SESSION_TOKEN',
    doc: 'Sent with each request where key and secret are lent for some time, as some clouds do.',
  }),
  tls: word({
    env: 'ROCKETMQ_TLS',
    doc: 'What goes to RocketMQ by TLS: nothing; what goes to ROCKETMQ_ENDPOINT and where that leads (`grpc`); or the admin protocol of name servers and brokers as well (`on`).',
    words: ['off', 'grpc', 'on'],
    fallback: 'off',
  }),
  ...tlsKeys('ROCKETMQ_TLS', 'RocketMQ', 'the address of each server'),
} as const satisfies Keys;

export const messages = {
  keys: keyList({
    env: 'MESSAGE_KEYS',
    doc: 'Keys that sign what goes through the broker: the first one signs, all are accepted. The same for every program.',
  }),
  unsigned: word({
    env: 'MESSAGE_UNSIGNED',
    doc: 'What becomes of a message without a signature. `accept` is for the time of an update from a version that did not sign.',
    words: ['refuse', 'accept'],
    fallback: 'refuse',
  }),
} as const satisfies Keys;

export const mysql = {
  url: url({
    env: 'MYSQL_URL',
    doc: 'The MySQL or MariaDB that holds the orders.',
    protocols: ['mysql:'],
    secret: true,
  }),
  password: password({ env: 'MYSQL_PASSWORD', doc: 'Password of the user, where it does not stand in MYSQL_URL.' }),
  tls: word({
    env: 'MYSQL_TLS',
    doc: 'Whether connections are encrypted. A server that offers no TLS is then refused.',
    words: ['off', 'on'],
    fallback: 'off',
  }),
  ...tlsKeys('MYSQL_TLS', 'MySQL', 'MYSQL_URL'),
  poolMax: integer({
    env: 'MYSQL_POOL_MAX',
    doc: 'Connections of one process.',
    unit: 'connections',
    fallback: 8,
    min: 1,
    max: 200,
  }),
  queryTimeoutMs: integer({
    env: 'MYSQL_QUERY_TIMEOUT_MS',
    doc: 'How long one statement may take.',
    unit: 'ms',
    fallback: 10000,
    min: 100,
    max: 120000,
  }),
} as const satisfies Keys;
