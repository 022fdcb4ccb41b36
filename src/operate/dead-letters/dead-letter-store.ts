import type { Knex } from 'knex';
import type { DeadLetter, DeadLetterWithBody } from '../../contract/dead-letters.js';
import { isoTime, isoTimeOrNull } from '../../contract/fields.js';
import { decodeBatch, sealBatch } from '../../core/batch.js';
import type { DeadLetterReason, DeadLetterState } from '../../core/ports/dead-letters.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { insertAudit } from '../../mysql/audit-log.js';
import { DETAIL_MAX, namedByKey, TRACED_COLUMNS, tracedOf } from '../../mysql/dead-letters.js';
import { execute, knex, now, select } from '../../mysql/knex.js';
import type { MysqlPool } from '../../mysql/pool.js';
import type { Columns, DeadLetterRow } from '../../mysql/tables.js';

/** The only parked dead letter of a batch. */
export interface ParkedBatch {
  readonly deadLetterId: string;
  readonly batchId: string;
  readonly body: string;
}

/** A dead letter in a list, without its body, which may be long. Times in Unix ms. */
export interface DeadLetterSummary extends Omit<DeadLetter, 'parkedAt' | 'replayStartedAt'> {
  readonly parkedAtMs: number;
  /** Start of the last replay. Null if there was none. While the dead letter is `parked`, that replay has not ended. */
  readonly replayStartedAtMs: number | null;
}

export interface StoredDeadLetter extends DeadLetterSummary {
  readonly body: string;
}

/** Conditions that must all hold. An absent condition matches every dead letter. */
export interface DeadLetterFilter {
  /** Matches any of these ids. There must be few of them. */
  readonly ids?: readonly string[];
  readonly group?: string;
  readonly originTopic?: string;
  readonly saleId?: string;
  readonly batchId?: string;
  /** A batch id. For a parked dead letter, also the request id of any purchase in it. */
  readonly key?: string;
  readonly reason?: DeadLetterReason;
  /** Text contained in `detail`. */
  readonly text?: string;
  readonly state?: DeadLetterState;
  /** Parked at this time or later, Unix ms. */
  readonly sinceMs?: number;
  /** Parked before this time, Unix ms. */
  readonly untilMs?: number;
  readonly replayBegun?: boolean;
}

/** Oldest first. */
export interface DeadLetterPage {
  /** Returns dead letters after this id. If absent, starts at the oldest. */
  readonly afterId?: string;
  readonly max: number;
}

/** Result of a change. Only a `parked` dead letter is changed. */
export type DeadLetterMove = 'done' | 'not_parked' | 'not_found';

/** Each change writes an audit row in its transaction. Every method throws OperationalError mysql. */
export interface DeadLetterStore {
  /** Lists batches by id, after `afterBatchId`. */
  parkedBatches(afterBatchId: string, max: number): Promise<ParkedBatch[]>;
  list(filter: DeadLetterFilter, page: DeadLetterPage): Promise<DeadLetterSummary[]>;
  count(filter: DeadLetterFilter): Promise<number>;
  find(deadLetterId: string): Promise<StoredDeadLetter | null>;
  /** Call it before publishing. The dead letter stays `parked`. */
  beginReplay(deadLetterId: string, actor: string): Promise<DeadLetterMove>;
  close(deadLetterId: string, actor: string, end: 'replayed' | 'discarded', note: string): Promise<DeadLetterMove>;
  /** Records why a replay did not finish. The dead letter stays `parked`. */
  keepParked(deadLetterId: string, actor: string, note: string): Promise<DeadLetterMove>;
}

const SUMMARY_COLUMNS = [
  ...TRACED_COLUMNS,
  'message_id',
  'origin_topic',
  'sale_id',
  'batch_id',
] as const satisfies (keyof DeadLetterRow)[];

export function createDeadLetterStore(pool: MysqlPool): DeadLetterStore {
  return {
    /** Lists parked batches by the key that contains only these. */
    async parkedBatches(afterBatchId, max) {
      const page = knex('dead_letters')
        .select('id', 'parked_batch', 'body')
        .where('parked_batch', '>', afterBatchId)
        .orderBy('parked_batch')
        .limit(max);
      return (await select(pool, page)).map(({ id, parked_batch, body }) => ({
        deadLetterId: id,
        batchId: parked_batch ?? '',
        body,
      }));
    },
    /** Lists by primary key, so that every page costs the same. */
    async list(filter, { afterId, max }) {
      let page = knex('dead_letters')
        .select(...SUMMARY_COLUMNS)
        .where(matching(filter));
      if (afterId !== undefined) page = page.where('id', '>', afterId);
      return (await select(pool, page.orderBy('id').limit(max))).map(summaryOf);
    },
    async count(filter) {
      const counted = knex('dead_letters').where(matching(filter)).count<{ n: string }[]>({ n: '*' });
      const [row] = await select(pool, counted);
      return Number(row?.n ?? 0);
    },
    async find(deadLetterId) {
      const found = knex('dead_letters')
        .select(...SUMMARY_COLUMNS, 'body')
        .where({ id: deadLetterId });
      const [row] = await select(pool, found);
      return row === undefined ? null : { ...summaryOf(row), body: row.body };
    },
    beginReplay: (deadLetterId, actor) =>
      move(pool, deadLetterId, actor, 'dead_letter.replay_begun', ({ state, replays }) => ({
        set: { replays: replays + 1, replay_started_at: now() },
        after: { state, replays: replays + 1 },
      })),
    close: (deadLetterId, actor, end, note) =>
      move(pool, deadLetterId, actor, `dead_letter.${end}`, ({ replays }) => ({
        set: { state: end, note: note.slice(0, DETAIL_MAX), parked_batch: null },
        after: { state: end, replays, note },
      })),
    keepParked: (deadLetterId, actor, note) =>
      move(pool, deadLetterId, actor, 'dead_letter.kept_parked', ({ state, replays }) => ({
        set: { note: note.slice(0, DETAIL_MAX) },
        after: { state, replays, note },
      })),
  };
}

