import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import { DEFAULT_VERSIONS, versionsIn } from '../../deploy/local/stack/versions.js';
import { createConnection } from 'mysql2/promise';
import { Redis } from 'ioredis';
import { findingsOf, type Finding } from '../../src/core/doctor/check.js';
import { MYSQL_START_CHECKS } from '../../src/core/doctor/mysql-checks.js';
import { PROGRAM_KINDS } from '../../src/core/ports/program-reports.js';
import { GROUPS, TOPICS } from '../../src/core/topics.js';
import { migrate } from '../../src/mysql/migrate.js';
import { openMysqlPool, type SqlValue } from '../../src/mysql/pool.js';
import { readMysqlStartFacts } from '../../src/mysql/read-facts.js';
import { connectionOptions } from '../../src/mysql/server.js';
import { examine } from '../../src/programs/doctor.js';
import { checkMysql } from '../../src/programs/servers.js';
import { applyTopics } from '../../src/rocketmq/admin/apply-topics.js';
import { readTopicLists } from '../../src/rocketmq/admin/topic-lists.js';
import { found, grantedMsOf } from '../chaos/harness/wait.js';
import { PrivateCluster } from '../helpers/private-cluster.js';
import { startPrivateMariadb, type PrivateMariadb } from '../helpers/private-mariadb.js';
import { redisServerOrSkip, startPrivateRedis, type PrivateRedis } from '../helpers/private-redis.js';
import { startRedisCluster } from '../helpers/redis-cluster.js';
import { stackEnv } from '../helpers/stack-env.js';
import { ownMysqlWorld, type MysqlWorld } from './repository-worlds.js';

const IS_OTHER = !isDeepStrictEqual(versionsIn(process.env), DEFAULT_VERSIONS);
/** What depends on the machine that runs the tests, and on who uses its servers meanwhile. */
const MAY_BE_RISKY = [
  ...['settings.node', 'redis.disk', 'mysql.disk', 'rocketmq.disk', 'redis.replicas', 'rocketmq.open'],
];
/** Asking a server that hangs takes ten seconds. */
const WITHIN_MS = 30_000;

class Lines {
  readonly all: readonly Finding[];

  constructor(all: readonly Finding[]) {
    this.all = all;
  }

  of(verdict: Finding['verdict']): string[] {
    return this.all.filter((one) => one.verdict === verdict).map(({ id }) => id);
  }

  /** `<verdict>: <sentence>`; empty: there is no such line. */
  line(id: string): string {
    const found = this.all.find((one) => one.id === id);
    return found === undefined ? '' : `${found.verdict}: ${found.says}`;
  }
}

/** @param change of the healthy stack */
async function look(change: Readonly<Record<string, string>> = {}): Promise<Lines> {
  const env = { ...process.env, ...stackEnv(), ...change };
  const report = await examine(env, { programs: PROGRAM_KINDS, cluster: null });
  return new Lines(report.groups.flatMap(({ findings }) => findings));
}

const onPort = (url: string, port: string): string => Object.assign(new URL(url), { port }).href;

