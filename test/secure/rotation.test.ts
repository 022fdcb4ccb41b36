import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { createConnection, type Connection } from 'mysql2/promise';
import { certificateFiles, makeAuthority } from '../../deploy/local/stack/certificates.js';
import { loadConfig } from '../../src/core/config/load.js';
import { openMysqlPool, type MysqlPool } from '../../src/mysql/pool.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { startRedisCluster, type RedisCluster } from '../helpers/redis-cluster.js';
import { prepareSecureRedis, type SecureRedis } from '../helpers/secure-redis.js';
import { silentLog } from '../helpers/silent-log.js';
import { useSystem } from '../helpers/system.js';
import { redisServerOrSkip, startPrivateRedis, type PrivateRedis } from '../helpers/private-redis.js';
import { until } from '../chaos/harness/wait.js';

const USER = 'rotated';

describe('settings files that change while a program runs', () => {
  const system = useSystem();
  let dir: string;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'seckill-rotation-'));
  });
  after(() => rmSync(dir, { recursive: true, force: true }));
  const file = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };

  describe('MySQL', () => {
    let admin: Connection;
    let pool: MysqlPool | undefined;
    before(async () => {
      // the administrator is the system user who started the server
      const { username: user } = userInfo();
      admin = await createConnection({ socketPath: system.stack.servers.mysqlSocket, user });
      await admin.query(`CREATE USER '${USER}'@'127.0.0.1' IDENTIFIED BY 'old' REQUIRE X509`);
      await admin.query(`GRANT ALL ON seckill.* TO '${USER}'@'127.0.0.1'`);
    });
    afterEach(async () => pool?.close());
    after(async () => {
      await admin?.query(`DROP USER '${USER}'@'127.0.0.1'`);
      await admin?.end();
    });

    const open = (more: Readonly<Record<string, string>>): MysqlPool => {
      const url = Object.assign(new URL(system.stack.env.MYSQL_URL), { username: USER }).href;
      const { mysql } = loadConfig(['mysql'], { ...system.stack.env, MYSQL_URL: url, ...more });
      // a single connection, after whose loss the next statement needs a new login
      pool = openMysqlPool({ ...mysql, poolMax: 1 });
      return pool;
    };
    const kill = async (): Promise<void> => {
      await admin.query(`KILL USER '${USER}'@'127.0.0.1'`);
    };

    it('uses a new password for new connections and keeps open connections', async () => {
      const path = file('mysql', 'old\n');
      const opened = open({ MYSQL_PASSWORD_FILE: path });
      await opened.probe();
      await admin.query(`ALTER USER '${USER}'@'127.0.0.1' IDENTIFIED BY 'new'`);
      await opened.probe();
      writeFileSync(path, 'new\n');
      await kill();
      await until('it logs in with the new one', () => opened.probe().then(() => true), { everyMs: 500 });
      await admin.query(`ALTER USER '${USER}'@'127.0.0.1' IDENTIFIED BY 'old'`);
    });

    it('trusts a new authority for new connections', async () => {
      const own = readFileSync(certificateFiles(system.stack.servers.dir).ca, 'utf8');
      const path = file('ca.pem', (await makeAuthority('not yet')).cert);
      const opened = open({ MYSQL_PASSWORD_FILE: file('mysql', 'old'), MYSQL_TLS_CA_FILE: path });
      const first = await opened.probe().then(
        () => 'it was trusted',
        (error: Error) => error.message,
      );
      expect(first).to.match(/no authority in MYSQL_TLS_CA signed/);
      writeFileSync(path, own);
      await until('it is trusted', () => opened.probe().then(() => true), { everyMs: 500 });
    });
  });

  describe('Redis', () => {
    let secure: SecureRedis;
    let server: PrivateRedis | undefined;
    let cluster: RedisCluster | undefined;
    let connection: RedisConnection | undefined;
    before(async function () {
      redisServerOrSkip(this);
      secure = await prepareSecureRedis();
    });
    afterEach(async () => {
      await connection?.close();
      await server?.stop();
      await cluster?.stop();
      [connection, server, cluster] = [undefined, undefined, undefined];
    });
    after(() => secure?.remove());

    /** Adds a second password, changes the file, and removes the first password, like an operator. */
    async function rotate(admins: readonly Redis[], path: string): Promise<void> {
      for (const admin of admins) await admin.call('ACL', 'SETUSER', 'seckill', '>new');
      writeFileSync(path, 'new\n');
      for (const admin of admins) await admin.call('ACL', 'SETUSER', 'seckill', `<${secure.password}`);
      for (const admin of admins) await admin.call('CLIENT', 'KILL', 'USER', 'seckill');
    }
    const optionsOf = (url: string, path: string) => ({
      ...loadConfig(['redis'], {
        REDIS_URL: url,
        REDIS_PASSWORD_FILE: path,
        REDIS_TLS_CA_FILE: secure.certificates.ca,
        REDIS_TLS_CERT_FILE: secure.certificates.client,
        REDIS_TLS_KEY_FILE: secure.certificates.clientKey,
      }).redis,
    });

    it('uses a new password for a single server after the connection is lost', async () => {
      server = await startPrivateRedis(redisServerOrSkip({ skip: () => undefined as never }), {
        args: secure.args,
        secure: secure.operator,
      });
      const path = file('redis', `${secure.password}\n`);
      const url = `rediss://seckill@127.0.0.1:${server.port}`;
      connection = await connectRedis(optionsOf(url, path), silentLog);
      const { redis } = connection;
      const { user, password } = secure.operator;
      const admin = new Redis({ host: '127.0.0.1', port: server.port, username: user, password, tls: secure.tls });
      try {
        await rotate([admin], path);
        await until('it is let in again', async () => (await redis.get('sk:any')) === null);
      } finally {
        admin.disconnect();
      }
    });

    it('uses a new password for each server of a cluster', async () => {
      cluster = await startRedisCluster([], secure);
      const path = file('redis', `${secure.password}\n`);
      connection = await connectRedis(optionsOf(cluster.url, path), silentLog);
      const { redis } = connection;
      await rotate(cluster.admin, path);
      for (const key of ['sk:{1}', 'sk:{2}', 'sk:{3}', 'sk:{4}']) {
        await until('it is let in again', async () => (await redis.get(key)) === null);
      }
    });
  });
});
