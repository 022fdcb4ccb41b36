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
import { openMysqlPool, type MysqlPool, type SqlValue } from '../../src/mysql/pool.js';
import { readMysqlFacts, readMysqlStartFacts } from '../../src/mysql/read-facts.js';
import { connectionOptions } from '../../src/mysql/server.js';
import { examine } from '../../src/operate/doctor/examine.js';
import { checkMysql } from '../../src/process/servers.js';
import { applyTopics } from '../../src/rocketmq/admin/apply-topics.js';
import { readTopicLists } from '../../src/rocketmq/admin/topic-lists.js';
import { found, grantedMsOf } from '../chaos/harness/wait.js';
import { PrivateCluster } from '../helpers/private-cluster.js';
import { startPrivateMariadb, type PrivateMariadb } from '../helpers/private-mariadb.js';
import { redisServerOrSkip, startPrivateRedis, type PrivateRedis } from '../helpers/private-redis.js';
import { startRedisCluster } from '../helpers/redis-cluster.js';
import { stackEnv } from '../helpers/stack-env.js';
import { ownMysqlWorld, type MysqlWorld } from './repository-worlds.js';
import { partial } from '../helpers/partial.js';

const IS_OTHER = !isDeepStrictEqual(versionsIn(process.env), DEFAULT_VERSIONS);
/** Checks that depend on the test machine or on other users of its servers. */
const MAY_BE_RISKY = [
  ...['settings.node', 'redis.disk', 'mysql.disk', 'rocketmq.disk', 'redis.replicas', 'rocketmq.open'],
];
/** A hanging server costs ten seconds. */
const WITHIN_MS = 30_000;

class Lines {
  readonly all: readonly Finding[];

  constructor(all: readonly Finding[]) {
    this.all = all;
  }

  of(verdict: Finding['verdict']): string[] {
    return this.all.filter((one) => one.verdict === verdict).map(({ id }) => id);
  }

  /** `<verdict>: <sentence>`, or empty if the check is absent. */
  line(id: string): string {
    const found = this.all.find((one) => one.id === id);
    return found === undefined ? '' : `${found.verdict}: ${found.says}`;
  }
}

/** @param change the change to the healthy stack */
async function look(change: Readonly<Record<string, string>> = {}): Promise<Lines> {
  const env = { ...process.env, ...stackEnv(), ...change };
  const report = await examine(env, { programs: PROGRAM_KINDS, cluster: null });
  return new Lines(report.groups.flatMap(({ findings }) => findings));
}

const onPort = (url: string, port: string): string => Object.assign(new URL(url), { port }).href;

describe('seckill doctor on real servers', () => {
  it('sees every value of the healthy stack, and calls only its trial settings risky', async () => {
    const lines = await look();
    expect(lines.all.filter(({ verdict }) => verdict === 'wrong')).to.deep.equal([]);
    expect(lines.of('unknown')).to.deep.equal([]);
    const risky = lines.of('risky').filter((id) => !MAY_BE_RISKY.includes(id));
    // The test broker checks back early, and a server from another source may have an untested version.
    expect(risky.filter((id) => !IS_OTHER || !id.endsWith('.version'))).to.deep.equal([
      'mysql.binlog',
      'rocketmq.first-check',
    ]);
    for (const [id, says] of Object.entries({
      'settings.secrets': /strong/,
      'redis.access': /user default; Redis refuses clients without a login/,
      'redis.eviction': /noeviction/,
      'redis.fsync': /everysec/,
      'redis.role': /master/,
      'redis.version': versionsIn(process.env).redis === 'valkey' ? /Valkey \d/ : /Redis \d/,
      'redis.open': /only on this machine/,
      'mysql.rights': /seckill@127\.0\.0\.1; rights on its database only/,
      'mysql.isolation': /READ-COMMITTED/,
      'mysql.packet': /(16|64) MiB/,
      'mysql.flush': /at every commit/,
      'mysql.connections': /of 190 at most/,
      'rocketmq.brokers': /broker-a/,
      'rocketmq.version': /5\.\d\.\d/,
      'rocketmq.access': /clients without a key are refused/,
      'rocketmq.check-backs': /in 3600 s/,
      'rocketmq.kept': /72 hours/,
      'rocketmq.clock': /ms apart/,
    }))
      expect(lines.line(id)).to.match(/^ok: /).and.match(says);
  });

  it('prints a red line without secrets for each server with missing or wrong settings', async () => {
    const weak = { MYSQL_URL: 'mysql://root:hunter22@127.0.0.1:1/x', ROCKETMQ_ENDPOINT: 'nowhere', REDIS_URL: '' };
    const lines = await look({ ...weak, MESSAGE_UNSIGNED: 'accept', OPERATORS_HOST: '0.0.0.0' });
    expect(lines.of('wrong')).to.have.members([
      ...['settings.read', 'redis.answers', 'mysql.answers', 'rocketmq.answers'],
    ]);
    expect(lines.line('settings.read'))
      .to.match(/REDIS_URL is not set/)
      .and.match(/ROCKETMQ_ENDPOINT must be host:port/);
    expect(lines.of('risky')).to.include.members([
      ...['settings.secrets', 'settings.unsigned-messages', 'settings.listeners'],
    ]);
    expect(JSON.stringify(lines.all)).not.to.include('hunter22');
  });
});