describe('seckill doctor on real servers', () => {
  it('the healthy stack: nothing is wrong, every server shows all that is asked, and only what a trial lacks is risky', async () => {
    const lines = await look();
    expect(lines.all.filter(({ verdict }) => verdict === 'wrong')).to.deep.equal([]);
    expect(lines.of('unknown')).to.deep.equal([]);
    const risky = lines.of('risky').filter((id) => !MAY_BE_RISKY.includes(id));
    // the broker of the tests asks early, and a server that is not the stack's own choice may have a version that was not tried yet
    expect(risky.filter((id) => !IS_OTHER || !id.endsWith('.version'))).to.deep.equal([
      'mysql.binlog',
      'rocketmq.first-check',
    ]);
    for (const [id, says] of Object.entries({
      'settings.secrets': /strong/,
      'redis.access': /user default; strangers are refused/,
      'redis.eviction': /noeviction/,
      'redis.fsync': /everysec/,
      'redis.role': /master/,
      'redis.version': versionsIn(process.env).redis === 'valkey' ? /Valkey \d/ : /Redis \d/,
      'redis.open': /this machine only/,
      'mysql.rights': /seckill@127\.0\.0\.1; rights on its database only/,
      'mysql.isolation': /READ-COMMITTED/,
      'mysql.packet': /(16|64) MiB/,
      'mysql.flush': /at every commit/,
      'mysql.connections': /of 190 at most/,
      'rocketmq.brokers': /broker-a/,
      'rocketmq.version': /5\.\d\.\d/,
      'rocketmq.access': /strangers are refused/,
      'rocketmq.check-backs': /3600 s long/,
      'rocketmq.kept': /72 hours/,
      'rocketmq.clock': /ms apart/,
    }))
      expect(lines.line(id)).to.match(/^ok: /).and.match(says);
  });

  it('settings of nobody: each server has its red line, and no secret is printed', async () => {
    const weak = { MYSQL_URL: 'mysql://root:hunter22@127.0.0.1:1/x', ROCKETMQ_ENDPOINT: 'nowhere', REDIS_URL: '' };
    const lines = await look({ ...weak, MESSAGE_UNSIGNED: 'accept', OPERATORS_HOST: '0.0.0.0' });
    expect(lines.of('wrong')).to.have.members([
      ...['settings.read', 'redis.answers', 'mysql.answers', 'rocketmq.answers'],
    ]);
    expect(lines.line('settings.read'))
      .to.match(/REDIS_URL is not set/)
      .and.match(/ROCKETMQ_ENDPOINT must be one host:port/);
    expect(lines.of('risky')).to.include.members([
      ...['settings.secrets', 'settings.unsigned-messages', 'settings.listeners'],
    ]);
    expect(JSON.stringify(lines.all)).not.to.include('hunter22');
  });

  it('a setting of TLS that is wrong is what its server is red for', async () => {
    const none = {
      MYSQL_TLS_CA_FILE: '/nowhere/ca.pem',
      MYSQL_TLS: 'on',
      ROCKETMQ_TLS: 'on',
      ROCKETMQ_TLS_CA: 'no certificate',
    };
    const lines = await look(none);
    expect(lines.line('mysql.answers')).to.match(/MYSQL_TLS_CA_FILE names .*ENOENT/);
    expect(lines.line('rocketmq.answers')).to.match(/ROCKETMQ_TLS_CA must hold certificates/);
    expect(lines.of('wrong')).to.include.members(['settings.read', 'mysql.answers', 'rocketmq.answers']);
  });
});

