import type { WitnessKind, WitnessState } from '../core/ports/witness.js';
import { withoutUndefined } from '../core/without-undefined.js';
import { insertAudit } from './audit-log.js';
import { bigint, execute, knex, readJson, select } from './knex.js';
import type { MysqlPool, Transaction } from './pool.js';
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

  /**
   * Stores findings and how far the log was read, in one transaction: so after a kill nothing is missing or found
   * twice.
   * @returns the new position. Null: another keeper has read on from `from`, so nothing was stored
   */
  save(
    from: WitnessPosition | null,
    { position, readToMs }: Omit<WitnessPosition, 'version'>,
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
  },

  /** Returns the time before which a purge has deleted archived orders, Unix ms. 0: never. */
  async purgedBeforeMs(): Promise<number> {
    const purges = knex('audit_log').select('after_json').where({ action: 'data.purged' });
    const rows = await select(pool, purges.orderBy('id', 'desc').limit(PURGES_READ));
    const times = rows.map(({ after_json: json }) => {
      const { before, kinds } = (readJson(json) ?? {}) as { readonly before?: unknown; readonly kinds?: unknown };
      return Array.isArray(kinds) && kinds.includes('archive') ? Date.parse(String(before)) || 0 : 0;
    });
    return Math.max(0, ...times);
  },

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
    let page = knex('witness_findings').where(withoutUndefined({ state, sale_id: saleId }));
    if (after !== undefined) page = page.where('id', '>', bigint(after));
    return (await select(pool, page.orderBy('id').limit(max))).map(findingOf);
  },

  /** Closes a finding. @returns null if there is no such finding */
  close: (findingId: string, actor: string): Promise<WitnessFinding | null> =>
    pool.transaction(async (tx) => {
      const ofId = knex('witness_findings').whereRaw('id = ?', [bigint(findingId)]);
      const [row] = await select(tx, ofId.forUpdate());
      if (row === undefined) return null;
      const found = findingOf(row);
      if (row.state === 'open') await closeIn(tx, found, actor, 'closed');
      return { ...found, state: 'closed' };
    }),
});

/** Closes an open finding, with its entry in the audit log. @param did what else the entry says */
export async function closeIn(
  tx: Transaction,
  { findingId, kind, subject, detail }: WitnessFinding,
  actor: string,
  verb: 'closed' | 'resolved',
  did: object = {},
): Promise<void> {
  await execute(tx, knex('witness_findings').where({ id: findingId }).update({ state: 'closed' }));
  const entry = { actor, action: `witness_finding.${verb}`, subject: `witness_finding:${findingId}` };
  const after = { state: 'closed', kind, subject, detail, ...did };
  await insertAudit(tx, { ...entry, before: { state: 'open' }, after });
}

/** The table has a single row. */
const ROW = 1;
const COUNTED_MAX = 10_000;
/** Characters of the column. */
const DETAIL_MAX = 1000;
const PURGES_READ = 100;

export const findingOf = (row: WitnessFindingRow): WitnessFinding => ({
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
