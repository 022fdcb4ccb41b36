import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { createConnection, type Connection } from 'mysql2/promise';
import { listeningPorts, pickFreePorts } from '../../deploy/local/stack/ports.js';
import { openStack } from '../../deploy/local/stack/stack.js';

/** A MariaDB for a single test file, for settings that would disturb others. */
export interface PrivateMariadb {
  /** Value for MYSQL_URL. The database is empty. */
  readonly url: string;
  /** Runs SQL as its administrator. */
  admin(sql: string): Promise<void>;
  stop(): Promise<void>;
}

/** Takes some seconds, or half a minute on a busy machine. @throws StackError */
export async function startPrivateMariadb(): Promise<PrivateMariadb> {
  const dir = mkdtempSync(join(tmpdir(), 'seckill-mariadb-'));
  const stack = openStack({ dir, ports: pickFreePorts(listeningPorts()), versions: { mysql: 'mariadb-11.4' } });
  const server = stack.server('mysql');
  let connection: Connection | undefined;
  const stop = async (): Promise<void> => {
    connection?.destroy();
    await server.stop({ signal: 'SIGKILL' }); // its data is not needed again
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    await server.start();
    await server.waitReady();
    const opened = await createConnection({
      socketPath: stack.mysqlSocket,
      user: userInfo().username,
      authPlugins: { unix_socket: () => () => Buffer.alloc(0) },
    });
    connection = opened;
    return {
      url: stack.env().MYSQL_URL,
      admin: async (sql) => void (await opened.query(sql)),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
