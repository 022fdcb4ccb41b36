import {
  OUTBOX_KINDS,
  type Outbox,
  type OutboxKind,
  type OutboxPayloads,
  type OutboxRow,
} from '../core/ports/outbox.js';
import { ageOf, execute, inMs, knex, select, waitOver } from './knex.js';
import type { MysqlPool } from './pool.js';
import type { OutboxTableRow } from './tables.js';

/** Longest pause of failed rows: twice the pause of the relay. */
export const OUTBOX_PAUSE_MAX_MS = 60_000;

/** Written as SQL, because every order passes here, and a built list of ids would cost more than sending it. */
const MARK_DONE = 'UPDATE outbox SET done_at = UTC_TIMESTAMP(3) WHERE id IN (?) AND done_at IS NULL';
/** Written as SQL, because the builder has no DELETE … ORDER BY. `kind` lets it use the index `due_at`. */
const REMOVE_DONE = `DELETE FROM outbox WHERE kind = :kind AND done_at < UTC_TIMESTAMP(3) - INTERVAL :us MICROSECOND
  ORDER BY done_at LIMIT :max`;

/** The outbox in MySQL, whose clock decides which rows are due. */
export function createOutbox(pool: MysqlPool): Outbox {
  return {
    lease: (kind, max, leaseMs) => lease(pool, kind, max, leaseMs),
    async markDone(outboxIds): Promise<void> {
      if (outboxIds.length > 0) await pool.execute(MARK_DONE, [outboxIds]);
    },
    async postpone(outboxIds, delayMs): Promise<void> {
      if (outboxIds.length === 0) return;
      const undone = knex('outbox').whereIn('id', outboxIds).whereNull('done_at');
      await execute(pool, undone.update({ available_at: inMs(delayMs) }));
    },
    async giveBack(outboxIds, delayMs): Promise<void> {
      if (outboxIds.length === 0) return;
      const undone = knex('outbox').whereIn('id', outboxIds).whereNull('done_at');
      await execute(pool, undone.update({ available_at: inMs(delayMs), attempts: knex.raw('attempts - 1') }));
    },
    /** Needs only the index `due_at` and one row per kind. */
    async backlog() {
      const counted = knex('outbox')
        .select<{ kind: OutboxKind; undone: string; first: string }[]>(
          'kind',
          knex.raw('COUNT(*) AS undone, MIN(id) AS first'),
        )
        .whereIn('kind', OUTBOX_KINDS)
        .whereNull('done_at')
        .groupBy('kind');
      const counts = await select(pool, counted);
      const ages = new Map<string, number>();
      if (counts.length > 0) {
        const firstIds = counts.map(({ first }) => first);
        const firsts = knex('outbox')
          .whereIn('id', firstIds)
          .select<{ id: string; age_us: string }[]>('id', ageOf('created_at'));
        for (const { id, age_us } of await select(pool, firsts)) ages.set(id, Number(age_us) / 1000);
      }
      return OUTBOX_KINDS.map((kind) => {
        const count = counts.find((one) => one.kind === kind);
        if (count === undefined) return { kind, undone: 0, oldestMs: 0 };
        return { kind, undone: Number(count.undone), oldestMs: ages.get(count.first) ?? 0 };
      });
    },
    async removeDone(olderThanMs, max): Promise<number> {
      let removed = 0;
      for (const kind of OUTBOX_KINDS) {
        removed += (await execute(pool, knex.raw(REMOVE_DONE, { kind, us: olderThanMs * 1000, max }))).affectedRows;
      }
      return removed;
    },
  };
}

/**
 * Leases due rows in order through the index `due_at`, which skips done and waiting rows. The lock lasts for these two
 * statements. The lease in `available_at` covers the work. Skips rows that another keeper is leasing. Hot, so the SQL
 * is written by hand.
 */
function lease<K extends OutboxKind>(pool: MysqlPool, kind: K, max: number, leaseMs: number): Promise<OutboxRow<K>[]> {
  return pool.transaction(async (tx) => {
    const rows = await tx.query<Pick<OutboxTableRow, 'id' | 'payload' | 'attempts' | 'created_at'>>(
      'SELECT id, payload, attempts, created_at FROM outbox' +
        ` WHERE kind = ? AND done_at IS NULL AND ${waitOver('available_at', Math.max(leaseMs, OUTBOX_PAUSE_MAX_MS))}` +
        ' ORDER BY available_at, id LIMIT ? FOR UPDATE SKIP LOCKED',
      [kind, max],
    );
    if (rows.length === 0) return [];
    await tx.execute(
      'UPDATE outbox SET attempts = attempts + 1, available_at = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND' +
        ' WHERE id IN (?)',
      [leaseMs * 1000, rows.map(({ id }) => id)],
    );
    return rows.map(({ id, payload, attempts, created_at: createdAt }) => ({
      outboxId: id,
      kind,
      attempts: attempts + 1,
      createdAtMs: createdAt.getTime(),
      payload: readPayload(kind, payload),
    }));
  });
}

/** The lists that each kind of payload must have. A row without such a list must not reach the code that reads it. */
const LISTS = { batch_recorded: ['orders', 'failed'], orders_moved: ['orders'] } as const;

/** Reads a payload. We wrote it, so little is checked, but a row that was damaged by hand must not stop the others. */
function readPayload<K extends OutboxKind>(kind: K, payload: string): OutboxPayloads[K] | null {
  try {
    const value: unknown = JSON.parse(payload);
    return isPayload(kind, value) ? (value as OutboxPayloads[K]) : null;
  } catch {
    return null;
  }
}

function isPayload(kind: OutboxKind, value: unknown): boolean {
  if (kind === 'release') return Array.isArray(value) && value.every(isOfSale);
  return isOfSale(value) && LISTS[kind].every((name) => Array.isArray(value[name]));
}

const isOfSale = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && 'saleId' in value && typeof value.saleId === 'string';
