import type { DeadLetterParking, TracedDeadLetter, TracedDeadLetters } from '../core/ports/dead-letters.js';
import { withoutUndefined } from '../core/without-undefined.js';
import { MysqlError } from './errors.js';
import { execute, knex, select } from './knex.js';
import type { MysqlPool } from './pool.js';
import type { Columns, DeadLetterRow } from './tables.js';

const NAME_MAX = 128;
export const DETAIL_MAX = 1000;
/** The broker accepts at most 4 MiB. The start of a longer body is enough to help a person. */
const BODY_MAX = 4 * 1024 * 1024;

export const createDeadLetterParking = (pool: MysqlPool): DeadLetterParking => ({
  /** Cuts each text to the length of its column, because the broker would redeliver a dead letter that does not fit. */
  async park(deadLetter) {
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
  },
});

const cut = (text: string, max = NAME_MAX): string => text.slice(0, max);

/** Matches a batch id, or a request id in a parked batch. Two subqueries, because an OR would use neither index. */
const NAMED_BY_KEY = `id IN (SELECT id FROM (SELECT id FROM dead_letters WHERE batch_id = ?
  UNION SELECT id FROM dead_letters WHERE state = 'parked' AND INSTR(body, ?) > 0) AS named)`;

export const namedByKey = (key: string): [string, string[]] => [
  NAMED_BY_KEY,
  // The middle of a triple as a batch encodes it. Only the id of a request is between two commas.
  [key, `,"${key}",`],
];

export const TRACED_COLUMNS = [
  'id',
  'consumer_group',
  'reason',
  'detail',
  'attempts',
  'state',
  'created_at',
  'replays',
  'replay_started_at',
  'note',
] as const satisfies (keyof DeadLetterRow)[];

export const createTracedDeadLetters = (pool: MysqlPool): TracedDeadLetters => ({
  async list({ batchId, key, traceId }, { max }) {
    const found = knex('dead_letters')
      .select(...TRACED_COLUMNS)
      .where((where) => {
        void where.where(withoutUndefined({ batch_id: batchId }));
        if (key !== undefined) void where.whereRaw(...namedByKey(key));
        // The end of a pair as a batch encodes it. No purchase ends like this, and quotes within a text are escaped.
        if (traceId !== undefined)
          void where.where({ state: 'parked' }).whereRaw('INSTR(body, ?) > 0', [`,"${traceId}"]`]);
      });
    return (await select(pool, found.orderBy('id').limit(max))).map(tracedOf);
  },
  async find(deadLetterId) {
    const found = knex('dead_letters')
      .select(...TRACED_COLUMNS, 'body')
      .where({ id: deadLetterId });
    const [row] = await select(pool, found);
    return row === undefined ? null : { ...tracedOf(row), body: row.body };
  },
});

export const tracedOf = (row: Columns<DeadLetterRow, typeof TRACED_COLUMNS>): TracedDeadLetter => ({
  deadLetterId: row.id,
  group: row.consumer_group,
  reason: row.reason,
  detail: row.detail,
  attempts: row.attempts,
  state: row.state,
  parkedAtMs: row.created_at.getTime(),
  replays: row.replays,
  replayStartedAtMs: row.replay_started_at?.getTime() ?? null,
  note: row.note,
});
