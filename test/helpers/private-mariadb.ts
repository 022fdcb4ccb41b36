import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { createConnection, type Connection } from 'mysql2/promise';
import { listeningPorts, pickFreePorts } from '../../deploy/local/stack/ports.js';
import { openStack, type Stack } from '../../deploy/local/stack/stack.js';
import type { Versions } from '../../deploy/local/stack/versions.js';

/** A MariaDB or MySQL for a single test file, for settings that would disturb others. */
export interface PrivateMariadb {
  /** Value for MYSQL_URL. The database is empty. */
  readonly url: string;
  /** Runs SQL as its administrator. */
  admin(sql: string): Promise<Readonly<Record<string, unknown>>[]>;
  stop(): Promise<void>;
}

/**
 * Takes some seconds, or half a minute on a busy machine.
 * @param serverId gives it a binary log
 * @throws StackError
 */
export async function startPrivateMariadb(
  serverId?: number,
  mysql: Versions['mysql'] = 'mariadb-11.4',
): Promise<PrivateMariadb> {
  const dir = mkdtempSync(join(tmpdir(), 'seckill-mariadb-'));
  const ports = pickFreePorts(listeningPorts());
  const stack = openStack({ dir, ports, versions: { mysql }, serverId });
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
    const opened = await administratorOf(stack);
    connection = opened;
    return {
      url: stack.env().MYSQL_URL,
      admin: (sql) => rowsOf(opened, sql),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A connection of the administrator of a MariaDB of the local stack. */
export const mariadbAdministrator = ({ mysqlSocket }: Pick<Stack, 'mysqlSocket'>): Promise<Connection> =>
  createConnection({
    socketPath: mysqlSocket,
    user: userInfo().username,
    authPlugins: { unix_socket: () => () => Buffer.alloc(0) },
    supportBigNumbers: true,
    bigNumberStrings: true,
  });

const mysqlAdministrator = ({ mysqlSocket, env }: Stack): Promise<Connection> =>
  createConnection({ socketPath: mysqlSocket, user: 'root', password: new URL(env().MYSQL_URL).password });

/** A connection of the administrator of a MySQL of the local stack. */
export const administratorOf = (stack: Stack): Promise<Connection> =>
  stack.versions.mysql === 'mariadb-11.4' ? mariadbAdministrator(stack) : mysqlAdministrator(stack);

/** @returns the rows, or an empty list for a statement without rows */
export async function rowsOf(connection: Connection, sql: string): Promise<Readonly<Record<string, unknown>>[]> {
  const [rows] = await connection.query(sql);
  return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
}
