import type { Key } from './key.js';
import { http, shop, operators, accessLog, traceIds, auth, admission, hotSales, sale, batch } from './sections/api.js';
import { keeper, reconcile } from './sections/keeper.js';
import { worker, order, payment, notifications } from './sections/orders.js';
import { workerMetrics, keeperMetrics, metrics, tracing, environment, log } from './sections/process.js';
import { repair } from './sections/repair.js';
import { brokerAccess, messages, mysql, redis, rocketmq } from './sections/servers.js';

/** Sections are in the order in which a purchase passes them. A program reads only the sections that it uses. */
export const SCHEMA = {
  http,
  shop,
  operators,
  accessLog,
  traceIds,
  auth,
  admission,
  hotSales,
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
  repair,
  reconcile,
  workerMetrics,
  keeperMetrics,
  metrics,
  tracing,
  environment,
  log,
} as const;

type Schema = typeof SCHEMA;
export type SectionName = keyof Schema;
type ValueOf<K> = K extends Key<infer T> ? T : never;
export type Section<S extends SectionName> = { readonly [K in keyof Schema[S]]: ValueOf<Schema[S][K]> };
export type Config<S extends SectionName = SectionName> = { readonly [N in S]: Section<N> };

/** Returns the keys of some sections, including fixed values. */
export const keysOf = (sections: readonly SectionName[]): Key<unknown>[] =>
  sections.flatMap((name) => Object.values(SCHEMA[name]) as Key<unknown>[]);

export const allKeys = (): Key<unknown>[] => keysOf(Object.keys(SCHEMA) as SectionName[]);

/** Returns the keys of some sections that an operator can set. */
export const settingsOf = (sections: readonly SectionName[]): Key<unknown>[] =>
  keysOf(sections).filter(({ isFixed }) => !isFixed);

export const PROGRAM_SECTIONS = {
  // The api reads the sections of the keeper: a trace says what the keeper will do.
  api: [
    'http',
    'shop',
    'operators',
    'accessLog',
    'traceIds',
    'auth',
    'admission',
    'hotSales',
    'sale',
    'batch',
    'redis',
    'rocketmq',
    'brokerAccess',
    'messages',
    'mysql',
    'order',
    'payment',
    'notifications',
    'keeper',
    'repair',
    'reconcile',
    'metrics',
    'tracing',
    'environment',
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
    'environment',
    'log',
  ],
  keeper: [
    'hotSales',
    'redis',
    'rocketmq',
    'brokerAccess',
    'messages',
    'keeper',
    'repair',
    'reconcile',
    'mysql',
    'payment',
    'keeperMetrics',
    'metrics',
    'tracing',
    'environment',
    'log',
  ],
} as const satisfies Record<string, readonly SectionName[]>;
