import { createConnection } from 'mysql2/promise';
import { migrate } from '../../src/mysql/migrate.js';
import { createOutbox } from '../../src/mysql/outbox.js';
import { connectionOptions, openMysqlPool } from '../../src/mysql/pool.js';
import type { Outbox, OutboxKind, OutboxPayloads } from '../../src/core/ports/outbox.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryOutbox } from '../helpers/memory/memory-outbox.js';
import { stackEnv } from '../helpers/stack-env.js';

/** An outbox with nothing of anybody else in it. */
export interface OutboxWorld {
  readonly outbox: Outbox;
  /** As a transaction does; null for a payload that nobody can read. @returns the id of the row */
  add<K extends OutboxKind>(kind: K, payload: OutboxPayloads[K] | null): Promise<string>;
  /** Ids of all rows, oldest first. */
  rows(): Promise<string[]>;
  /** Lets time pass. */
  elapse(ms: number): Promise<void>;
  nowMs(): number;
  close(): Promise<void>;
}

/** Rows of other suites would be taken with ours, so this one has a database of its own. */
export async function mysqlOutboxWorld(): Promise<OutboxWorld> {
  const server = await createConnection({ ...connectionOptions(stackEnv().MYSQL_URL), database: undefined });
  const database = `seckill_outbox_${process.pid}`;
  await server.query(`DROP DATABASE IF EXISTS ${database}`);
  await server.query(`CREATE DATABASE ${database}`);
  const url = new URL(stackEnv().MYSQL_URL);
  url.pathname = `/${database}`;
  await migrate({ url: url.href });
  const pool = openMysqlPool({ url: url.href, poolMax: 6, queryTimeoutMs: 5000, lockWaitSeconds: 1 });
  return {
    outbox: createOutbox(pool),
    async add(kind, payload) {
      const values = [kind, 'k', payload === null ? '{broken' : JSON.stringify(payload)];
      const { insertId } = await pool.execute('INSERT INTO outbox (kind, `key`, payload) VALUES (?, ?, ?)', values);
      return insertId;
    },
    rows: async () => (await pool.query<{ id: string }>('SELECT id FROM outbox ORDER BY id')).map(({ id }) => id),
    elapse: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    nowMs: () => Date.now(),
    async close() {
      await pool.close();
      await server.query(`DROP DATABASE ${database}`);
      await server.end();
    },
  };
}

export async function memoryOutboxWorld(): Promise<OutboxWorld> {
  const clock = new ManualClock();
  const outbox = new MemoryOutbox(clock);
  return {
    outbox,
    add: async (kind, payload) => outbox.add(kind, 'k', payload),
    rows: async () => outbox.rows.map(({ id }) => id),
    elapse: (ms) => clock.sleep(ms),
    nowMs: () => clock.nowMs(),
    close: async () => undefined,
  };
}
