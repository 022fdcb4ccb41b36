import type { OutboxKind } from '../../../src/core/ports/outbox.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import { changeByHand } from './change-by-hand.js';
import type { StackControls } from './stack-controls.js';

// Reads a sale in Redis and MySQL, and plants orders in MySQL.

type Mysql = Pick<StackControls, 'mysql'>;
type Audit = Pick<StackControls, 'audit'>;

/** NaN while the bucket is not loaded. */
export async function unitsLeftOf({ audit }: Audit, saleId: string, bucket = 0): Promise<number> {
  return (await audit.store.snapshot({ saleId, bucket }))?.unitsLeft ?? Number.NaN;
}

/** Returns ids of batches that Redis holds and that are not recorded. */
export async function pendingBatchesOf({ audit }: Audit, saleId: string): Promise<readonly string[]> {
  return (await audit.store.snapshot({ saleId, bucket: 0 }))?.pending ?? [];
}

export const pendingCountOf = ({ audit }: Audit, saleId: string): Promise<number> =>
  audit.store.pendingCount({ saleId, bucket: 0 });

/** Waits until every batch that Redis held is recorded. */
export const isRecorded = async (stack: Audit, saleId: string): Promise<boolean> =>
  (await pendingCountOf(stack, saleId)) === 0;

/** Returns the state of the purchase `k1` of a buyer in Redis: `held`, `ordered` or `released`. */
export async function requestStateOf({ audit }: Audit, saleId: string, userId: string): Promise<string | undefined> {
  return (await audit.store.snapshot({ saleId, bucket: 0 }))?.requests.get(`${userId}/k1`)?.state;
}

/** Batch id → `deducted`, `aborted` or `claimed`. */
export type Markers = ReadonlyMap<string, string>;

/** Reads the markers of every batch of a sale that Redis knows. */
export async function markersOf({ redis: { redis } }: Pick<StackControls, 'redis'>, saleId: string): Promise<Markers> {
  const { tx } = bucketKeys({ saleId, bucket: 0 });
  const markers = new Map<string, string>();
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `${tx}*`, 'COUNT', 1000);
    cursor = next;
    for (const key of keys) {
      markers.set(key.slice(tx.length), /^[a-z]+/.exec((await redis.get(key)) ?? '')?.[0] ?? 'gone');
    }
  } while (cursor !== '0');
  return markers;
}

/** Ids of batches whose marker says `aborted`. */
export async function abortedBatchesOf(stack: Pick<StackControls, 'redis'>, saleId: string): Promise<string[]> {
  return [...(await markersOf(stack, saleId))].flatMap(([batchId, marker]) => (marker === 'aborted' ? [batchId] : []));
}

/** Counts the rows of a sale, or of some of its buyers, including failed rows. */
export async function rowsOf({ mysql }: Mysql, saleId: string, userIds?: readonly string[]): Promise<number> {
  const sql = 'SELECT COUNT(*) AS `rows` FROM orders WHERE sale_id = ?';
  const [row] = await (userIds === undefined
    ? mysql.query<{ rows: string }>(sql, [saleId])
    : mysql.query<{ rows: string }>(`${sql} AND user_id IN (?)`, [saleId, userIds]));
  return Number(row?.rows);
}

export async function batchesWithRows({ mysql }: Mysql, saleId: string): Promise<string[]> {
  const sql = 'SELECT DISTINCT batch_id FROM orders WHERE sale_id = ?';
  return (await mysql.query<{ batch_id: string }>(sql, [saleId])).map(({ batch_id: batchId }) => batchId);
}

export async function statesOf({ mysql }: Mysql, saleId: string): Promise<Record<string, number>> {
  const sql = 'SELECT state, COUNT(*) AS orders FROM orders WHERE sale_id = ? GROUP BY state';
  const rows = await mysql.query<{ state: string; orders: string }>(sql, [saleId]);
  return Object.fromEntries(rows.map(({ state, orders }) => [state, Number(orders)]));
}

export async function deadLettersOf({ mysql }: Mysql, saleId: string): Promise<number> {
  return (await mysql.query('SELECT id FROM dead_letters WHERE sale_id = ?', [saleId])).length;
}

/** Returns the maximum number of outbox rows of a batch. 1 means that each batch was recorded once. */
export async function recordedTimes({ mysql }: Mysql, saleId: string): Promise<number> {
  const rows = await mysql.query<{ copies: string }>(
    "SELECT COUNT(*) AS copies FROM outbox WHERE kind = 'batch_recorded' AND payload LIKE ? GROUP BY `key`",
    [`%"saleId":"${saleId}"%`],
  );
  return Math.max(0, ...rows.map(({ copies }) => Number(copies)));
}

/** Returns the sorted ids of orders whose units the outbox gives back, one entry per outbox row. */
export async function promisedReleasesOf({ mysql }: Mysql, saleId: string): Promise<string[]> {
  const sql = "SELECT payload FROM outbox WHERE kind = 'release' AND payload LIKE ?";
  const rows = await mysql.query<{ payload: string }>(sql, [`%"saleId":"${saleId}"%`]);
  return rows
    .flatMap(({ payload }) => (JSON.parse(payload) as { orderId: string }[]).map(({ orderId }) => orderId))
    .sort();
}

/** Counts outbox rows of one kind and sale that are not done. */
export async function pendingOutboxRows({ mysql }: Mysql, kind: OutboxKind, saleId: string): Promise<number> {
  const [row] = await mysql.query<{ rows: string }>(
    'SELECT COUNT(*) AS `rows` FROM outbox WHERE kind = ? AND done_at IS NULL AND payload LIKE ?',
    [kind, `%"saleId":"${saleId}"%`],
  );
  return Number(row?.rows);
}

/**
 * Counts work that earlier scenarios left for a keeper: outbox rows, and unpaid orders past their deadline. Ignores
 * outbox rows with three or more attempts, because a test planted them and they cannot succeed.
 */
export async function keeperWorkLeft({ mysql }: Mysql): Promise<number> {
  const [row] = await mysql.query<{ readonly work: string }>(
    `SELECT (SELECT COUNT(*) FROM outbox WHERE done_at IS NULL AND attempts < 3)
          + (SELECT COUNT(*) FROM orders WHERE state = 'pending_payment' AND expires_at <= UTC_TIMESTAMP(3)) AS work`,
  );
  return Number(row?.work);
}

const PLANTED_BATCH = 'by-hand';

/** Plants a live order that only MySQL knows and counts. Use it once per sale. */
export function plantOrder(stack: StackControls, saleId: string, userId: string): Promise<void> {
  return changeByHand(stack, [
    [
      'INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer)' +
        ' VALUES (? * 1000 + 1, ?, ?, ?, ?, 1, 1, 1)',
      [saleId, saleId, userId, PLANTED_BATCH, PLANTED_BATCH],
    ],
    ['UPDATE sales SET sold = sold + 1 WHERE id = ?', [saleId]],
  ]);
}

/** Ends the planted order, so that Redis and MySQL agree. */
export function cancelPlanted(stack: StackControls, saleId: string): Promise<void> {
  return changeByHand(stack, [
    ["UPDATE orders SET state = 'cancelled' WHERE sale_id = ? AND batch_id = ?", [saleId, PLANTED_BATCH]],
    ['UPDATE sales SET sold = sold - 1 WHERE id = ?', [saleId]],
  ]);
}
