import { expect } from 'chai';
import type { Finding } from '../../../../src/core/doctor/check.js';
import { engineOf, type MysqlFacts } from '../../../../src/core/doctor/mysql-checks.js';
import { CHECK_IDS, GROUPS_OF_CHECKS, reportOn, type AllFacts } from '../../../../src/operate/doctor/report.js';
import { GROUPS } from '../../../../src/core/topics.js';
import {
  allFacts,
  broker,
  brokerSettings,
  group,
  HERE,
  mysql,
  PRIVATE,
  PUBLIC,
  redis,
  redisServer,
  rocketmq,
  settings,
  topic,
  WIDE,
} from '../../../helpers/doctor-facts.js';

/** A check with the world that causes its verdict, and the expected text. */
type Row = readonly [id: string, verdict: 'wrong' | 'risky', facts: Partial<AllFacts>, says: RegExp];

const away = { down: 'It is away.', todo: 'Start it.' };
const secret = (text: string) => ({ settings: settings({ secrets: [{ name: 'MYSQL_URL', text }] }) });
const inSettings = (...of: Parameters<typeof settings>) => ({ settings: settings(...of) });
const ofRedis = (...of: Parameters<typeof redis>) => ({ redis: redis(...of) });
const ofMysql = (...of: Parameters<typeof mysql>) => ({ mysql: mysql(...of) });
const replicated = (replication: MysqlFacts['replication']) => ofMysql({ replication });
const semiSync = (change: object) =>
  replicated({ replicas: 1, semiSync: { waitPoint: 'AFTER_SYNC', waitsNow: true, replicas: 1, ...change } });
const ofRocketmq = (...of: Parameters<typeof rocketmq>) => ({ rocketmq: rocketmq(...of) });
const ofBroker = (change: Parameters<typeof broker>[0]) => ({ rocketmq: rocketmq({ brokers: [broker(change)] }) });
const ofSettings = (change: Parameters<typeof brokerSettings>[0]) => ofBroker({ settings: brokerSettings(change) });
const ports = (...all: readonly (readonly [typeof WIDE, guarded: boolean])[]) => ({
  rocketmq: rocketmq({ ports: all.map(([reach, guarded], nth) => ({ what: `Port ${nth}`, reach, guarded })) }),
});