describe('seckill doctor: Redis that is broken', () => {
  let server: PrivateRedis;
  let admin: Redis;
  before(async function () {
    server = await startPrivateRedis(redisServerOrSkip(this));
    admin = new Redis(server.port, '127.0.0.1').on('error', () => undefined);
  });
  after(async () => {
    admin?.disconnect();
    await server?.stop();
  });
  const expectOnlyRedisAway = (lines: Lines, says: RegExp): void => {
    expect(lines.of('wrong')).to.deep.equal(['redis.answers']);
    expect(lines.line('redis.answers')).to.match(says);
    expect(lines.line('mysql.flush'), 'the others are looked at').to.match(/^ok/);
    expect(lines.line('rocketmq.topics')).to.match(/^ok/);
  };

  it('it is down: one line, and the others are looked at', async () => {
    expectOnlyRedisAway(await look({ REDIS_URL: 'redis://127.0.0.1:1' }), /ECONNREFUSED/);
  });

  it('it hangs: one line, in time', async () => {
    server.signal('SIGSTOP');
    try {
      const tookMs = await grantedMsOf(async () => expectOnlyRedisAway(await look({ REDIS_URL: server.url }), /Redis/));
      expect(tookMs).to.be.below(WITHIN_MS);
    } finally {
      server.signal('SIGCONT');
    }
  });

  it('it refuses our password, and says so', async () => {
    const url = Object.assign(new URL(stackEnv().REDIS_URL), { password: 'of-somebody-else' }).href;
    expectOnlyRedisAway(await look({ REDIS_URL: url }), /WRONGPASS|invalid username-password/);
  });

  it('it evicts, keeps no log, has no password, and lacks the replica that purchases wait for', async () => {
    await admin.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await admin.config('SET', 'appendfsync', 'no');
    try {
      const lines = await look({ REDIS_URL: server.url, REDIS_WAIT_REPLICAS: '1' });
      expect(lines.of('wrong')).to.deep.equal(['redis.eviction', 'redis.append-only', 'redis.replicas']);
      expect(lines.line('redis.eviction')).to.match(/allkeys-lru/);
      expect(lines.line('redis.access')).to.match(/^risky: Redis serves every user of this machine/);
      expect(lines.line('redis.fsync')).to.match(/^risky/);
    } finally {
      await admin.config('SET', 'maxmemory-policy', 'noeviction');
      await admin.config('SET', 'appendfsync', 'everysec');
    }
  });

  it('it is nearly full', async () => {
    const used = Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1]);
    await admin.config('SET', 'maxmemory', String(Math.round(used * 1.02)));
    try {
      expect((await look({ REDIS_URL: server.url })).line('redis.memory')).to.match(/^wrong: Redis uses \d+ %/);
    } finally {
      await admin.config('SET', 'maxmemory', '0');
    }
  });

  it('it is a replica', async () => {
    await admin.replicaof('127.0.0.1', 1);
    try {
      expect((await look({ REDIS_URL: server.url })).of('wrong')).to.include('redis.role');
    } finally {
      await admin.replicaof('NO', 'ONE');
    }
  });

  it('it lets our user see nothing of its settings: those lines say so', async () => {
    await admin.acl('SETUSER', 'narrow', 'on', '>a-long-password-of-narrow', '~*', '&*', '+@all', '-config', '-acl');
    const url = `redis://narrow:a-long-password-of-narrow@127.0.0.1:${server.port}`;
    const lines = await look({ REDIS_URL: url });
    expect(lines.of('unknown')).to.deep.equal(['redis.fsync']);
    expect(lines.line('redis.eviction')).to.equal('ok: noeviction');
  });
});

describe('seckill doctor: a Redis cluster', () => {
  it('a line names the masters that are bad', async () => {
    const cluster = await startRedisCluster();
    try {
      await cluster.admin[1]?.config('SET', 'appendonly', 'yes');
      const lines = await look({ REDIS_URL: cluster.url });
      const [one, , other] = cluster.servers
        .map(({ port }) => `127.0.0.1:${port}`)
        .map((place) => place.replaceAll('.', '\\.'));
      expect(lines.line('redis.append-only')).to.match(
        new RegExp(`^wrong: (${one}, ${other}|${other}, ${one}): appendonly`),
      );
      expect(lines.line('redis.cluster')).to.match(/^risky: .*All sales stop/);
    } finally {
      await cluster.stop();
    }
  });
});