describe('seckill doctor: broken Redis', () => {
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
    expect(lines.line('mysql.flush'), 'the other servers are checked').to.match(/^ok/);
    expect(lines.line('rocketmq.topics')).to.match(/^ok/);
  };

  it('prints one line when Redis is down, and checks the other servers', async () => {
    expectOnlyRedisAway(await look({ REDIS_URL: 'redis://127.0.0.1:1' }), /ECONNREFUSED/);
  });

  it('prints one line in time when Redis hangs', async () => {
    server.signal('SIGSTOP');
    try {
      const tookMs = await grantedMsOf(async () => expectOnlyRedisAway(await look({ REDIS_URL: server.url }), /Redis/));
      expect(tookMs).to.be.below(WITHIN_MS);
    } finally {
      server.signal('SIGCONT');
    }
  });

  it('reports a refused password', async () => {
    const url = Object.assign(new URL(stackEnv().REDIS_URL), { password: 'of-somebody-else' }).href;
    expectOnlyRedisAway(await look({ REDIS_URL: url }), /WRONGPASS|invalid username-password/);
  });

  it('reports eviction and a missing append-only log, password or replica', async () => {
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

  it('reports memory that is nearly full', async () => {
    const used = Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1]);
    await admin.config('SET', 'maxmemory', String(Math.round(used * 1.02)));
    try {
      expect((await look({ REDIS_URL: server.url })).line('redis.memory')).to.match(/^wrong: Redis uses \d+ %/);
    } finally {
      await admin.config('SET', 'maxmemory', '0');
    }
  });

  it('names the impossible checks if the user may not read settings', async () => {
    await admin.acl('SETUSER', 'narrow', 'on', '>a-long-password-of-narrow', '~*', '&*', '+@all', '-config', '-acl');
    const url = `redis://narrow:a-long-password-of-narrow@127.0.0.1:${server.port}`;
    const lines = await look({ REDIS_URL: url });
    expect(lines.of('unknown')).to.deep.equal(['redis.fsync']);
    expect(lines.line('redis.eviction')).to.equal('ok: noeviction');
  });
});