const ROWS: readonly Row[] = [
  [
    'settings.read',
    'wrong',
    inSettings({ problems: ['PORT must be a number', 'B is bad'] }),
    /PORT must be a number; B is bad\./,
  ],
  ['settings.node', 'wrong', inSettings({ node: '18.20.4' }), /Node 18\.20\.4 is not supported/],
  ['settings.node', 'risky', inSettings({ node: '99.0.0' }), /Node 99\.0\.0 is not tested/],
  ['settings.secrets', 'wrong', secret(''), /the one in MYSQL_URL is empty/],
  ['settings.secrets', 'wrong', secret('Password1!'), /is well known/],
  ['settings.secrets', 'wrong', secret('12345678'), /is well known/],
  ['settings.secrets', 'wrong', secret('x7Kq2'), /only 5 characters/],
  ['settings.secrets', 'risky', secret('x7Kq2mZp9'), /only 9 characters/],
  ['settings.secrets', 'risky', secret('abcabcabcabcabcabcabc'), /only 3 different characters/],
  [
    'settings.same-secret',
    'risky',
    inSettings({ secrets: ['A', 'B'].map((name) => ({ name, text: 'u7Hq2LmZ9xW4tRb1' })) }),
    /A and B/,
  ],
  ['settings.unsigned-messages', 'risky', inSettings({ unsigned: 'accept' }), /accept unsigned messages/],
  ...['0.0.0.0', '::', '8.8.8.8', '2001:4860:4860::8888'].map((host): Row => [
    'settings.listeners',
    'risky',
    inSettings({ listeners: [{ name: 'OPERATORS_HOST', host, guarded: true }] }),
    new RegExp(`OPERATORS_HOST is ${host}`),
  ]),

  ['redis.answers', 'wrong', { redis: away }, /It is away/],
  ['redis.version', 'wrong', ofRedis({ version: '6.0.16' }), /Redis 6\.0\.16 is not supported/],
  ['redis.version', 'wrong', ofRedis({ version: '' }), /unknown version/],
  ['redis.version', 'risky', ofRedis({ version: '66.2.1' }), /not tested/],
  ['redis.version', 'risky', ofRedis({ product: 'valkey', version: '9.0.1' }), /Valkey 9\.0\.1 is not tested/],
  ['redis.tls', 'wrong', ofRedis({ encrypted: false, reach: PUBLIC }), /goes to a public address/],
  ['redis.tls', 'risky', ofRedis({ encrypted: false }), /not encrypted/],
  ['redis.access', 'wrong', ofRedis({ strangers: 'served' }), /without a login/],
  ['redis.access', 'risky', ofRedis({ strangers: 'served', reach: HERE }), /every user of this machine/],
  ['redis.open', 'wrong', ofRedis({ strangers: 'served', reach: WIDE }), /every address .* requires no login/],
  ['redis.open', 'wrong', ofRedis({ strangers: 'served', reach: PUBLIC }), /public address/],
  ['redis.open', 'risky', ofRedis({ reach: WIDE }), /every address/],
  ['redis.eviction', 'wrong', ofRedis({ evictionPolicy: 'allkeys-lru' }), /allkeys-lru, so Redis may evict stock/],
  ['redis.append-only', 'wrong', ofRedis({ appendOnly: false }), /appendonly is no/],
  ['redis.clock', 'wrong', ofRedis({ skewMs: 2001 }), /differ by 2001 ms/],
  ['redis.clock', 'wrong', ofRedis({ skewMs: -90_000 }), /differ by 90000 ms/],
  ['redis.fsync', 'risky', ofRedis({ fsync: 'no' }), /appendfsync is no/],
  ['redis.writes-log', 'wrong', ofRedis({ lastAppendFailed: true }), /refuses all writes/],
  ['redis.writes-log', 'risky', ofRedis({ lastRewriteFailed: true }), /could not rewrite/],
  ['redis.role', 'wrong', ofRedis({ isMaster: false }), /replica/],
  ['redis.memory', 'wrong', ofRedis({ usedBytes: 950 }), /95 %/],
  ['redis.memory', 'risky', ofRedis({ usedBytes: 800 }), /80 %/],
  ['redis.memory', 'risky', ofRedis({ hasLimit: false }), /maxmemory is not set/],
  ['redis.memory', 'wrong', ofRedis({ hasLimit: false, usedBytes: 950 }), /95 %/],
  ['redis.disk', 'wrong', ofRedis({ disk: 0.04 }), /96 % full/],
  ['redis.disk', 'risky', ofRedis({ disk: 0.1 }), /90 % full/],
  ['redis.cluster', 'wrong', ofRedis({ cluster: { isUp: false, needsAllSlots: false } }), /cluster is down/],
  ['redis.cluster', 'risky', ofRedis({ cluster: { isUp: true, needsAllSlots: true } }), /one master is down/],
  ['redis.replicas', 'wrong', ofRedis({}, { waitReplicas: 2 }), /REDIS_WAIT_REPLICAS is 2 and 1 is connected/],
  ['redis.replicas', 'wrong', ofRedis({ replicasNeeded: 2 }), /min-replicas-to-write is 2/],
  ['redis.replicas', 'risky', ofRedis({ replicas: 0 }), /There is no replica/],

  ['mysql.answers', 'wrong', { mysql: away }, /It is away/],
  ['mysql.version', 'wrong', ofMysql({ version: '10.5.20-MariaDB' }), /MariaDB 10\.5\.20 is not supported/],
  [
    'mysql.version',
    'wrong',
    ofMysql({ versionComment: 'MySQL Community Server - GPL', version: '5.7.44-log' }),
    /MySQL 5\.7\.44/,
  ],
  ['mysql.version', 'risky', ofMysql({ version: '98.1.2-MariaDB' }), /not tested/],
  ...(
    [
      ['8.0.11-TiDB-v8.5.0', 'TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible'],
      ['5.7.25-OceanBase-v4.2.1.0', 'OceanBase_CE 4.2.1.0'],
      ['8.0.30-Vitess', 'Version: 20.0.1'],
      ['8.0.mysql_aurora.3.04.0', 'Source distribution'],
      ['8.0.36-28', 'Percona Server (GPL), Release 28, Revision 47601f19'],
      ['8.0.33', 'Dolt'],
      ['8.0.31-google', '(Google)'],
      ['8.0.36', ''],
    ] as const
  ).map(([version, versionComment]): Row => [
    'mysql.version',
    'risky',
    ofMysql({ version, versionComment }),
    /neither MySQL nor MariaDB, and is not tested/,
  ]),
  ['mysql.tls', 'wrong', ofMysql({ cipher: null, reach: PUBLIC }), /goes to a public address/],
  ['mysql.tls', 'risky', ofMysql({ cipher: null }), /not encrypted/],
  ['mysql.rights', 'risky', ofMysql({ globalRights: ['ALL PRIVILEGES'] }), /ALL PRIVILEGES on every database/],
  ['mysql.open', 'risky', ofMysql({ reach: WIDE }), /every address/],
  ['mysql.schema', 'wrong', ofMysql({ missingMigrations: ['0001-a', '0002-b'] }), /0001-a, 0002-b/],
  ['mysql.schema', 'risky', ofMysql({ unknownMigrations: ['0099-z'] }), /0099-z/],
  ['mysql.isolation', 'wrong', ofMysql({ isolation: 'REPEATABLE-READ' }), /REPEATABLE-READ/],
  ['mysql.sql-mode', 'wrong', ofMysql({ sqlMode: ['NO_ENGINE_SUBSTITUTION'] }), /not strict/],
  ['mysql.sql-mode', 'wrong', ofMysql({ sqlMode: ['STRICT_ALL_TABLES', 'NO_BACKSLASH_ESCAPES'] }), /NO_BACKSLASH/],
  ['mysql.time-zone', 'wrong', ofMysql({ timeZone: 'SYSTEM' }), /time zone SYSTEM/],
  ['mysql.packet', 'wrong', ofMysql({ maxAllowedPacket: 16_777_215 }), /16777215 bytes/],
  ['mysql.binlog-format', 'wrong', ofMysql({ binlogFormat: 'STATEMENT' }), /refuses writes/],
  ['mysql.collations', 'wrong', ofMysql({ looseCollations: ['orders.user_id utf8mb4_general_ci'] }), /orders\.user_id/],
  ['mysql.engines', 'wrong', ofMysql({ otherEngines: ['orders MyISAM'] }), /orders MyISAM/],
  ['mysql.locks', 'wrong', ofMysql({ skipsLocked: false }), /SKIP LOCKED/],
  ['mysql.writable', 'wrong', ofMysql({ readOnly: true }), /read-only/],
  ['mysql.flush', 'wrong', ofMysql({ flushAtCommit: 0 }), /crash of MySQL/],
  ['mysql.flush', 'risky', ofMysql({ flushAtCommit: 2 }), /crash of the host/],
  ['mysql.binlog', 'risky', ofMysql({ logBin: false }), /no binary log/],
  ['mysql.binlog', 'risky', ofMysql({ syncBinlog: 0 }), /sync_binlog is 0/],
  ['mysql.witness', 'wrong', ofMysql({ witness: 'watch', logBin: false }), /no binary log/],
  [
    'mysql.witness',
    'wrong',
    ofMysql({ witness: 'watch', binlog: { binlog_format: 'MIXED', binlog_row_metadata: 'MINIMAL' } }),
    /binlog_format is MIXED, binlog_row_metadata is MINIMAL\./,
  ],
  [
    'mysql.witness',
    'wrong',
    ofMysql({ witness: 'watch', globalRights: ['REPLICATION SLAVE'] }),
    /seckill@% may not read the binary log/,
  ],
  [
    'mysql.last-writes',
    'wrong',
    ofMysql({ nextEvent: '7' }),
    /next event would be number 7, but event 7 was published/,
  ],
  ['mysql.replica', 'risky', replicated({ replicas: 2, semiSync: null }), /asynchronous \(replicas: 2\)/],
  ['mysql.replica', 'risky', semiSync({ waitsNow: false }), /No replica answers in time/],
  ['mysql.replica', 'risky', semiSync({ replicas: 0 }), /No replica answers in time/],
  [
    'mysql.replica',
    'risky',
    semiSync({ waitPoint: 'AFTER_COMMIT' }),
    /wait at AFTER_COMMIT, so an event may be published/,
  ],
  [
    'mysql.connections',
    'wrong',
    ofMysql({ programs: 24 }),
    /24 programs .* up to 192 connections: max_connections is 200/,
  ],
  ['mysql.connections', 'wrong', ofMysql({ programs: null, maxConnections: 30 }), /3 programs/],
  ['mysql.connections', 'wrong', ofMysql({ maxUserConnections: 20 }), /max_user_connections is 20/],
  ['mysql.connections', 'risky', ofMysql({ programs: 12 }), /rolling update/],
  ['mysql.disk', 'wrong', ofMysql({ disk: 0.01 }), /99 % full/],
  ['mysql.disk', 'risky', ofMysql({ disk: 0.14 }), /86 % full/],
  ['mysql.clock', 'wrong', ofMysql({ skewMs: 5000 }), /differ by 5000 ms/],

  [
    'rocketmq.answers',
    'wrong',
    ofRocketmq({ endpoint: { place: 'a:1', refusal: 'Topic x is not there', reach: PRIVATE } }),
    /Topic x is not there\./,
  ],
  ['rocketmq.name-server', 'wrong', ofRocketmq({ nameServer: { problem: 'It knows no broker' } }), /no broker\./],
  ['rocketmq.name-server', 'risky', ofRocketmq({ nameServer: 'unset', brokers: [] }), /not set/],
  ['rocketmq.brokers', 'wrong', ofRocketmq({ silent: [{ server: 'broker-b', why: 'hangs' }] }), /broker-b .*hangs/],
  ['rocketmq.version', 'wrong', ofBroker({ version: '4.9.8' }), /RocketMQ 4\.9\.8 is not supported/],
  ['rocketmq.version', 'risky', ofBroker({ version: '5.5.0' }), /uses a whole core/],
  ['rocketmq.version', 'risky', ofBroker({ version: '5.3.2' }), /not tested/],
  [
    'rocketmq.tls',
    'wrong',
    ofRocketmq({ encrypted: false, endpoint: { place: 'a:1', refusal: null, reach: PUBLIC } }),
    /public address/,
  ],
  ['rocketmq.tls', 'risky', ofRocketmq({ encrypted: false }), /not encrypted/],
  ['rocketmq.access', 'wrong', ofRocketmq({ strangers: 'served' }), /at the proxy at 10\.0\.0\.3:8081\./],
  ['rocketmq.access', 'wrong', ofBroker({ strangers: 'served' }), /at broker-a\./],
  [
    'rocketmq.access',
    'risky',
    ofRocketmq({ strangers: 'served', endpoint: { place: 'a:1', refusal: null, reach: HERE } }),
    /may read and delete messages/,
  ],
  [
    'rocketmq.open',
    'wrong',
    ports([WIDE, false], [WIDE, true]),
    /^Port 0 listens on every address of this machine and requires no login\.$/,
  ],
  [
    'rocketmq.open',
    'risky',
    ports([HERE, false], [WIDE, true], [PUBLIC, true]),
    /^Port 1 .* Port 2 is reached at a public address\.$/,
  ],
  ['rocketmq.topics', 'wrong', ofBroker(topic(null)), /seckill-purchase is missing/],
  ['rocketmq.topics', 'wrong', ofBroker(topic({ type: 'NORMAL' })), /has the type NORMAL, not TRANSACTION/],
  ['rocketmq.topics', 'wrong', ofBroker(topic({ perm: 4 })), /read and written/],
  ['rocketmq.topics', 'wrong', ofBroker(topic({ readQueues: 4 })), /queues without readers/],
  ['rocketmq.groups', 'wrong', ofBroker(group(null)), /is missing/],
  ['rocketmq.groups', 'wrong', ofBroker(group({ retries: 5, consumes: false })), /switched off/],
  ['rocketmq.groups', 'wrong', ofBroker(group({ retries: 16, consumes: true })), /16 retries, not 5/],
  [
    'rocketmq.groups',
    'risky',
    ofBroker(group({ retries: 5, consumes: true }, { group: GROUPS.coupon, wantedRetries: 16 })),
    /seckill-coupon has 5 retries, not 16/,
  ],
  ['rocketmq.check-backs', 'wrong', ofSettings({ transactionCheckMax: 1 }), /1 times in 5 s/],
  ['rocketmq.check-backs', 'risky', ofSettings({ transactionCheckMax: 719 }), /719 times in 3595 s/],
  ['rocketmq.first-check', 'risky', ofSettings({ transactionTimeOut: 1000 }), /after 1000 ms/],
  ['rocketmq.first-check', 'risky', ofSettings({ transactionCheckInterval: 3000 }), /delivers them twice/],
  ['rocketmq.kept', 'wrong', ofSettings({ fileReservedTime: 97 }), /97 hours, .* 96 hours\./],
  ['rocketmq.kept', 'risky', ofSettings({ fileReservedTime: 12 }), /12 hours/],
  ['rocketmq.auto-create', 'risky', ofSettings({ autoCreateTopicEnable: true }), /^autoCreateTopicEnable on/],
  [
    'rocketmq.auto-create',
    'risky',
    ofSettings({ autoCreateSubscriptionGroup: true }),
    /^autoCreateSubscriptionGroup on/,
  ],
  ['rocketmq.timer', 'wrong', ofSettings({ timerWheelEnable: false }), /deadlines and retries do not arrive/],
  ['rocketmq.disk', 'wrong', ofBroker({ diskUsed: 0.85 }), /85 % full/],
  ['rocketmq.disk', 'risky', ofBroker({ diskUsed: 0.75 }), /75 % full/],
  ['rocketmq.clock', 'wrong', ofBroker({ skewMs: -3000 }), /differ by 3000 ms/],
];

