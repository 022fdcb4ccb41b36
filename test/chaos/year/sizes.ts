import type { StackControls } from '../harness/stack-controls.js';

/** Tables that hold what is open or young, and must not grow with the sales. */
export const HOT_TABLES = [
  'orders',
  'order_ranges',
  'order_metadata',
  'payments',
  'coupons',
  'outbox',
  'payment_attempts',
  'dead_letters',
  'compensation_jobs',
  'reconcile_runs',
  'reconcile_leases',
  'sale_edits',
  'worker_slots',
] as const;

/** What the servers hold at one moment. */
export interface StoreSample {
  readonly atMs: number;
  /** `used_memory`. */
  readonly redisBytes: number;
  readonly redisKeys: number;
  readonly redisConnections: number;
  readonly mysqlConnections: number;
  /** Rows; those of large tables as InnoDB estimates them. */
  readonly rows: Readonly<Partial<Record<string, number>>>;
  /** Data and indexes of all tables. */
  readonly mysqlBytes: number;
}

/** Counting millions of rows would be load of its own. */
const ESTIMATED: readonly string[] = ['orders'];

export async function sampleStores({ redis: { redis }, mysql }: StackControls): Promise<StoreSample> {
  const [clients, memory, redisKeys] = await Promise.all([redis.info('clients'), redis.info('memory'), redis.dbsize()]);
  const [threads] = await mysql.query<{ Value: string }>("SHOW GLOBAL STATUS LIKE 'Threads_connected'");
  const tables = await mysql.query<{ name: string; rows_about: number | null; bytes: string | null }>(
    'SELECT table_name AS name, table_rows AS rows_about, data_length + index_length AS bytes' +
      ' FROM information_schema.tables WHERE table_schema = DATABASE()',
  );
  const rows: Record<string, number> = {};
  for (const table of HOT_TABLES) {
    const about = tables.find(({ name }) => name === table)?.rows_about;
    rows[table] = ESTIMATED.includes(table) ? Number(about ?? 0) : await countRows(mysql, table);
  }
  return {
    atMs: Date.now(),
    redisBytes: Number(/^used_memory:(\d+)/m.exec(memory)?.[1]),
    redisKeys,
    redisConnections: Number(/^connected_clients:(\d+)/m.exec(clients)?.[1]),
    mysqlConnections: Number(threads?.Value),
    rows,
    mysqlBytes: tables.reduce((sum, { bytes }) => sum + Number(bytes ?? 0), 0),
  };
}

async function countRows(mysql: Pick<StackControls['mysql'], 'query'>, table: string): Promise<number> {
  const [row] = await mysql.query<{ count: string }>(`SELECT COUNT(*) AS count FROM ${table}`);
  return Number(row?.count);
}

/** Every table with its exact number of rows. */
export async function countAllRows({ mysql }: StackControls): Promise<Record<string, number>> {
  const tables = await mysql.query<{ name: string }>(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name',
  );
  const counts: Record<string, number> = {};
  for (const { name } of tables) counts[name] = await countRows(mysql, name);
  return counts;
}

/** The keys of Redis by what they are: `sk:{N:N}:tx` for the markers of all sales. */
export async function keysByKind({ redis }: StackControls): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  let cursor = '0';
  do {
    const [next, keys] = await redis.redis.scan(cursor, 'COUNT', 1000);
    cursor = next;
    for (const key of keys) {
      const kind = key.replace(/(:tx:).*/, '$1').replace(/\d+/g, 'N');
      counts[kind] = (counts[kind] ?? 0) + 1;
    }
  } while (cursor !== '0');
  return counts;
}