describe('seckill doctor: MySQL that is broken', () => {
  let own: MysqlWorld & { readonly url: string };
  let server: PrivateMariadb;
  before(async () => {
    [own, server] = await Promise.all([ownMysqlWorld(), startPrivateMariadb()]);
  });
  after(async () => {
    await own?.close();
    await server?.stop();
  });
  /** What a program that starts would say. */
  const refusalAt = async (url: string): Promise<string> => {
    const pool = openMysqlPool({ url, poolMax: 1, queryTimeoutMs: 10_000 });
    try {
      await checkMysql(pool);
      return '';
    } catch (error) {
      return (error as Error).message;
    } finally {
      await pool.close();
    }
  };

  it('it is down, or refuses our password: one line, and the others are looked at', async () => {
    const { MYSQL_URL } = stackEnv();
    const wrongLogin = Object.assign(new URL(MYSQL_URL), { password: 'Of-somebody-3lse!' }).href;
    for (const [url, says] of [
      [onPort(MYSQL_URL, '1'), /MySQL at \S+ cannot be reached.*ECONNREFUSED/],
      [wrongLogin, /Access denied/],
    ] as const) {
      const lines = await look({ MYSQL_URL: url });
      expect(lines.of('wrong')).to.deep.equal(['mysql.answers']);
      expect(lines.line('mysql.answers')).to.match(says);
      expect(lines.line('redis.eviction')).to.match(/^ok/);
    }
  });

  it('it has no tables yet: only they are missing, and a program may start', async () => {
    const lines = await look({ MYSQL_URL: server.url });
    expect(lines.of('wrong')).to.deep.equal(['mysql.schema']);
    expect(lines.line('mysql.schema')).to.match(/migrations are missing: 0001-.* and \d+ more/);
    expect(await refusalAt(server.url)).to.equal('');
  });

  it('its settings lose orders, refuse writes and large messages, and leave no room for the pools', async () => {
    await migrate({ url: server.url });
    const { username } = new URL(server.url);
    for (const sql of [
      'SET GLOBAL max_allowed_packet = 1048576',
      'SET GLOBAL innodb_flush_log_at_trx_commit = 0',
      'SET GLOBAL max_connections = 30',
      'SET GLOBAL read_only = 1',
      `GRANT PROCESS, RELOAD ON *.* TO '${username}'@'127.0.0.1'`,
    ])
      await server.admin(sql);
    const lines = await look({ MYSQL_URL: server.url });
    expect(lines.of('wrong')).to.deep.equal(['mysql.packet', 'mysql.writable', 'mysql.flush', 'mysql.connections']);
    expect(lines.line('mysql.rights')).to.match(
      /^risky: seckill@127\.0\.0\.1 may (PROCESS, RELOAD|RELOAD, PROCESS) on every/,
    );
    expect(await refusalAt(server.url)).to.match(/^this MySQL cannot hold orders: max_allowed_packet is 1048576 bytes/);
  });

  it('its tables compare ids loosely, know no transactions, and are of another release; a program does not start', async () => {
    expect(await refusalAt(own.url)).to.equal('');
    for (const sql of [
      'ALTER TABLE orders MODIFY user_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL',
      'ALTER TABLE coupons ENGINE = MyISAM',
      "UPDATE knex_migrations SET name = '9999-later' ORDER BY id DESC LIMIT 1",
      'CREATE TABLE of_somebody_else (name VARCHAR(9) COLLATE utf8mb4_general_ci) ENGINE = MyISAM',
    ])
      await own.pool.execute(sql);
    const lines = await look({ MYSQL_URL: own.url });
    expect(lines.of('wrong')).to.deep.equal(['mysql.schema', 'mysql.collations', 'mysql.engines']);
    expect(lines.line('mysql.collations')).to.match(
      /^wrong: Ids .* taken for one in orders\.user_id ascii_general_ci\.$/,
    );
    expect(lines.line('mysql.engines')).to.match(/in coupons MyISAM\.$/);
    const refusal = await refusalAt(own.url);
    expect(refusal)
      .to.match(/orders\.user_id ascii_general_ci/)
      .and.match(/coupons MyISAM/);
    expect(refusal).not.to.match(/of_somebody_else|are missing|9999/);
  });

  it('a session that lost what we had set is noticed, as behind a proxy that shares connections', async () => {
    const connection = await createConnection({
      ...connectionOptions({ url: stackEnv().MYSQL_URL }),
      bigNumberStrings: true,
    });
    try {
      await connection.query("SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES', time_zone = 'SYSTEM'");
      await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
      const facts = await readMysqlStartFacts({
        query: async <Row>(sql: string, values?: readonly SqlValue[]) =>
          (await connection.query(sql, values as string[]))[0] as Row[],
      });
      const lines = new Lines(findingsOf(MYSQL_START_CHECKS, facts));
      expect(lines.of('wrong')).to.deep.equal(['mysql.isolation', 'mysql.sql-mode', 'mysql.time-zone']);
    } finally {
      connection.destroy();
    }
  });

  it('pools that are too large for it', async () => {
    const lines = await look({ MYSQL_POOL_MAX: '100' });
    expect(lines.of('wrong')).to.deep.equal(['mysql.connections']);
  });
});

