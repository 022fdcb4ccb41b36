import type {
  DeadLetter,
  DeadLetterRepository,
  DeadLetterFilter,
  DeadLetterPage,
  DeadLetterReason,
  DeadLetterState,
  DeadLetterSummary,
  DeadLetterMove,
  StoredDeadLetter,
} from '../core/ports/dead-letter-repository.js';
import { insertAudit } from './audit-log.js';
import { MysqlError } from './errors.js';
import type { MysqlPool, SqlValue } from './pool.js';

const NAME_MAX = 128;
const DETAIL_MAX = 1000;
/** The broker takes at most 4 MiB; of a body beyond this only the start is of use to a person. */
const BODY_MAX = 4 * 1024 * 1024;

interface DeadLetterRow {
  readonly id: string;
  readonly message_id: string;
  readonly consumer_group: string;
  readonly origin_topic: string;
  readonly sale_id: string | null;
  readonly batch_id: string | null;
  readonly reason: DeadLetterReason;
  readonly detail: string;
  readonly state: DeadLetterState;
  readonly attempts: number;
  readonly created_at: Date;
  readonly replays: number;
  readonly replay_started_at: Date | null;
  readonly note: string | null;
}

const COLUMNS =
  'id, message_id, consumer_group, origin_topic, sale_id, batch_id, reason, detail, state, attempts, created_at,' +
  ' replays, replay_started_at, note';

/** The record of dead letters, in MySQL. */
export function createDeadLetterRepository(pool: MysqlPool): DeadLetterRepository {
  return {
    park: (deadLetter) => park(pool, deadLetter),
    list: (filter, page) => list(pool, filter, page),
    count: (filter) => count(pool, filter),
    find: (deadLetterId) => find(pool, deadLetterId),
    beginReplay: (deadLetterId, actor) =>
      move(pool, deadLetterId, actor, {
        action: 'dead_letter.replay_begun',
        set: 'replays = replays + 1, replay_started_at = UTC_TIMESTAMP(3)',
        values: [],
        after: ({ state, replays }) => ({ state, replays: replays + 1 }),
      }),
    close: (deadLetterId, actor, end, note) =>
      move(pool, deadLetterId, actor, {
        action: `dead_letter.${end}`,
        set: 'state = ?, note = ?',
        values: [end, cut(note, DETAIL_MAX)],
        after: ({ replays }) => ({ state: end, replays, note }),
      }),
    keepParked: (deadLetterId, actor, note) =>
      move(pool, deadLetterId, actor, {
        action: 'dead_letter.kept_parked',
        set: 'note = ?',
        values: [cut(note, DETAIL_MAX)],
        after: ({ state, replays }) => ({ state, replays, note }),
      }),
  };
}

const cut = (text: string, max = NAME_MAX): string => text.slice(0, max);

/** Everything is cut to its column: a letter that does not fit would come back for ever. */
async function park(pool: MysqlPool, deadLetter: DeadLetter): Promise<'parked' | 'already_parked'> {
  try {
    await pool.execute(
      'INSERT INTO dead_letters' +
        ' (message_id, consumer_group, origin_topic, sale_id, batch_id, body, reason, detail, attempts)' +
        ' VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
      [
        cut(deadLetter.messageId),
        cut(deadLetter.group),
        cut(deadLetter.originTopic),
        deadLetter.saleId === null ? null : cut(deadLetter.saleId),
        deadLetter.batchId === null ? null : cut(deadLetter.batchId),
        cut(deadLetter.body, BODY_MAX),
        deadLetter.reason,
        cut(deadLetter.detail, DETAIL_MAX),
        deadLetter.attempts,
      ],
    );
    return 'parked';
  } catch (error) {
    if (error instanceof MysqlError && error.kind === 'duplicate') return 'already_parked';
    throw error;
  }
}

