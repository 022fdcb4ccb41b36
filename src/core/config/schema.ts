import type { Key } from './key.js';
import { http, shop, operators, accessLog, traceIds, auth, admission, gate, sale, batch } from './sections/api.js';
import { keeper, overdue, reconcile } from './sections/keeper.js';
import { worker, order, payment, notifications } from './sections/orders.js';
import { workerMetrics, keeperMetrics, metrics, tracing, failPoint, log } from './sections/process.js';
import { repair } from './sections/repair.js';
import { brokerAccess, messages, mysql, redis, rocketmq } from './sections/servers.js';

/**
 * Every key of the configuration, in the order of the path of a purchase. A number says its unit and where it comes
 * from; a program reads only the sections that it uses.
 */
export const SCHEMA = {
  http,
  shop,
  operators,
  accessLog,
  traceIds,
  auth,
  admission,
  gate,
  sale,
  batch,
  redis,
  rocketmq,
  brokerAccess,
  messages,
  worker,
  mysql,
  order,
  payment,
  notifications,
  keeper,
  overdue,
  repair,
  reconcile,
  workerMetrics,
  keeperMetrics,
  metrics,
  tracing,
  failPoint,
  log,
} as const;

type Schema = typeof SCHEMA;
export type SectionName = keyof Schema;
type ValueOf<K> = K extends Key<infer T> ? T : never;
export type Section<S extends SectionName> = { readonly [K in keyof Schema[S]]: ValueOf<Schema[S][K]> };
export type Config<S extends SectionName = SectionName> = { readonly [N in S]: Section<N> };

/** Sections that each program reads. */
export const PROGRAM_SECTIONS = {
  // The api reads what the keeper does, so that a trace can say what comes next.
  api: [
    'http',
    'shop',
    'operators',
    'accessLog',
    'traceIds',
    'auth',
    'admission',
    'gate',
    'sale',
    'batch',
    'redis',
    'rocketmq',
    'brokerAccess',
    'messages',
    'mysql',
    'payment',
    'notifications',
    'keeper',
    'repair',
    'reconcile',
    'metrics',
    'tracing',
    'failPoint',
    'log',
  ],
  worker: [
    'redis',
    'rocketmq',
    'brokerAccess',
    'messages',
    'worker',
    'mysql',
    'order',
    'workerMetrics',
    'metrics',
    'tracing',
    'failPoint',
    'log',
  ],
  keeper: [
    'gate',
    'redis',
    'rocketmq',
    'brokerAccess',
    'messages',
    'keeper',
    'overdue',
    'repair',
    'reconcile',
    'mysql',
    'payment',
    'keeperMetrics',
    'metrics',
    'tracing',
    'failPoint',
    'log',
  ],
} as const satisfies Record<string, readonly SectionName[]>;
