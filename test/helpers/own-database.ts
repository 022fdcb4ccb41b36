import { randomBytes } from 'node:crypto';
import { openMysqlPool } from '../../src/mysql/pool.js';
import { stackEnv } from './stack-env.js';

/** An empty database for one test file, for tests that act on whole tables. */
export interface OwnDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/** On the server of this test run, whose user may make databases named `seckill_…`. */
export async function ownDatabase(): Promise<OwnDatabase> {
  const server = openMysqlPool({ url: stackEnv().MYSQL_URL, poolMax: 1, queryTimeoutMs: 20_000 });
  const name = `seckill_own_${randomBytes(6).toString('hex')}`;
  await server.execute(`CREATE DATABASE ${name}`);
  const url = new URL(stackEnv().MYSQL_URL);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    async drop(): Promise<void> {
      await server.execute(`DROP DATABASE ${name}`);
      await server.close();
    },
  };
}
