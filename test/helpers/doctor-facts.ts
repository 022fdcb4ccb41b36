import type { MysqlFacts } from '../../src/core/doctor/mysql-checks.js';
import type { Reach } from '../../src/core/doctor/reach.js';
import type { RedisFacts, RedisServerFacts } from '../../src/core/doctor/redis-checks.js';
import type { AllFacts } from '../../src/operate/doctor/report.js';
import type { BrokerFacts, BrokerSettings, RocketmqFacts } from '../../src/operate/doctor/rocketmq-checks.js';
import type { SettingsFacts } from '../../src/operate/doctor/settings.js';
import { GROUPS, TOPICS } from '../../src/core/topics.js';

// Healthy servers without risks, on a private network. Tests change them.

export const PRIVATE: Reach = { at: 'private', open: null };
export const HERE: Reach = { at: 'this_machine', open: null };
export const WIDE: Reach = { at: 'this_machine', open: 'every_address' };
export const PUBLIC: Reach = { at: 'public', open: 'public_address' };

export const settings = (change: Partial<SettingsFacts> = {}): SettingsFacts => ({
  problems: [],
  secrets: [
    { name: 'JWT_SECRET', text: 'kX3mQ9pL7vT1zR5wN8bY2cF6gH4jD0sA' },
    { name: 'MYSQL_URL', text: 'u7Hq2LmZ9xW4tRb1' },
  ],
  unsigned: 'refuse',
  listeners: [
    { name: 'OPERATORS_HOST', host: '127.0.0.1', guarded: true },
    { name: 'METRICS_HOST', host: '10.0.0.7', guarded: false },
  ],
  node: '20.19.0',
  ...change,
});

export const redisServer = (change: Partial<RedisServerFacts> = {}): RedisServerFacts => ({
  server: '10.0.0.1:6379',
  product: 'redis',
  version: '6.2.14',
  user: 'seckill',
  strangers: 'refused',
  encrypted: true,
  evictionPolicy: 'noeviction',
  appendOnly: true,
  skewMs: 3,
  isMaster: true,
  replicas: 1,
  replicasNeeded: 0,
  fsync: 'everysec',
  lastAppendFailed: false,
  lastRewriteFailed: false,
  usedBytes: 100,
  hasLimit: true,
  maxBytes: 1000,
  cluster: null,
  reach: PRIVATE,
  disk: 0.6,
  ...change,
});

export const redis = (change: Partial<RedisServerFacts> = {}, more: Partial<RedisFacts> = {}): RedisFacts => ({
  servers: [redisServer(change)],
  waitReplicas: 0,
  ...more,
});

export const mysql = (change: Partial<MysqlFacts> = {}): MysqlFacts => ({
  versionComment: 'mariadb.org binary distribution',
  version: '11.4.5-MariaDB-log',
  cipher: 'TLS_AES_256_GCM_SHA384',
  user: 'seckill@%',
  globalRights: [],
  skewMs: -4,
  readOnly: false,
  flushAtCommit: 1,
  syncBinlog: 1,
  maxConnections: 200,
  maxUserConnections: 0,
  missingMigrations: [],
  unknownMigrations: [],
  isolation: 'READ-COMMITTED',
  sqlMode: ['STRICT_ALL_TABLES', 'NO_ENGINE_SUBSTITUTION'],
  timeZone: '+00:00',
  maxAllowedPacket: 16_777_216,
  nextEvent: '8',
  published: 7n,
  logBin: true,
  replication: { replicas: 1, semiSync: { waitPoint: 'AFTER_SYNC', waitsNow: true, replicas: 1 } },
  binlogFormat: 'ROW',
  witness: 'off',
  binlog: { binlog_format: 'ROW', binlog_row_image: 'FULL', binlog_row_metadata: 'FULL' },
  looseCollations: [],
  otherEngines: [],
  skipsLocked: true,
  poolMax: 8,
  programs: 4,
  reach: PRIVATE,
  disk: 0.5,
  ...change,
});

export const brokerSettings = (change: Partial<BrokerSettings> = {}): BrokerSettings => ({
  transactionCheckMax: 720,
  transactionCheckInterval: 5000,
  transactionTimeOut: 10_000,
  transactionOpBatchInterval: 3000,
  fileReservedTime: 72,
  autoCreateTopicEnable: false,
  autoCreateSubscriptionGroup: false,
  timerWheelEnable: true,
  ...change,
});

const TOPIC = { type: 'TRANSACTION', readQueues: 8, writeQueues: 8, perm: 6 };

/** Returns one of our topics as a broker reports it. */
export const topic = (change: Partial<typeof TOPIC> | null = {}): Pick<BrokerFacts, 'topics'> => ({
  topics: [
    { topic: TOPICS.purchase, wantedType: 'TRANSACTION', found: change === null ? null : { ...TOPIC, ...change } },
  ],
});

export const group = (
  found: { retries: number; consumes: boolean } | null,
  named: { group: string; wantedRetries: number } = { group: GROUPS.writer, wantedRetries: 5 },
): Pick<BrokerFacts, 'groups'> => ({ groups: [{ ...named, found }] });

export const broker = (change: Partial<BrokerFacts> = {}): BrokerFacts => ({
  server: 'broker-a',
  version: '5.4.0',
  diskUsed: 0.3,
  skewMs: 120,
  settings: brokerSettings(),
  ...topic(),
  ...group({ retries: 5, consumes: true }),
  strangers: 'refused',
  ...change,
});

export const rocketmq = (change: Partial<RocketmqFacts> = {}): RocketmqFacts => ({
  endpoint: { place: '10.0.0.3:8081', refusal: null, reach: PRIVATE },
  strangers: 'refused',
  encrypted: true,
  nameServer: { problem: null },
  brokers: [broker()],
  silent: [],
  ports: [{ what: 'The proxy at 10.0.0.3:8081', reach: PRIVATE, guarded: true }],
  markerLifeMs: 345_600_000,
  ...change,
});

export const allFacts = (change: Partial<AllFacts> = {}): AllFacts => ({
  settings: settings(),
  redis: redis(),
  mysql: mysql(),
  rocketmq: rocketmq(),
  ...change,
});
