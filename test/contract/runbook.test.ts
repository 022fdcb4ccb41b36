import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { migrate } from '../../src/mysql/migrate.js';
import { startPrivateMariadb, type PrivateMariadb } from '../helpers/private-mariadb.js';

/** Every SELECT that the runbook tells an administrator to run. */
const QUERIES = [
  ...readFileSync(join(REPO_DIR, 'docs/runbook.md'), 'utf8').matchAll(/\bmysql (?:seckill )?-e (['"])(SELECT .+?)\1/g),
].map(([, , sql]) => sql as string);

describe('docs/runbook.md', () => {
  let server: PrivateMariadb;
  before(async () => {
    server = await startPrivateMariadb();
  });
  after(() => server.stop());

  it('shows only SQL that the server accepts from its administrator', async () => {
    await migrate({ url: server.url });
    await server.admin(`USE \`${new URL(server.url).pathname.slice(1)}\``);
    expect(QUERIES.length).to.equal(2);
    for (const sql of QUERIES) await server.admin(sql);
  });
});
