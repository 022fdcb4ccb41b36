import { endpoint, integer, keyList, text, url, word, type Keys, type UrlForm } from '../key.js';

// The servers that every program needs.

/** `user:password@` with what is odd in it percent-encoded, and hosts with or without a port, between commas. */
const WORD = /([A-Za-z0-9._~!$&*+=-]|%[0-9A-Fa-f]{2})*/.source;
const LOGIN = `(${WORD}(:${WORD})?@)?`;
const HOST = /([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/.source;
const HOSTS = `${HOST}(,${HOST})*`;

const SENTINEL_URL: UrlForm = {
  words: 'redis+sentinel://[user:password@]host:port,host:port/master-name[/db]',
  pattern: new RegExp(`^redis\\+sentinel://${LOGIN}${HOSTS}/[A-Za-z0-9._-]+(/[0-9]{1,2})?$`),
};
const CLUSTER_URL: UrlForm = {
  words: 'redis+cluster://[user:password@]host:port,host:port',
  pattern: new RegExp(`^redis\\+cluster://${LOGIN}${HOSTS}/?$`),
};

export const redis = {
  url: url({
    env: 'REDIS_URL',
    doc: 'The Redis that holds the stock: one server, the master that sentinels name, or a cluster (some of its servers are enough). User and password are those of the servers; sentinels are asked without.',
    protocols: ['redis:', 'rediss:'],
    forms: [SENTINEL_URL, CLUSTER_URL],
    secret: true,
  }),
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
  secret: text({
    env: 'ROCKETMQ_ACCESS_SECRET',
    doc: 'Secret of ROCKETMQ_ACCESS_KEY: it signs requests and is never sent.',
    optional: true,
    secret: true,
    minLength: 1,
    range: 'text',
  }),
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
