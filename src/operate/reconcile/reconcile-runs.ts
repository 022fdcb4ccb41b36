import type { Clock } from '../../core/ports/clock.js';
import type { SaleFinding } from '../../core/sale-finding.js';
import type { ReconcileRun, ReconcileRuns, SaleLease } from '../../core/ports/reconcile-runs.js';
import { bigint, execute, inMs, knex, msAgo, now, select, waitOver } from '../../mysql/knex.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { retryConflicts } from '../../mysql/retry-conflicts.js';
import { kindOf, storedKind, type StoredKind } from '../../mysql/stored-kind.js';
import { withoutUndefined } from '../../core/without-undefined.js';

/** Maximum number of findings kept per run. More would tell people nothing new. */
const FINDINGS_KEPT = 1000;
const NAME_MAX = 128;

/** The clock of MySQL ends a lease. Inserts and deletes lock gaps, so rivals may deadlock, and the loser retries. */
export function createReconcileRuns(pool: MysqlPool, clock: Clock): ReconcileRuns {
  return {
    lease: (saleId, owner, leaseMs) => lease(pool, clock, saleId, { owner: owner.slice(0, NAME_MAX), leaseMs }),
    async free(saleId, owner): Promise<void> {
      const own = knex('reconcile_leases').where({ sale_id: saleId, owner: owner.slice(0, NAME_MAX) });
      await retryConflicts(clock, () => execute(pool, own.delete()));
    },
    async begin({ saleId, applied, actor }): Promise<string> {
      const row = { sale_id: saleId, applied: applied ? 1 : 0, actor: actor.slice(0, NAME_MAX) };
      return (await execute(pool, knex('reconcile_runs').insert(row))).insertId;
    },
    async end(runId, { outcome, figures, findings }): Promise<void> {
      const changes = {
        finished_at: now(),
        outcome,
        figures_json: JSON.stringify(figures),
        findings_json: JSON.stringify(findings.slice(0, FINDINGS_KEPT).map(storedFinding)),
      };
      await execute(pool, knex('reconcile_runs').where({ id: runId }).update(changes));
    },
    async removeOld(keepMs, max): Promise<number> {
      const old = knex('reconcile_runs').select('id').where('started_at', '<', msAgo(keepMs));
      const ids = (await select(pool, old.orderBy('started_at').limit(max))).map(({ id }) => id);
      if (ids.length === 0) return 0;
      return (await execute(pool, knex('reconcile_runs').whereIn('id', ids).delete())).affectedRows;
    },
    async list({ saleId, beforeId }, max): Promise<ReconcileRun[]> {
      const newest = knex('reconcile_runs').where(withoutUndefined({ sale_id: saleId }));
      if (beforeId !== undefined) void newest.where('id', '<', bigint(beforeId));
      const rows = await select(pool, newest.select('*').orderBy('id', 'desc').limit(max));
      return rows.map((row) => ({
        runId: row.id,
        saleId: row.sale_id,
        applied: row.applied === 1,
        actor: row.actor,
        startedAtMs: row.started_at.getTime(),
        finishedAtMs: row.finished_at?.getTime() ?? null,
        outcome: row.outcome,
        figures: JSON.parse(row.figures_json ?? '{}') as Record<string, number>,
        findings: (JSON.parse(row.findings_json ?? '[]') as StoredFinding[]).map(findingOf),
      }));
    },
  };
}

type StoredFinding = Omit<SaleFinding, 'kind'> & { readonly kind: StoredKind };

const storedFinding = (finding: SaleFinding): StoredFinding => ({ ...finding, kind: storedKind(finding.kind) });

const findingOf = (stored: StoredFinding): SaleFinding => ({ ...stored, kind: kindOf(stored.kind) }) as SaleFinding;

/** Inserts a free row first, so that there is a row to lock. Starts again if its owner removes it in between. */
async function lease(
  pool: MysqlPool,
  clock: Clock,
  saleId: string,
  { owner, leaseMs }: { readonly owner: string; readonly leaseMs: number },
): Promise<SaleLease> {
  const free = { sale_id: saleId, owner: '', leased_until: knex.raw("'2000-01-01'") };
  for (;;) {
    const answer = await retryConflicts(clock, async () => {
      await execute(pool, knex('reconcile_leases').insert(free).onConflict().merge(['sale_id']));
      return takeLease(pool, saleId, owner, leaseMs);
    });
    if (answer !== null) return answer;
  }
}

/** @returns null if there is no row */
function takeLease(pool: MysqlPool, saleId: string, owner: string, leaseMs: number): Promise<SaleLease | null> {
  return pool.transaction(async (tx) => {
    const [row] = await select(
      tx,
      knex('reconcile_leases')
        .select<{ owner: string; leased_until: Date; is_free: number | string }[]>(
          'owner',
          'leased_until',
          knex.raw(`${waitOver('leased_until', leaseMs)} AS is_free`),
        )
        .where({ sale_id: saleId })
        .forUpdate(),
    );
    if (row === undefined) return null;
    if (row.owner !== owner && Number(row.is_free) === 0) {
      return { outcome: 'taken', owner: row.owner, untilMs: row.leased_until.getTime() };
    }
    const held = { owner, leased_until: inMs(leaseMs) };
    await execute(tx, knex('reconcile_leases').where({ sale_id: saleId }).update(held));
    return { outcome: 'held' };
  });
}
