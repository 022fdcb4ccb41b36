import type { CompensatedKind } from '../core/sale-finding.js';
import {
  JOB_STATES,
  type Added,
  type Claim,
  type CompensationRepository,
  type CompensationJob,
  type JobEnd,
  type JobFilter,
  type JobPage,
  type JobState,
  type NewCompensationJob,
  type Retried,
} from '../core/ports/compensation-repository.js';
import { insertAudit } from './audit-log.js';
import type { MysqlPool, SqlValue, Transaction } from './pool.js';

const TEXT_MAX = 1000;
const cut = (text: string): string => text.slice(0, TEXT_MAX);

interface JobRow {
  readonly id: string;
  readonly kind: CompensatedKind;
  readonly subject: string;
  readonly sale_id: string;
  readonly batch_id: string | null;
  readonly user_id: string | null;
  readonly request_id: string | null;
  readonly detail: string;
  readonly state: JobState;
  readonly attempts: number;
  readonly available_at: Date;
  readonly last_error: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const COLUMNS =
  'id, kind, subject, sale_id, batch_id, user_id, request_id, detail, state, attempts, available_at, last_error,' +
  ' created_at, updated_at';

/** The repairs that were ordered, in MySQL. Its clock says what is due. */
export function createCompensationRepository(pool: MysqlPool): CompensationRepository {
  const select = async (where: string, values: readonly SqlValue[]): Promise<CompensationJob[]> =>
    (await pool.query<JobRow>(`SELECT ${COLUMNS} FROM compensation_jobs WHERE ${where}`, values)).map(jobOf);
  return {
    async add(jobs, actor): Promise<Added[]> {
      const words: Added[] = [];
      for (const job of jobs) words.push(await pool.transaction((tx) => addOne(tx, job, actor)));
      return words;
    },
    list: (filter, page) => select(...conditions(filter, page)),
    find: async (jobId) => (await select('id = ?', [jobId]))[0] ?? null,
    byRequest: (saleId, userId, requestId) => select('subject = ? ORDER BY id', [`${saleId}/${userId}/${requestId}`]),
    byBatch: (batchId) => select('batch_id = ? ORDER BY id', [batchId]),
    counts: () => counts(pool),
    claim: (claim) => pool.transaction((tx) => claimDue(tx, claim)),
    done: (jobId, actor, note) => end(pool, jobId, actor, 'compensated', note),
    failed: (jobId, actor, error) => end(pool, jobId, actor, 'failed_final', error),
    async postpone(jobId, delayMs, error, attempt): Promise<void> {
      await pool.execute(
        'UPDATE compensation_jobs SET available_at = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND, last_error = ?,' +
          " attempts = attempts + ? WHERE id = ? AND state = 'pending'",
        [Math.round(delayMs * 1000), cut(error), attempt === 'counts' ? 1 : 0, jobId],
      );
    },
    retry: (jobId, actor) => pool.transaction((tx) => retry(tx, jobId, actor)),
    announce: (jobId, actor, action, before, after) =>
      pool.transaction((tx) => insertAudit(tx, { actor, action, subject: subjectOf(jobId), before, after })),
  };
}

const subjectOf = (jobId: string): string => `compensation_job:${jobId}`;

type Before = Pick<JobRow, 'kind' | 'state' | 'attempts'>;

/** The row is locked first: of two moves at once the second one sees what the first has made of it. */
async function lock(tx: Transaction, jobId: string): Promise<Before | undefined> {
  const [row] = await tx.query<Before>('SELECT kind, state, attempts FROM compensation_jobs WHERE id = ? FOR UPDATE', [
    jobId,
  ]);
  return row;
}

/** Of two that add the same subject at once the second waits for the first: the update, which changes nothing, locks. */
async function addOne(tx: Transaction, job: NewCompensationJob, actor: string): Promise<Added> {
  const { kind, subject, saleId, batchId, userId, requestId, detail } = job;
  const { affectedRows, insertId } = await tx.execute(
    'INSERT INTO compensation_jobs (kind, subject, sale_id, batch_id, user_id, request_id, detail)' +
      ' VALUES (?, ?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE subject = VALUES(subject)',
    [kind, subject, saleId, batchId, userId, requestId, cut(detail)],
  );
  const audit = (jobId: string, before: unknown, action: string): Promise<void> =>
    insertAudit(tx, { actor, action, subject: subjectOf(jobId), before, after: { state: 'pending', detail } });
  if (affectedRows === 1) {
    await audit(insertId, null, 'compensation.added');
    return 'added';
  }
  const [before] = await tx.query<Before & { readonly id: string }>(
    'SELECT id, kind, state, attempts FROM compensation_jobs WHERE subject = ? AND kind = ? FOR UPDATE',
    [subject, kind],
  );
  if (before === undefined || before.state === 'pending') return 'already_pending';
  if (before.state === 'failed_final') return 'failed_final';
  await tx.execute(
    "UPDATE compensation_jobs SET state = 'pending', attempts = 0, available_at = UTC_TIMESTAMP(3)," +
      ' batch_id = ?, detail = ?, last_error = NULL WHERE id = ?',
    [batchId, cut(detail), before.id],
  );
  await audit(before.id, { state: before.state, attempts: before.attempts }, 'compensation.reopened');
  return 'reopened';
}

function conditions({ state, kind, saleId }: JobFilter, { afterId, max }: JobPage): [string, SqlValue[]] {
  const all: string[] = ['TRUE'];
  const values: SqlValue[] = [];
  const add = (condition: string, value: SqlValue | undefined): void => {
    if (value === undefined) return;
    all.push(condition);
    values.push(value);
  };
  add('state = ?', state);
  add('kind = ?', kind);
  add('sale_id = ?', saleId);
  add('id > ?', afterId);
  return [`${all.join(' AND ')} ORDER BY id LIMIT ?`, [...values, max]];
}

async function counts(pool: MysqlPool): Promise<Record<JobState, number>> {
  const rows = await pool.query<{ readonly state: JobState; readonly jobs: string }>(
    'SELECT state, COUNT(*) AS jobs FROM compensation_jobs GROUP BY state',
  );
  const byState = new Map(rows.map(({ state, jobs }) => [state, Number(jobs)]));
  const all = JOB_STATES.map((state): [JobState, number] => [state, byState.get(state) ?? 0]);
  return Object.fromEntries(all) as Record<JobState, number>;
}

/** As in the outbox: the lock lasts for two statements, the lease in `available_at` for the work. */
async function claimDue(tx: Transaction, { max, leaseMs, saleId }: Claim): Promise<CompensationJob[]> {
  const rows = await tx.query<JobRow>(
    `SELECT ${COLUMNS} FROM compensation_jobs WHERE state = 'pending' AND available_at <= UTC_TIMESTAMP(3)` +
      `${saleId === undefined ? '' : ' AND sale_id = ?'} ORDER BY available_at, id LIMIT ? FOR UPDATE SKIP LOCKED`,
    [...(saleId === undefined ? [] : [saleId]), max],
  );
  if (rows.length === 0) return [];
  await tx.execute(
    'UPDATE compensation_jobs SET available_at = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND WHERE id IN (?)',
    [leaseMs * 1000, rows.map(({ id }) => id)],
  );
  return rows.map(jobOf);
}

async function end(
  pool: MysqlPool,
  jobId: string,
  actor: string,
  state: Exclude<JobState, 'pending'>,
  note: string,
): Promise<JobEnd> {
  return pool.transaction(async (tx) => {
    const before = await lock(tx, jobId);
    if (before === undefined) return 'not_found';
    if (before.state !== 'pending') return 'not_pending';
    await tx.execute('UPDATE compensation_jobs SET state = ?, last_error = ? WHERE id = ?', [state, cut(note), jobId]);
    const { attempts } = before;
    await insertAudit(tx, {
      ...{ actor, action: `compensation.${state}`, subject: subjectOf(jobId) },
      ...{ before: { state: before.state, attempts }, after: { state, attempts, note } },
    });
    return 'done';
  });
}

async function retry(tx: Transaction, jobId: string, actor: string): Promise<Retried> {
  const before = await lock(tx, jobId);
  if (before === undefined) return 'not_found';
  const { state, attempts } = before;
  if (state === 'compensated') return 'compensated';
  await tx.execute(
    "UPDATE compensation_jobs SET state = 'pending', attempts = 0, available_at = UTC_TIMESTAMP(3) WHERE id = ?",
    [jobId],
  );
  await insertAudit(tx, {
    ...{ actor, action: 'compensation.retried', subject: subjectOf(jobId) },
    ...{ before: { state, attempts }, after: { state: 'pending', attempts: 0 } },
  });
  return 'retried';
}

const jobOf = (row: JobRow): CompensationJob => ({
  jobId: row.id,
  kind: row.kind,
  subject: row.subject,
  saleId: row.sale_id,
  batchId: row.batch_id,
  userId: row.user_id,
  requestId: row.request_id,
  detail: row.detail,
  state: row.state,
  attempts: row.attempts,
  availableAtMs: row.available_at.getTime(),
  lastError: row.last_error,
  createdAtMs: row.created_at.getTime(),
  updatedAtMs: row.updated_at.getTime(),
});