const all = (facts: AllFacts): Finding[] => reportOn(facts).groups.flatMap(({ findings }) => [...findings]);
const find = (facts: Partial<AllFacts>, id: string) => all(allFacts(facts)).find((one) => one.id === id);

describe('doctor: checks', () => {
  it('are all ok and give no advice if the servers are healthy', () => {
    const report = reportOn(allFacts());
    expect(all(allFacts()).filter(({ verdict }) => verdict !== 'ok')).to.deep.equal([]);
    expect(report.verdict).to.equal('ok');
    expect(all(allFacts()).filter(({ todo }) => todo !== null)).to.deep.equal([]);
  });

  for (const [id, verdict, facts, says] of ROWS) {
    it(`${id} is ${verdict}: ${says.source}`, () => {
      const found = find(facts, id);
      expect(found?.verdict, JSON.stringify(found)).to.equal(verdict);
      expect(found?.says).to.match(says).and.match(/\.$/);
      expect(found?.todo).to.match(/\.$/);
      expect(reportOn(allFacts(facts)).verdict).to.be.oneOf([verdict, 'wrong']);
    });
  }

  it('have test rows for exactly the verdicts in their description', () => {
    for (const { id, wrongIf, riskyIf } of GROUPS_OF_CHECKS.flatMap(({ checks }) => [...checks])) {
      const tried = new Set(ROWS.filter(([of]) => of === id).map(([, verdict]) => verdict));
      expect(tried.has('wrong'), `${id} is wrong`).to.equal(wrongIf !== undefined);
      expect(tried.has('risky'), `${id} is risky`).to.equal(riskyIf !== undefined);
    }
    for (const [id] of ROWS) expect(CHECK_IDS).to.include(id);
    expect(new Set(CHECK_IDS).size).to.equal(CHECK_IDS.length);
  });

  it('report if a server hides a value', () => {
    const hidden: readonly [Partial<AllFacts>, string][] = [
      [ofRedis({ fsync: null }), 'redis.fsync'],
      [ofRedis({ strangers: null }), 'redis.access'],
      [ofRedis({ maxBytes: 0 }), 'redis.memory'],
      [replicated({ replicas: null, semiSync: null }), 'mysql.replica'],
      [ofBroker({ settings: null }), 'rocketmq.check-backs'],
      [ofBroker({ skewMs: null }), 'rocketmq.clock'],
    ];
    for (const [facts, id] of hidden) expect(find(facts, id)?.verdict, id).to.equal('unknown');
    expect(reportOn(allFacts(ofRedis({ fsync: null }))).verdict).to.equal('unknown');
  });

  it('do not warn about a single MySQL, and count the replicas that answer', () => {
    const line = (facts: Partial<AllFacts>): string =>
      `${find(facts, 'mysql.replica')?.verdict}: ${find(facts, 'mysql.replica')?.says}`;
    expect(line(replicated({ replicas: 0, semiSync: null }))).to.match(/^ok: one server, no replica/);
    expect(line(semiSync({ replicas: 2 }))).to.match(/^ok: semi-synchronous, replicas that answer: 2/);
  });

  it('are left out if they do not apply', () => {
    expect(find(ofMysql({ logBin: false }), 'mysql.binlog-format')).to.equal(undefined);
    expect(find(ofMysql({ published: null }), 'mysql.last-writes')).to.equal(undefined);
    expect(find(ofMysql({ disk: null }), 'mysql.disk')).to.equal(undefined);
    expect(find({}, 'redis.cluster')).to.equal(undefined);
    const ids = all(allFacts(ofRocketmq({ nameServer: 'unset', brokers: [], ports: [] }))).map(({ id }) => id);
    expect(ids).to.include('rocketmq.answers').and.not.include('rocketmq.topics').and.not.include('rocketmq.open');
  });
});

