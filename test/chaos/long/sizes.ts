import type { StackControls } from '../harness/stack-controls.js';

/** Sales that may have rows in hot tables. */
export interface OpenSales {
  readonly sales: number;
  /** Buyers of these sales. Each has at most one order. */
  readonly orders: number;
}

/**
 * Maximum number of rows in tables of open or recent data, which must not grow with closed sales. At the end of a run
 * they are almost empty.
 */
const ROWS_MAX = {
  orders: ({ orders }) => orders,
  order_ranges: ({ orders }) => orders, // in the worst case each order was inserted alone
  order_metadata: ({ orders }) => orders,
  order_traces: ({ orders }) => orders,
  payments: ({ orders }) => orders,
  coupons: ({ orders }) => orders,
  payment_attempts: ({ orders }) => orders,
  outbox: ({ orders }) => 3 * orders, // recorded, ended, released
  // after the end of a sale, before its retirement, and again after a fault
  reconcile_runs: ({ sales }) => 4 * sales + 100,
  reconcile_leases: () => 10,
  job_leases: () => 3, // watch-messages, watch-open-sales, and the test write of consumers
  dead_letters: () => 1_000,
  compensation_jobs: () => 1_000,
  sale_edits: () => 100,
  worker_slots: () => 256, // one row per slot
} as const satisfies Record<string, (open: OpenSales) => number>;

type HotTable = keyof typeof ROWS_MAX;
export const HOT_TABLES = Object.keys(ROWS_MAX) as HotTable[];

/** Returns a sentence for each table that is too large. */
export function tooManyRows(rows: Readonly<Partial<Record<string, number>>>, open: OpenSales): string[] {
  return HOT_TABLES.flatMap((table) => {
    const [has, max] = [rows[table] ?? 0, ROWS_MAX[table](open)];
    if (has <= max) return [];
    return [
      `${table} has ${has} rows; with ${open.orders} buyers of ${open.sales} open or young sales ${max} are allowed`,
    ];
  });
}

/** The sizes of Redis and MySQL at one moment. */
export interface StoreSample {
  readonly atMs: number;
  /** `used_memory`. */
  readonly redisBytes: number;
  readonly redisKeys: number;
  readonly redisConnections: number;
  readonly mysqlConnections: number;
  /** Rows of hot tables. */
  readonly rows: Readonly<Partial<Record<string, number>>>;
  /** Data and indexes of all tables. */
  readonly mysqlBytes: number;
}

export async function sampleStores({ redis: { redis }, mysql }: StackControls): Promise<StoreSample> {
  const [clients, memory, redisKeys] = await Promise.all([redis.info('clients'), redis.info('memory'), redis.dbsize()]);
  const [threads] = await mysql.query<{ Value: string }>("SHOW GLOBAL STATUS LIKE 'Threads_connected'");
  const [size] = await mysql.query<{ bytes: string }>(
    'SELECT SUM(data_length + index_length) AS bytes FROM information_schema.tables WHERE table_schema = DATABASE()',
  );
  const rows: Record<string, number> = {};
  for (const table of HOT_TABLES) rows[table] = await countRows(mysql, table);
  return {
    atMs: Date.now(),
    redisBytes: Number(/^used_memory:(\d+)/m.exec(memory)?.[1]),
    redisKeys,
    redisConnections: Number(/^connected_clients:(\d+)/m.exec(clients)?.[1]),
    mysqlConnections: Number(threads?.Value),
    rows,
    mysqlBytes: Number(size?.bytes),
  };
}

async function countRows(mysql: Pick<StackControls['mysql'], 'query'>, table: string): Promise<number> {
  const [row] = await mysql.query<{ count: string }>(`SELECT COUNT(*) AS count FROM ${table}`);
  return Number(row?.count);
}

/** Counts the rows of every table. */
export async function countAllRows({ mysql }: Pick<StackControls, 'mysql'>): Promise<Record<string, number>> {
  const tables = await mysql.query<{ name: string }>(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name',
  );
  const counts: Record<string, number> = {};
  for (const { name } of tables) counts[name] = await countRows(mysql, name);
  return counts;
}

/** Counts the keys of Redis by kind, such as `sk:{N:N}:tx` for the markers of all sales. */
export async function keysByKind({ redis }: StackControls): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  let cursor = '0';
  do {
    const [next, keys] = await redis.redis.scan(cursor, 'COUNT', 1000);
    cursor = next;
    for (const key of keys) {
      const kind = key
        .replace(/(:tx:).*/, '$1')
        .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
        .replace(/\d+/g, 'N');
      counts[kind] = (counts[kind] ?? 0) + 1;
    }
  } while (cursor !== '0');
  return counts;
}