function matching(filter: DeadLetterFilter): (where: Knex.QueryBuilder) => void {
  const { ids, group, originTopic, saleId, batchId, reason, text, state, sinceMs, untilMs, replayBegun, key } = filter;
  const names = { consumer_group: group, origin_topic: originTopic, sale_id: saleId, batch_id: batchId, reason, state };
  return (where) => {
    void where.where(withoutUndefined(names));
    if (ids !== undefined) void where.whereIn('id', ids);
    if (text !== undefined) void where.whereRaw('INSTR(detail, ?) > 0', [text]);
    if (sinceMs !== undefined) void where.where('created_at', '>=', new Date(sinceMs));
    if (untilMs !== undefined) void where.where('created_at', '<', new Date(untilMs));
    if (replayBegun === true) void where.whereNotNull('replay_started_at');
    if (replayBegun === false) void where.whereNull('replay_started_at');
    if (key !== undefined) void where.whereRaw(...namedByKey(key));
  };
}

type Before = Pick<DeadLetterRow, 'state' | 'replays' | 'note'>;

/** Locks the row first, so that a concurrent second change sees the first. @param change new values and audit entry */
async function move(
  pool: MysqlPool,
  id: string,
  actor: string,
  action: string,
  change: (before: Before) => { set: { [C in keyof DeadLetterRow]?: DeadLetterRow[C] | Knex.Raw }; after: object },
): Promise<DeadLetterMove> {
  return pool.transaction(async (tx) => {
    const locked = knex('dead_letters').select('state', 'replays', 'note').where({ id }).forUpdate();
    const [before] = await select(tx, locked);
    if (before === undefined) return 'not_found';
    if (before.state !== 'parked') return 'not_parked';
    const { set, after } = change(before);
    await execute(tx, knex('dead_letters').where({ id }).update(set));
    await insertAudit(tx, { actor, action, subject: `dead_letter:${id}`, before, after });
    return 'done';
  });
}

function summaryOf(row: Columns<DeadLetterRow, typeof SUMMARY_COLUMNS>): DeadLetterSummary {
  const { deadLetterId, group, ...traced } = tracedOf(row);
  const origin = { messageId: row.message_id, group, originTopic: row.origin_topic };
  return { deadLetterId, ...origin, saleId: row.sale_id, batchId: row.batch_id, ...traced };
}

/** Why a dead letter cannot be closed: it was closed before, or it does not exist. */
export type NotParked =
  | { readonly outcome: 'already_closed'; readonly state: DeadLetterState }
  | { readonly outcome: 'not_found' };

/** @returns null when done, or the state in which a faster operator left it. @throws OperationalError mysql */
export async function closeDeadLetter(
  deadLetterId: string,
  end: 'replayed' | 'discarded',
  note: string,
  deadLetters: DeadLetterStore,
  actor: string,
): Promise<NotParked | null> {
  if ((await deadLetters.close(deadLetterId, actor, end, note)) === 'done') return null;
  const now = await deadLetters.find(deadLetterId);
  return now === null ? { outcome: 'not_found' } : { outcome: 'already_closed', state: now.state };
}

export function summaryBody({ parkedAtMs, replayStartedAtMs, ...summary }: DeadLetterSummary): DeadLetter {
  return { ...summary, parkedAt: isoTime(parkedAtMs), replayStartedAt: isoTimeOrNull(replayStartedAtMs) };
}

/** Shows the body as it is and, for a batch, decoded. The decoded form leaves out unknown fields. */
export function deadLetterBody({ body, ...summary }: StoredDeadLetter): DeadLetterWithBody {
  const decoded = decodeBatch(body);
  const batch =
    decoded.outcome === 'decoded' ? (JSON.parse(sealBatch(decoded.batch).body) as Record<string, unknown>) : null;
  return { ...summaryBody(summary), batch, body };
}
