import {
  JOB_STATES,
  type Added,
  type CompensationRepository,
  type CompensationJob,
  type JobEnd,
  type JobState,
  type NewCompensationJob,
} from '../core/ports/compensation-repository.js';
import { requestName } from '../core/purchase.js';
import { insertAudit } from './audit-log.js';
import { execute, inMs, knex, msAgo, now, PAUSE_MAX_MS, select, waitOver } from './knex.js';
import type { MysqlPool, Transaction } from './pool.js';
import { kindOf, storedKind } from './stored-kind.js';
import type { CompensationJobRow } from './tables.js';
import { withoutUndefined } from '../core/without-undefined.js';

const TEXT_MAX = 1000;
const cut = (text: string): string => text.slice(0, TEXT_MAX);

/** Maximum of the count. Beyond it, an alert needs no exact number. */
const COUNTED_MAX = 10_000;

const jobs = () => knex('compensation_jobs').select('*');
const auditSubject = (jobId: string): string => `compensation_job:${jobId}`;

/** Compensation jobs of reconcile and operators, in MySQL, whose clock decides which jobs are due. */
export function createCompensationRepository(pool: MysqlPool): CompensationRepository {
  return {
    async add(newJobs, actor): Promise<Added[]> {
      const outcomes: Added[] = [];
      for (const job of newJobs) outcomes.push(await pool.transaction((tx) => addOne(tx, job, actor)));
      return outcomes;
    },
    async list({ state, kind, saleId }, { afterId, max }): Promise<CompensationJob[]> {
      const stored = kind === undefined ? undefined : storedKind(kind);
      let page = jobs().where(withoutUndefined({ state, kind: stored, sale_id: saleId }));
      if (afterId !== undefined) page = page.where('id', '>', afterId);
      return (await select(pool, page.orderBy('id').limit(max))).map(jobOf);
    },
    async find(jobId): Promise<CompensationJob | null> {
      const [row] = await select(pool, jobs().where({ id: jobId }));
      return row === undefined ? null : jobOf(row);
    },
    async byRequest(saleId, userId, requestId): Promise<CompensationJob[]> {
      const subject = requestName(saleId, { userId, requestId });
      return (await select(pool, jobs().where({ subject }).orderBy('id'))).map(jobOf);
    },
    async byBatch(batchId): Promise<CompensationJob[]> {
      return (await select(pool, jobs().where({ batch_id: batchId }).orderBy('id'))).map(jobOf);
    },
    async counts() {
      const all: [JobState, number][] = [];
      for (const state of JOB_STATES) {
        const some = knex('compensation_jobs').select('id').where({ state }).limit(COUNTED_MAX).as('some');
        const [row] = await select(pool, knex.from(some).count<{ n: string }[]>({ n: '*' }));
        all.push([state, Number(row?.n ?? 0)]);
      }
      return Object.fromEntries(all) as Record<JobState, number>;
    },
    /** Claims due jobs. The lock lasts for two statements, the lease in `available_at` for the work. */
    claim: ({ max, leaseMs, pauseMaxMs = PAUSE_MAX_MS, saleId }) =>
      pool.transaction(async (tx) => {
        const rows = await select(
          tx,
          jobs()
            .where(withoutUndefined({ state: 'pending' as const, sale_id: saleId }))
            .whereRaw(waitOver('available_at', Math.max(leaseMs, pauseMaxMs)))
            .orderBy(['available_at', 'id'])
            .limit(max)
            .forUpdate()
            .skipLocked(),
        );
        if (rows.length === 0) return [];
        const ids = rows.map(({ id }) => id);
        await execute(
          tx,
          knex('compensation_jobs')
            .whereIn('id', ids)
            .update({ available_at: inMs(leaseMs) }),
        );
        return rows.map(jobOf);
      }),
    done: (jobId, actor, note) => end(pool, jobId, actor, 'compensated', note),
    failed: (jobId, actor, error) => end(pool, jobId, actor, 'failed_final', error),
    async postpone(jobId, delayMs, error, attempt): Promise<void> {
      const changes = {
        available_at: inMs(delayMs),
        last_error: cut(error),
        attempts: knex.raw('attempts + ?', [attempt === 'counts' ? 1 : 0]),
      };
      await execute(pool, knex('compensation_jobs').where({ id: jobId, state: 'pending' }).update(changes));
    },
    retry: (jobId, actor) =>
      pool.transaction(async (tx) => {
        const before = await lock(tx, jobId);
        if (before === undefined) return 'not_found';
        const { state, attempts } = before;
        if (state === 'compensated') return 'compensated';
        const changes = { state: 'pending' as const, attempts: 0, available_at: now() };
        await execute(tx, knex('compensation_jobs').where({ id: jobId }).update(changes));
        await insertAudit(tx, {
          actor,
          action: 'compensation.retried',
          subject: auditSubject(jobId),
          before: { state, attempts },
          after: { state: 'pending', attempts: 0 },
        });
        return 'retried';
      }),
    announce: (jobId, actor, action, before, after) =>
      pool.transaction((tx) => insertAudit(tx, { actor, action, subject: auditSubject(jobId), before, after })),
    async removeOld(keepMs, max): Promise<number> {
      const compensated = knex('compensation_jobs').where({ state: 'compensated' });
      const old = compensated.where('available_at', '<', msAgo(keepMs)).orderBy('available_at').limit(max);
      const ids = (await select(pool, old.select('id'))).map(({ id }) => id);
      if (ids.length === 0) return 0;
      const again = knex('compensation_jobs').whereIn('id', ids).where({ state: 'compensated' });
      return (await execute(pool, again.delete())).affectedRows;
    },
  };
}

