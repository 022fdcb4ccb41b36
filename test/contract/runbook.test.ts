import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { ownMysqlWorld } from './repository-worlds.js';
import { useWorld } from './on-each-world.js';

/** Every SELECT that the runbook tells an operator to run. */
const QUERIES = [
  ...readFileSync(join(REPO_DIR, 'docs/runbook.md'), 'utf8').matchAll(/\bmysql (?:seckill )?-e (['"])(SELECT .+?)\1/g),
].map(([, , sql]) => sql as string);

describe('docs/runbook.md', () => {
  const world = useWorld(ownMysqlWorld);

  it('shows only SQL that MySQL understands', async () => {
    if (QUERIES.length < 3) throw new Error('the runbook has lost its SQL');
    for (const sql of QUERIES) await world.pool.execute(sql);
  });
});