describe('seckill doctor: a Redis cluster', () => {
  it('names the misconfigured masters in one line', async () => {
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

/** The shared Redis also counts events of other databases. */
const BEYOND_OTHERS = 'AUTO_INCREMENT = 1000000000';

describe('seckill doctor: broken MySQL', () => {
  let own: MysqlWorld & { readonly url: string };
  let server: PrivateMariadb;
  before(async () => {
    [own, server] = await Promise.all([ownMysqlWorld(), startPrivateMariadb()]);
  });
  after(async () => {
    await own?.close();
    await server?.stop();
  });
  /** Reason that stops a program at its start. */
  const refusalAt = async (url: string): Promise<string> => {
    const pool = openMysqlPool({ url, poolMax: 2, queryTimeoutMs: 10_000 });
    try {
      await checkMysql(pool);
      return '';
    } catch (error) {
      return (error as Error).message;
    } finally {
      await pool.close();
    }
  };

  it('prints one line when MySQL is down or refuses the password, and checks the other servers', async () => {
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

  it('reports only the missing tables, and lets a program start', async () => {
    const lines = await look({ MYSQL_URL: server.url });
    expect(lines.of('wrong')).to.deep.equal(['mysql.schema']);
    expect(lines.line('mysql.schema')).to.match(/migrations are missing: 0001-.* and \d+ more/);
    expect(await refusalAt(server.url)).to.equal('');
  });

  it('reports settings that lose orders, refuse writes or large messages, or leave too few connections', async () => {
    await migrate({ url: server.url });
    const { username, pathname } = new URL(server.url);
    for (const sql of [
      `ALTER TABLE ${pathname.slice(1)}.outbox ${BEYOND_OTHERS}`,
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

  it('reports commits that wait for no replica, except on a single server', async () => {
    const line = async (): Promise<string> => (await look({ MYSQL_URL: server.url })).line('mysql.replica');
    expect(await line()).to.match(/^ok: one server, no replica/);
    await server.admin('SET GLOBAL rpl_semi_sync_master_enabled = ON');
    expect(await line()).to.match(/^risky: No replica answers in time/);
  });

  it('reads the same facts from a MySQL that gives them other names', async () => {
    const answers = new Map([
      ['log_bin', 'ON'],
      ['rpl_semi_sync_source_enabled', 'ON'],
      ['rpl_semi_sync_source_wait_point', 'AFTER_SYNC'],
      ['Rpl_semi_sync_source_status', 'ON'],
      ['Rpl_semi_sync_source_clients', '2'],
    ]);
    const pool = openMysqlPool({ url: stackEnv().MYSQL_URL, poolMax: 2, queryTimeoutMs: 10_000 });
    try {
      const asMysql = partial<MysqlPool>({
        query: async <Row>(sql: string, values?: readonly SqlValue[]) => {
          if (!sql.includes('Variable_name IN')) return pool.query<Row>(sql, values);
          return [...answers].map(([name, text]) => ({ Variable_name: name, Value: text })) as Row[];
        },
        transaction: (work) => pool.transaction(work),
      });
      const semiSync = { waitPoint: 'AFTER_SYNC', waitsNow: true, replicas: 2 };
      expect((await readMysqlFacts(asMysql)).replication).to.deep.equal({ replicas: null, semiSync });
      answers.set('Rpl_semi_sync_source_status', 'OFF');
      expect((await readMysqlFacts(asMysql)).replication.semiSync).to.include({ waitsNow: false });
    } finally {
      await pool.close();
    }
  });

  it('stops a program if tables compare ids loosely, lack transactions or belong to another release', async () => {
    expect(await refusalAt(own.url)).to.equal('');
    for (const sql of [
      `ALTER TABLE outbox ${BEYOND_OTHERS}`,
      'ALTER TABLE orders MODIFY user_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL',
      'ALTER TABLE coupons ENGINE = MyISAM',
      "UPDATE knex_migrations SET name = '9999-later' ORDER BY id DESC LIMIT 1",
      'CREATE TABLE of_somebody_else (name VARCHAR(9) COLLATE utf8mb4_general_ci) ENGINE = MyISAM',
    ])
      await own.pool.execute(sql);
    const lines = await look({ MYSQL_URL: own.url });
    expect(lines.of('wrong')).to.deep.equal(['mysql.schema', 'mysql.collations', 'mysql.engines']);
    expect(lines.line('mysql.collations')).to.match(/^wrong: Ids .* are equal in orders\.user_id ascii_general_ci\.$/);
    expect(lines.line('mysql.engines')).to.match(/: coupons MyISAM\.$/);
    const refusal = await refusalAt(own.url);
    expect(refusal)
      .to.match(/orders\.user_id ascii_general_ci/)
      .and.match(/coupons MyISAM/);
    expect(refusal).not.to.match(/of_somebody_else|are missing|9999/);
  });

  it('notices sessions without our settings behind a proxy that shares connections', async () => {
    const connection = await createConnection({
      ...connectionOptions({ url: stackEnv().MYSQL_URL }),
      bigNumberStrings: true,
    });
    try {
      await connection.query("SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES', time_zone = 'SYSTEM'");
      await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
      const facts = await readMysqlStartFacts(
        partial({
          query: async <Row>(sql: string, values?: readonly SqlValue[]) =>
            (await connection.query(sql, values as string[]))[0] as Row[],
          transaction: () => Promise.resolve(null as never), // so that there is no second session
        }),
      );
      const lines = new Lines(findingsOf(MYSQL_START_CHECKS, facts));
      expect(lines.of('wrong')).to.deep.equal(['mysql.isolation', 'mysql.sql-mode', 'mysql.time-zone']);
    } finally {
      connection.destroy();
    }
  });

  it('reports a server whose SKIP LOCKED returns locked rows, as TiDB does', async () => {
    const pool = openMysqlPool({ url: stackEnv().MYSQL_URL, poolMax: 2, queryTimeoutMs: 10_000 });
    try {
      const locksNothing = partial<MysqlPool>({
        query: (sql, values) => pool.query(sql.replace('FOR UPDATE SKIP LOCKED', ''), values),
        transaction: (work) => pool.transaction(work),
      });
      const idsOfWrong = async (on: MysqlPool): Promise<readonly string[]> =>
        new Lines(findingsOf(MYSQL_START_CHECKS, await readMysqlStartFacts(on))).of('wrong');
      expect(await idsOfWrong(pool)).to.deep.equal([]);
      expect(await idsOfWrong(locksNothing)).to.deep.equal(['mysql.locks']);
    } finally {
      await pool.close();
    }
  });
});

describe('seckill doctor: broken RocketMQ', () => {
  it('prints a line when the proxy or the name server is down, and checks the other server', async () => {
    const proxyAway = await look({ ROCKETMQ_ENDPOINT: '127.0.0.1:1' });
    expect(proxyAway.of('wrong')).to.deep.equal(['rocketmq.answers']);
    expect(proxyAway.line('rocketmq.topics')).to.match(/^ok/);
    const oneAway = await look({ ROCKETMQ_ENDPOINT: `127.0.0.1:1,${stackEnv().ROCKETMQ_ENDPOINT}` });
    expect(oneAway.of('wrong')).to.deep.equal(['rocketmq.answers']);
    expect(oneAway.line('rocketmq.answers')).to.match(/at 127\.0\.0\.1:1:/);
    const namesAway = await look({ NAMESRV_ADDR: '127.0.0.1:1' });
    expect(namesAway.of('wrong')).to.deep.equal(['rocketmq.name-server']);
    expect(namesAway.line('rocketmq.answers')).to.match(/^ok/);
    const otherCluster = await examine({ ...process.env, ...stackEnv() }, { programs: [], cluster: 'of-nobody' });
    const lines = new Lines(otherCluster.groups.flatMap(({ findings }) => findings));
    expect(lines.line('rocketmq.name-server')).to.match(/^wrong: .*no broker of the cluster of-nobody/);
  });

  it('reports a refused key', async () => {
    const lines = await look({ ROCKETMQ_ACCESS_SECRET: 'u7Hq2LmZ9xW4tRb1' });
    expect(lines.of('wrong')).to.deep.equal(['rocketmq.answers', 'rocketmq.brokers']);
    expect(lines.line('rocketmq.answers')).to.match(/refuses ROCKETMQ_ACCESS_KEY/);
  });

  it('reports a broker that lacks topics, access control or check-backs, has wrong topic types or hangs', async () => {
    const cluster = await PrivateCluster.start(['broker-x']);
    try {
      const change = { NAMESRV_ADDR: cluster.namesrvAddr };
      const askAnswering = async (): Promise<Lines | null> => {
        const lines = await look(change);
        return lines.of('wrong').includes('rocketmq.brokers') ? null : lines;
      };
      const asItComes = await found('a broker that has just begun answers in time', askAnswering);
      // the replication port, on a machine with a network
      const wrong = asItComes.of('wrong').filter((id) => id !== 'rocketmq.open');
      expect(wrong).to.deep.equal(['rocketmq.topics', 'rocketmq.groups']);
      expect(asItComes.line('rocketmq.topics')).to.match(/seckill-purchase is missing/);
      expect(asItComes.line('rocketmq.access')).to.match(/^risky: .* at broker-x\.$/);
      expect(asItComes.line('rocketmq.check-backs')).to.match(/^risky: .* 15 times in 450 s/);
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
      expect(hangs.line('rocketmq.topics'), 'its state is unknown').to.equal('');
      expect(hangs.line('mysql.flush')).to.match(/^ok/);
    } finally {
      await cluster.close();
    }
  });
});
