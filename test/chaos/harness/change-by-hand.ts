import { administratorOf } from '../../helpers/private-mariadb.js';
import { mysqlIn } from '../../helpers/servers.js';
import type { StackControls } from './stack-controls.js';

/** Changes rows by hand, unseen by the witness, which must find only changes of programs. */
export async function changeByHand(
  { servers, env }: Pick<StackControls, 'servers' | 'env'>,
  statements: readonly (readonly [sql: string, values?: (string | readonly string[])[]])[],
): Promise<void> {
  const administrator = await administratorOf(servers);
  try {
    await administrator.query('SET SESSION sql_log_bin = 0');
    await administrator.query(`USE ${new URL(mysqlIn(env).url).pathname.slice(1)}`);
    for (const [sql, values] of statements) await administrator.query(sql, values);
  } finally {
    administrator.destroy();
  }
}