/** Locks the row first, so that the second of two concurrent moves sees the result of the first. */
async function lock(tx: Transaction, jobId: string): Promise<CompensationJobRow | undefined> {
  const [row] = await select(tx, jobs().where({ id: jobId }).forUpdate());
  return row;
}

/** The update changes nothing. It locks the row, so a concurrent transaction that adds the same subject waits. */
async function addOne(tx: Transaction, job: NewCompensationJob, actor: string): Promise<Added> {
  const { subject, saleId, batchId, userId, requestId, detail } = job;
  const kind = storedKind(job.kind);
  const row = {
    kind,
    subject,
    sale_id: saleId,
    batch_id: batchId,
    user_id: userId,
    request_id: requestId,
    detail: cut(detail),
  };
  const { affectedRows, insertId } = await execute(
    tx,
    knex('compensation_jobs').insert(row).onConflict().merge(['subject']),
  );
  const audit = (jobId: string, before: unknown, action: string): Promise<void> =>
    insertAudit(tx, { actor, action, subject: auditSubject(jobId), before, after: { state: 'pending', detail } });
  if (affectedRows === 1) {
    await audit(insertId, null, 'compensation.added');
    return 'added';
  }
  const [before] = await select(
    tx,
    knex('compensation_jobs').select('id', 'state', 'attempts').where({ subject, kind }).forUpdate(),
  );
  if (before === undefined || before.state === 'pending') return 'already_pending';
  if (before.state === 'failed_final') return 'failed_final';
  const changes = {
    state: 'pending' as const,
    attempts: 0,
    available_at: now(),
    batch_id: batchId,
    detail: cut(detail),
    last_error: null,
  };
  await execute(tx, knex('compensation_jobs').where({ id: before.id }).update(changes));
  await audit(before.id, { state: before.state, attempts: before.attempts }, 'compensation.reopened');
  return 'reopened';
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
    await execute(
      tx,
      knex('compensation_jobs')
        .where({ id: jobId })
        .update({ state, last_error: cut(note) }),
    );
    const { attempts } = before;
    await insertAudit(tx, {
      actor,
      action: `compensation.${state}`,
      subject: auditSubject(jobId),
      before: { state: before.state, attempts },
      after: { state, attempts, note },
    });
    return 'done';
  });
}

const jobOf = (row: CompensationJobRow): CompensationJob => ({
  jobId: row.id,
  kind: kindOf(row.kind),
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
