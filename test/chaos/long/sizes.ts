import type { StackControls } from '../harness/stack-controls.js';

/** Sales that may have rows in hot tables: those that are not over for long. */
export interface OpenSales {
  readonly sales: number;
  /** Buyers of these sales: none has a second order there. */
  readonly orders: number;
}

/**
 * Tables that hold what is open or young, with the rows that they may have. They must not grow with the sales that are
 * over; at the end of a year, when none is open, each is empty or nearly so.
 */
const ROWS_MAX = {
  orders: ({ orders }) => orders,
  order_ranges: ({ orders }) => orders, // at worst each order was written alone
  order_metadata: ({ orders }) => orders,
  order_traces: ({ orders }) => orders,
  payments: ({ orders }) => orders,
  coupons: ({ orders }) => orders,
  payment_attempts: ({ orders }) => orders,
  outbox: ({ orders }) => 3 * orders, // recorded, ended, released
  reconcile_runs: ({ sales }) => 4 * sales + 100, // after its end, before it is retired, each again after a fault
  reconcile_leases: () => 10,
  job_leases: () => 3, // watch-messages, watch-open-sales, and the test write of consumers
  dead_letters: () => 1_000,
  compensation_jobs: () => 1_000,
  sale_edits: () => 100,
  worker_slots: () => 256, // one row per slot
} as const satisfies Record<string, (open: OpenSales) => number>;

type HotTable = keyof typeof ROWS_MAX;
export const HOT_TABLES = Object.keys(ROWS_MAX) as HotTable[];

/** What is too large, a sentence each. */
export function tooManyRows(rows: Readonly<Partial<Record<string, number>>>, open: OpenSales): string[] {
  return HOT_TABLES.flatMap((table) => {
    const [has, max] = [rows[table] ?? 0, ROWS_MAX[table](open)];
    if (has <= max) return [];
    return [
      `${table} has ${has} rows; with ${open.orders} buyers of ${open.sales} sales that are not over for long, ${max} are allowed`,
    ];
  });
}

/** What the servers hold at one moment. */
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

/** Every table with its exact number of rows. */
export async function countAllRows({ mysql }: Pick<StackControls, 'mysql'>): Promise<Record<string, number>> {
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