describe('doctor: several servers', () => {
  it('print one line for an unreachable server and still check the others', () => {
    const ids = all(allFacts({ redis: away })).map(({ id }) => id);
    expect(ids.filter((id) => id.startsWith('redis.'))).to.deep.equal(['redis.answers']);
    expect(ids).to.include('mysql.flush').and.include('rocketmq.topics');
  });

  it('name the misconfigured masters or brokers, and group servers with the same fault', () => {
    const lru = { evictionPolicy: 'allkeys-lru' };
    const servers = ['a:1', 'b:2', 'c:3'].map((server, nth) => redisServer({ server, ...(nth > 0 ? lru : {}) }));
    const found = find({ redis: { servers, waitReplicas: 0 } }, 'redis.eviction');
    expect(found?.verdict).to.equal('wrong');
    expect(found?.says).to.equal('b:2, c:3: maxmemory-policy is allkeys-lru, so Redis may evict stock.');
    expect(found?.todo).to.equal('Set it to noeviction.');
    const brokers = [
      broker(),
      broker({ server: 'broker-b', diskUsed: 0.8 }),
      broker({ server: 'broker-c', diskUsed: 0.9 }),
    ];
    expect(find(ofRocketmq({ brokers }), 'rocketmq.disk')?.says).to.equal(
      'broker-c: The disk of the commit log is 90 % full.',
    );
  });

  it('share one line for all healthy servers', () => {
    const servers = ['a:1', 'b:2'].map((server, nth) => redisServer({ server, skewMs: nth }));
    const lines = { redis: { servers, waitReplicas: 0 } };
    expect(find(lines, 'redis.eviction')?.says).to.equal('noeviction');
    expect(find(lines, 'redis.clock')?.says).to.equal('a:1: 0 ms apart; b:2: 1 ms apart');
  });
});

