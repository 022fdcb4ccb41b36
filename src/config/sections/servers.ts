import { endpoint, integer, url, type Keys } from '../key.js';

// The servers that every program needs.

export const redis = {
  url: url({
    env: 'REDIS_URL',
    doc: 'The Redis that holds the stock.',
    protocols: ['redis:', 'rediss:'],
    secret: true,
  }),
  replyTimeoutMs: integer({
    env: 'REDIS_REPLY_TIMEOUT_MS',
    doc: 'After it the outcome of a command is unknown.',
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
} as const satisfies Keys;

export const rocketmq = {
  endpoint: endpoint({ env: 'ROCKETMQ_ENDPOINT', doc: 'gRPC endpoint of the RocketMQ proxy.' }),
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
    doc: 'How long a receive waits for a message; a program that stops waits for it. A proxy as it comes waits 5000 at least.',
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
