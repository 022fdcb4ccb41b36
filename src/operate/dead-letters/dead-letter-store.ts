import type { Knex } from 'knex';
import type {
  DeadLetter,
  DeadLetterRepository,
  DeadLetterFilter,
  DeadLetterPage,
  DeadLetterSummary,
  DeadLetterMove,
  ParkedBatch,
  StoredDeadLetter,
} from '../../core/ports/dead-letters.js';
import { insertAudit } from '../../mysql/audit-log.js';
import { MysqlError } from '../../mysql/errors.js';
import { execute, knex, now, select } from '../../mysql/knex.js';
import type { MysqlPool } from '../../mysql/pool.js';
import type { DeadLetterRow } from '../../mysql/tables.js';
import { withoutUndefined } from '../../core/without-undefined.js';

const NAME_MAX = 128;
const DETAIL_MAX = 1000;
/** Limit of a stored body. The broker takes at most 4 MiB. Of a longer body only the start helps a person. */
const BODY_MAX = 4 * 1024 * 1024;

/** Without the body, which may be long. */
const SUMMARY_COLUMNS = [
  'id',
  'message_id',
  'consumer_group',
  'origin_topic',
  'sale_id',
  'batch_id',
  'reason',
  'detail',
  'state',
  'attempts',
  'created_at',
  'replays',
  'replay_started_at',
  'note',
] as const satisfies (keyof DeadLetterRow)[];
type SummaryRow = Pick<DeadLetterRow, (typeof SUMMARY_COLUMNS)[number]>;

/** Dead letters in MySQL. */
export function createDeadLetterRepository(pool: MysqlPool): DeadLetterRepository {
  return {
    park: (deadLetter) => park(pool, deadLetter),
    parkedBatches: (afterBatchId, max) => parkedBatches(pool, afterBatchId, max),
    list: (filter, page) => list(pool, filter, page),
    count: (filter) => count(pool, filter),
    find: (deadLetterId) => find(pool, deadLetterId),
    beginReplay: (deadLetterId, actor) =>
      move(pool, deadLetterId, actor, 'dead_letter.replay_begun', ({ state, replays }) => ({
        set: { replays: replays + 1, replay_started_at: now() },
        after: { state, replays: replays + 1 },
      })),
    close: (deadLetterId, actor, end, note) =>
      move(pool, deadLetterId, actor, `dead_letter.${end}`, ({ replays }) => ({
        set: { state: end, note: cut(note, DETAIL_MAX), parked_batch: null },
        after: { state: end, replays, note },
      })),
    keepParked: (deadLetterId, actor, note) =>
      move(pool, deadLetterId, actor, 'dead_letter.kept_parked', ({ state, replays }) => ({
        set: { note: cut(note, DETAIL_MAX) },
        after: { state, replays, note },
      })),
  };
}

const cut = (text: string, max = NAME_MAX): string => text.slice(0, max);

/**
 * Parks a dead letter, every text cut to its column: a dead letter that does not fit would be delivered again and
 * again.
 */
async function park(pool: MysqlPool, deadLetter: DeadLetter): Promise<'parked' | 'already_parked'> {
  const row = {
    message_id: cut(deadLetter.messageId),
    consumer_group: cut(deadLetter.group),
    origin_topic: cut(deadLetter.originTopic),
    sale_id: deadLetter.saleId === null ? null : cut(deadLetter.saleId),
    batch_id: deadLetter.batchId === null ? null : cut(deadLetter.batchId),
    parked_batch: deadLetter.isBatch === true ? deadLetter.batchId : null,
    body: cut(deadLetter.body, BODY_MAX),
    reason: deadLetter.reason,
    detail: cut(deadLetter.detail, DETAIL_MAX),
    attempts: deadLetter.attempts,
  };
  try {
    await execute(pool, knex('dead_letters').insert(row));
    return 'parked';
  } catch (error) {
    if (error instanceof MysqlError && error.kind === 'duplicate') return 'already_parked';
    throw error;
  }
}

/** Lists parked batches by the key that holds only these. */
async function parkedBatches(pool: MysqlPool, afterBatchId: string, max: number): Promise<ParkedBatch[]> {
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
}

/** Lists by primary key, so that every page costs the same. */
async function list(
  pool: MysqlPool,
  filter: DeadLetterFilter,
  { afterId, max }: DeadLetterPage,
): Promise<DeadLetterSummary[]> {
  let page = knex('dead_letters')
    .select(...SUMMARY_COLUMNS)
    .where(matching(filter));
  if (afterId !== undefined) page = page.where('id', '>', afterId);
  return (await select(pool, page.orderBy('id').limit(max))).map(summaryOf);
}

async function count(pool: MysqlPool, filter: DeadLetterFilter): Promise<number> {
  const counted = knex('dead_letters').where(matching(filter)).count<{ n: string }[]>({ n: '*' });
  const [row] = await select(pool, counted);
  return Number(row?.n ?? 0);
}

async function find(pool: MysqlPool, deadLetterId: string): Promise<StoredDeadLetter | null> {
  const found = knex('dead_letters')
    .select(...SUMMARY_COLUMNS, 'body')
    .where({ id: deadLetterId });
  const [row] = await select(pool, found);
  return row === undefined ? null : { ...summaryOf(row), body: row.body };
}

/**
 * Two subqueries, each with its own index: an OR would use neither. Bodies are read only of parked dead letters, which
 * are few.
 */
const NAMED_BY_KEY = `id IN (SELECT id FROM (SELECT id FROM dead_letters WHERE batch_id = ?
  UNION SELECT id FROM dead_letters WHERE state = 'parked' AND INSTR(body, ?) > 0) AS named)`;

function matching(filter: DeadLetterFilter): (where: Knex.QueryBuilder) => void {
  const { ids, group, originTopic, saleId, batchId, reason, text, state, sinceMs, untilMs, replayBegun, key } = filter;
  const { traceId } = filter;
  const names = { consumer_group: group, origin_topic: originTopic, sale_id: saleId, batch_id: batchId, reason, state };
  return (where) => {
    void where.where(withoutUndefined(names));
    if (ids !== undefined) void where.whereIn('id', ids);
    if (text !== undefined) void where.whereRaw('INSTR(detail, ?) > 0', [text]);
    if (sinceMs !== undefined) void where.where('created_at', '>=', new Date(sinceMs));
    if (untilMs !== undefined) void where.where('created_at', '<', new Date(untilMs));
    if (replayBegun === true) void where.whereNotNull('replay_started_at');
    if (replayBegun === false) void where.whereNull('replay_started_at');
    // The middle of a triple as a batch encodes it: only the id of a request is between two commas.
    if (key !== undefined) void where.whereRaw(NAMED_BY_KEY, [key, `,"${key}",`]);
    // The end of a pair as a batch encodes it: no purchase ends like this, and in a text the quotes are escaped.
    if (traceId !== undefined) void where.where({ state: 'parked' }).whereRaw('INSTR(body, ?) > 0', [`,"${traceId}"]`]);
  };
}

type Before = Pick<DeadLetterRow, 'state' | 'replays' | 'note'>;

/**
 * Changes a parked dead letter. The row is locked first: of two moves at once, the second sees the result of the first.
 * @param change the new values, and the audit entry
 */
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

const summaryOf = (row: SummaryRow): DeadLetterSummary => ({
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
