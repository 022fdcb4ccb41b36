import type { Connection } from 'mysql2/promise';
import {
  mariadbAdministrator,
  type PrivateMariadb,
  rowsOf,
  startPrivateMariadb,
} from '../../helpers/private-mariadb.js';
import type { Environment } from '../../../src/core/config/load.js';
import type { ScenarioContext } from '../context.js';
import { bootSecondStack } from './second-stack.js';
import { openControls, type StackControls } from './stack-controls.js';
import { TcpProxy, withHost } from './tcp-proxy.js';
import { until } from './wait.js';

/** So long that commits always wait for the replica, even on a busy machine. */
const SEMI_SYNC_TIMEOUT_MS = 120_000;

/** A MySQL with a replica on its own stack, and one address that leads to the primary. Ends with the scenario. */
export class MysqlPair {
  /** Uses the address. */
  readonly stack: StackControls;
  /** Environment of programs and commands. */
  readonly env: Environment & Readonly<Record<string, string>>;
  /** Administrator of the first primary. */
  readonly #primary: Connection;
  readonly #replica: PrivateMariadb;
  readonly #address: TcpProxy;

  private constructor(parts: {
    readonly stack: StackControls;
    readonly primary: Connection;
    readonly replica: PrivateMariadb;
    readonly address: TcpProxy;
  }) {
    this.stack = parts.stack;
    this.env = { ...parts.stack.env };
    this.#primary = parts.primary;
    this.#replica = parts.replica;
    this.#address = parts.address;
  }

  static async start(context: ScenarioContext, { semiSync }: { readonly semiSync: boolean }): Promise<MysqlPair> {
    const replica = await startPrivateMariadb(2);
    context.atEnd(() => replica.stop());
    const { servers, env } = await bootSecondStack(context, 'pair', { serverId: 1 });
    const primary = await mariadbAdministrator(servers);
    primary.on('error', () => undefined); // the primary is killed
    context.atEnd(() => primary.destroy());
    const { host, port, username, password } = new URL(env.MYSQL_URL);
    const address = await TcpProxy.open(host);
    context.atEnd(() => address.close());
    const run = (sql: string) => rowsOf(primary, sql);

    // the replica was created with another password
    await replica.admin('SET SESSION sql_log_bin = 0');
    await replica.admin(`SET PASSWORD FOR '${username}'@'127.0.0.1' = PASSWORD('${password}')`);
    await replica.admin('SET GLOBAL read_only = ON');
    await run(`CREATE USER 'replica'@'127.0.0.1' IDENTIFIED BY '${password}'`);
    await run("GRANT REPLICATION SLAVE ON *.* TO 'replica'@'127.0.0.1'");
    if (semiSync) {
      await run("SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'");
      await run(`SET GLOBAL rpl_semi_sync_master_timeout = ${SEMI_SYNC_TIMEOUT_MS}`);
      await run('SET GLOBAL rpl_semi_sync_master_enabled = ON');
      await replica.admin('SET GLOBAL rpl_semi_sync_slave_enabled = ON');
    }
    await replica.admin(
      `CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = ${port}, MASTER_USER = 'replica',
       MASTER_PASSWORD = '${password}', MASTER_SSL = 0, MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos`,
    );
    await replica.admin('START SLAVE');

    const through = { ...env, MYSQL_URL: withHost(env.MYSQL_URL, address.address) };
    const stack = await openControls(servers.dir, through);
    context.atEnd(() => stack.close());
    const pair = new MysqlPair({ stack, primary, replica, address });
    await pair.untilCaughtUp();
    return pair;
  }

  /** Waits until the replica has every write of the primary. */
  async untilCaughtUp(): Promise<void> {
    await until('the replica has caught up', async () => {
      const [primary] = await rowsOf(this.#primary, 'SELECT @@gtid_binlog_pos AS at');
      const [replica] = await this.#replica.admin('SELECT @@gtid_slave_pos AS at');
      return primary?.at !== '' && primary?.at === replica?.at;
    });
  }

  /** Reads the orders of a sale directly, without the address. The ids are in order. */
  async ordersOn(server: 'primary' | 'replica', saleId: string): Promise<string[]> {
    const database = new URL(this.stack.env.MYSQL_URL).pathname.slice(1);
    const sql = `SELECT id FROM \`${database}\`.orders WHERE sale_id = ${saleId} ORDER BY id`;
    const rows = server === 'primary' ? await rowsOf(this.#primary, sql) : await this.#replica.admin(sql);
    return rows.map(({ id }) => String(id));
  }

  async stopReplication(): Promise<void> {
    await this.#replica.admin('STOP SLAVE IO_THREAD');
  }

  /** Kills the primary with kill -9. */
  async killPrimary(): Promise<void> {
    await this.stack.servers.server('mysql').stop({ signal: 'SIGKILL' });
  }

  /** Does a planned switch: the old primary is read-only before the replica takes over. */
  async switchOver(): Promise<void> {
    await rowsOf(this.#primary, 'SET GLOBAL read_only = ON');
    await this.untilCaughtUp();
    await this.promote();
  }

  /** Lets the replica apply everything that it has received, makes it writable, and leads the address to it. */
  async promote(): Promise<void> {
    await until('the replica has applied what it has', async () => {
      const [status] = await this.#replica.admin('SHOW SLAVE STATUS');
      const [applied] = await this.#replica.admin('SELECT @@gtid_slave_pos AS at');
      return status?.Gtid_IO_Pos === applied?.at;
    });
    await this.#replica.admin('STOP SLAVE');
    await this.#replica.admin('RESET SLAVE ALL');
    await this.#replica.admin('SET GLOBAL read_only = OFF');
    const [host = '', port] = new URL(this.#replica.url).host.split(':');
    this.#address.target = { host, port: Number(port) };
    this.#address.reset();
    await until('we are connected to the new primary', () => this.stack.mysql.probe().then(() => true));
  }
}