describe('doctor: accepted risks', () => {
  const facts = allFacts({ redis: redis({ replicas: 0 }), mysql: mysql({ readOnly: true }) });

  it('are ok, but still show the risk', () => {
    const report = reportOn(facts, new Set(['redis.replicas', 'mysql.writable']));
    const lines = report.groups.flatMap(({ findings }) => findings);
    const accepted = lines.find(({ id }) => id === 'redis.replicas');
    expect(accepted).to.include({ verdict: 'ok', todo: null });
    expect(accepted?.says).to.match(/^accepted: There is no replica/);
    expect(lines.find(({ id }) => id === 'mysql.writable')?.verdict, 'wrong stays wrong').to.equal('wrong');
  });
});

describe('doctor: secrets', () => {
  it('shows no secret in a line, even a weak secret', () => {
    const weak = ['hunter2-hunter2', 'aaaaaaaaaaaaaaaaaaaaaaaa', 'password1'];
    const secrets = weak.flatMap((text) => ['A_SECRET', 'B_SECRET'].map((name) => ({ name, text })));
    const text = JSON.stringify(reportOn(allFacts(inSettings({ secrets }))));
    expect(text).to.include('A_SECRET and B_SECRET');
    for (const one of weak) expect(text).not.to.include(one);
  });
});

describe('doctor: servers with the MySQL protocol', () => {
  for (const [version, comment, engine] of [
    ['8.0.15', 'MySQL Community Server - GPL', 'mysql'],
    ['8.0.36-0ubuntu0.22.04.1', '(Ubuntu)', 'mysql'],
    ['9.7.4', '(Debian)', 'mysql'],
    ['8.0.36-log', 'Source distribution', 'mysql'],
    ['11.4.5-MariaDB-log', 'Source distribution', 'mariadb'],
    ['11.4.5', 'mariadb.org binary distribution', 'mariadb'],
  ] as const)
    it(`is ${engine}: ${version}, ${comment}`, () => expect(engineOf(version, comment)).to.equal(engine));
});