describe('seckill doctor: RocketMQ that is broken', () => {
  it('the proxy is down, or the name server: a line each, and the other is looked at', async () => {
    const proxyAway = await look({ ROCKETMQ_ENDPOINT: '127.0.0.1:1' });
    expect(proxyAway.of('wrong')).to.deep.equal(['rocketmq.answers']);
    expect(proxyAway.line('rocketmq.topics')).to.match(/^ok/);
    const namesAway = await look({ NAMESRV_ADDR: '127.0.0.1:1' });
    expect(namesAway.of('wrong')).to.deep.equal(['rocketmq.name-server']);
    expect(namesAway.line('rocketmq.answers')).to.match(/^ok/);
    const otherCluster = await examine({ ...process.env, ...stackEnv() }, { programs: [], cluster: 'of-nobody' });
    const lines = new Lines(otherCluster.groups.flatMap(({ findings }) => findings));
    expect(lines.line('rocketmq.name-server')).to.match(/^wrong: .*no broker of the cluster of-nobody/);
  });

  it('it refuses our key', async () => {
    const lines = await look({ ROCKETMQ_ACCESS_SECRET: 'u7Hq2LmZ9xW4tRb1' });
    expect(lines.of('wrong')).to.deep.equal(['rocketmq.answers', 'rocketmq.brokers']);
    expect(lines.line('rocketmq.answers')).to.match(/refuses ROCKETMQ_ACCESS_KEY/);
  });

  it('a broker as it comes: no topics, no access control, few check-backs; then with topics of the wrong type; then one that hangs', async () => {
    const cluster = await PrivateCluster.start(['broker-x']);
    try {
      const change = { NAMESRV_ADDR: cluster.namesrvAddr };
      const askAnswering = async (): Promise<Lines | null> => {
        const lines = await look(change);
        return lines.of('wrong').includes('rocketmq.brokers') ? null : lines;
      };
      const asItComes = await found('a broker that has just begun answers in time', askAnswering);
      const wrong = asItComes.of('wrong').filter((id) => id !== 'rocketmq.open'); // its port for replicas, on a machine with a network
      expect(wrong).to.deep.equal(['rocketmq.topics', 'rocketmq.groups']);
      expect(asItComes.line('rocketmq.topics')).to.match(/seckill-purchase is missing/);
      expect(asItComes.line('rocketmq.access')).to.match(/^risky: .* at broker-x\.$/);
      expect(asItComes.line('rocketmq.check-backs')).to.match(/^risky: .* 15 times, 450 s long/);
      expect(asItComes.line('rocketmq.auto-create')).to.match(
        /^risky: autoCreateTopicEnable and autoCreateSubscriptionGroup/,
      );

      const { topics, groups } = readTopicLists();
      const plain = { '+message.type': 'NORMAL' } as const;
      const target = { namesrvAddr: cluster.namesrvAddr, cluster: null, credentials: null };
      await applyTopics(target, {
        topics: topics.map((one) => (one.topicName === TOPICS.purchase ? { ...one, attributes: plain } : one)),
        groups: groups.map((one) => (one.groupName === GROUPS.writer ? { ...one, retryMaxTimes: 16 } : one)),
      });
      const wrongType = await found('it answers in time again', askAnswering);
      expect(wrongType.line('rocketmq.topics')).to.equal(
        'wrong: seckill-purchase has the type NORMAL, not TRANSACTION.',
      );
      expect(wrongType.line('rocketmq.groups')).to.equal('wrong: seckill-order-writer has 16 retries, not 5.');

      await cluster.signal('broker-x', 'SIGSTOP');
      const hangs = await look(change);
      expect(hangs.line('rocketmq.brokers')).to.match(/^wrong: broker-x does not answer \(/);
      expect(hangs.line('rocketmq.topics'), 'nothing is known of it').to.equal('');
      expect(hangs.line('mysql.flush')).to.match(/^ok/);
    } finally {
      await cluster.close();
    }
  });
});
