import type { WitnessKind, WitnessState } from '../core/ports/witness.js';
import { withoutUndefined } from '../core/without-undefined.js';
import { insertAudit } from './audit-log.js';
import { bigint, execute, knex, readJson, select } from './knex.js';
import type { MysqlPool } from './pool.js';
import type { WitnessFindingRow } from './tables.js';

/** A change that no program makes. */
export interface Judged {
  readonly kind: WitnessKind;
  /** `<table>:<key>` of the row. */
  readonly subject: string;
  readonly orderId: string | null;
  readonly saleId: string | null;
  readonly detail: string;
  /** When the newest of these archived orders was made, Unix ms. A purge of older orders explains the finding. */
  readonly newestMs?: number;
}

/** A finding that is not stored yet. */
export interface Found extends Judged {
  /** Names the transaction in the binary log. */
  readonly place: string;
  /** When the transaction ended, in whole seconds. */
  readonly committedAtMs: number;
}

export interface WitnessFinding extends Omit<Found, 'newestMs'> {
  readonly findingId: string;
  readonly state: WitnessState;
}

export interface WitnessPosition {
  readonly position: string;
  /** The time of the newest event that was read, on the clock of the server that wrote it. */
  readonly readToMs: number;
  /** Rises with each save. */
  readonly version: string;
}

export type WitnessStore = ReturnType<typeof createWitnessStore>;

/** Findings of the witness, and how far it has read. */
export const createWitnessStore = (pool: MysqlPool) => ({
  async position(): Promise<(WitnessPosition & { readonly savedAtMs: number }) | null> {
    const [row] = await select(pool, knex('witness_position').where({ id: ROW }));
    if (row === undefined) return null;
    const { position, version, read_to: readTo, updated_at: savedAt } = row;
    return { position, version, readToMs: readTo.getTime(), savedAtMs: savedAt.getTime() };
  },

  save: (from: WitnessPosition | null, to: Pick<WitnessPosition, 'position' | 'readToMs'>, found: readonly Found[]) =>
    save(pool, from, to, found),

  /** Returns the time before which a purge has deleted archived orders, Unix ms. 0: never. */
  purgedBeforeMs: () => purgedBeforeMs(pool),

  async open(): Promise<number> {
    const open = knex('witness_findings').where({ state: 'open' }).select('id').limit(COUNTED_MAX);
    const [row] = await select(pool, knex.from(open.as('open')).select<{ n: string }[]>(knex.raw('COUNT(*) AS n')));
    return Number(row?.n ?? 0);
  },

  async list(
    filter: { readonly state?: WitnessState; readonly saleId?: string },
    { after, max }: { readonly after?: string; readonly max: number },
  ): Promise<WitnessFinding[]> {
    const { state, saleId } = filter;
    let page = knex('witness_findings')
      .select(...FINDING_COLUMNS)
      .where(withoutUndefined({ state, sale_id: saleId }));
    if (after !== undefined) page = page.where('id', '>', bigint(after));
    return (await select(pool, page.orderBy('id').limit(max))).map(findingOf);
  },

  close: (findingId: string, actor: string) => close(pool, findingId, actor),
});

/** The table has a single row. */
const ROW = 1;
const COUNTED_MAX = 10_000;
/** Characters of the column. */
const DETAIL_MAX = 1000;
const PURGES_READ = 100;

export const FINDING_COLUMNS = [
  'id',
  'kind',
  'subject',
  'order_id',
  'sale_id',
  'detail',
  'place',
  'committed_at',
  'state',
] as const satisfies (keyof WitnessFindingRow)[];

/**
 * Stores findings and how far the log was read, in one transaction: after a kill nothing is missing, and nothing is found
 * twice.
 * @returns the new position. Null: another keeper has read on from `from`, so nothing was stored
 */
function save(
  pool: MysqlPool,
  from: WitnessPosition | null,
  { position, readToMs }: Pick<WitnessPosition, 'position' | 'readToMs'>,
  found: readonly Found[],
): Promise<WitnessPosition | null> {
  const version = String(BigInt(from?.version ?? 0) + 1n);
  return pool.transaction(async (tx) => {
    const row = { position, read_to: new Date(readToMs), version };
    const stored = knex('witness_position');
    const first = stored.clone().insert({ id: ROW, ...row });
    const moved =
      from === null ? first.onConflict().ignore() : stored.where({ id: ROW, version: from.version }).update(row);
    if ((await execute(tx, moved)).affectedRows === 0) return null;
    for (const { place, kind, subject, orderId, saleId, detail, committedAtMs } of found) {
      const ids = { order_id: orderId, sale_id: saleId };
      const text = { place, kind, subject, detail: detail.slice(0, DETAIL_MAX) };
      const finding = { ...text, ...ids, committed_at: new Date(committedAtMs) };
      await execute(tx, knex('witness_findings').insert(finding).onConflict().ignore());
    }
    return { position, readToMs, version };
  });
}

async function purgedBeforeMs(pool: MysqlPool): Promise<number> {
  const purges = knex('audit_log').select('after_json').where({ action: 'data.purged' });
  const times = (await select(pool, purges.orderBy('id', 'desc').limit(PURGES_READ))).map(({ after_json: json }) => {
    const { before, kinds } = (readJson(json) ?? {}) as { readonly before?: unknown; readonly kinds?: unknown };
    return Array.isArray(kinds) && kinds.includes('archive') ? Date.parse(String(before)) || 0 : 0;
  });
  return Math.max(0, ...times);
}

/** Closes a finding. @returns null if there is no such finding */
function close(pool: MysqlPool, findingId: string, actor: string): Promise<WitnessFinding | null> {
  const ofId = knex('witness_findings')
    .select(...FINDING_COLUMNS)
    .where({ id: bigint(findingId) as never });
  return pool.transaction(async (tx) => {
    const [row] = await select(tx, ofId.forUpdate());
    if (row === undefined) return null;
    if (row.state === 'closed') return findingOf(row);
    await execute(tx, knex('witness_findings').where({ id: row.id }).update({ state: 'closed' }));
    const { kind, subject, detail } = row;
    const entry = { before: { state: row.state }, after: { state: 'closed', kind, subject, detail } };
    await insertAudit(tx, { actor, action: 'witness_finding.closed', subject: `witness_finding:${row.id}`, ...entry });
    return findingOf({ ...row, state: 'closed' });
  });
}

export const findingOf = (row: Pick<WitnessFindingRow, (typeof FINDING_COLUMNS)[number]>): WitnessFinding => ({
  findingId: row.id,
  kind: row.kind,
  subject: row.subject,
  orderId: row.order_id,
  saleId: row.sale_id,
  detail: row.detail,
  place: row.place,
  committedAtMs: row.committed_at.getTime(),
  state: row.state,
});