/** By primary key, so that a page costs the same wherever it begins. */
async function list(
  pool: MysqlPool,
  filter: DeadLetterFilter,
  { afterId, max }: DeadLetterPage,
): Promise<DeadLetterSummary[]> {
  const { sql, values } = where(filter);
  const behind = afterId === undefined ? '' : ' AND id > ?';
  const rows = await pool.query<DeadLetterRow>(
    `SELECT ${COLUMNS} FROM dead_letters WHERE ${sql}${behind} ORDER BY id LIMIT ?`,
    [...values, ...(afterId === undefined ? [] : [afterId]), max],
  );
  return rows.map(summaryOf);
}

async function count(pool: MysqlPool, filter: DeadLetterFilter): Promise<number> {
  const { sql, values } = where(filter);
  const [row] = await pool.query<{ readonly deadLetters: string | number }>(
    `SELECT COUNT(*) AS deadLetters FROM dead_letters WHERE ${sql}`,
    values,
  );
  return Number(row?.deadLetters ?? 0);
}

async function find(pool: MysqlPool, deadLetterId: string): Promise<StoredDeadLetter | null> {
  const [row] = await pool.query<DeadLetterRow & { readonly body: string }>(
    `SELECT ${COLUMNS}, body FROM dead_letters WHERE id = ?`,
    [deadLetterId],
  );
  return row === undefined ? null : { ...summaryOf(row), body: row.body };
}

function where(filter: DeadLetterFilter): { readonly sql: string; readonly values: SqlValue[] } {
  const conditions: string[] = ['TRUE'];
  const values: SqlValue[] = [];
  const add = (condition: string, ...more: SqlValue[]): void => {
    conditions.push(condition);
    values.push(...more);
  };
  if (filter.group !== undefined) add('consumer_group = ?', filter.group);
  if (filter.saleId !== undefined) add('sale_id = ?', filter.saleId);
  if (filter.batchId !== undefined) add('batch_id = ?', filter.batchId);
  if (filter.reason !== undefined) add('reason = ?', filter.reason);
  if (filter.state !== undefined) add('state = ?', filter.state);
  if (filter.sinceMs !== undefined) add('created_at >= ?', new Date(filter.sinceMs));
  if (filter.untilMs !== undefined) add('created_at < ?', new Date(filter.untilMs));
  if (filter.replayBegun !== undefined) add(`replay_started_at IS ${filter.replayBegun ? 'NOT NULL' : 'NULL'}`);
  // The middle of a triple as a batch encodes it: between two commas stands nothing but the id of a request.
  if (filter.key !== undefined) add('(batch_id = ? OR INSTR(body, ?) > 0)', filter.key, `,"${filter.key}",`);
  return { sql: conditions.join(' AND '), values };
}

type Before = Pick<DeadLetterRow, 'state' | 'replays' | 'note'>;

interface Move {
  readonly action: string;
  readonly set: string;
  readonly values: readonly SqlValue[];
  readonly after: (before: Before) => unknown;
}

/** The row is locked first: of two moves at once the second one sees what the first has made of it. */
async function move(
  pool: MysqlPool,
  deadLetterId: string,
  actor: string,
  { action, set, values, after }: Move,
): Promise<DeadLetterMove> {
  return pool.transaction(async (tx) => {
    const [before] = await tx.query<Before>('SELECT state, replays, note FROM dead_letters WHERE id = ? FOR UPDATE', [
      deadLetterId,
    ]);
    if (before === undefined) return 'not_found';
    if (before.state !== 'parked') return 'not_parked';
    await tx.execute(`UPDATE dead_letters SET ${set} WHERE id = ?`, [...values, deadLetterId]);
    await insertAudit(tx, { actor, action, subject: `dead_letter:${deadLetterId}`, before, after: after(before) });
    return 'done';
  });
}

const summaryOf = (row: DeadLetterRow): DeadLetterSummary => ({
  deadLetterId: row.id,
  messageId: row.message_id,
  group: row.consumer_group,
  originTopic: row.origin_topic,
  saleId: row.sale_id,
  batchId: row.batch_id,
  reason: row.reason,
  detail: row.detail,
  attempts: row.attempts,
  state: row.state,
  parkedAtMs: row.created_at.getTime(),
  replays: row.replays,
  replayStartedAtMs: row.replay_started_at?.getTime() ?? null,
  note: row.note,
});
