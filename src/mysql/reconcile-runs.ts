import type { SaleFinding } from '../core/sale-finding.js';
import type { ReconcileRun, ReconcileRuns, RunOutcome, SaleLease } from '../core/ports/reconcile-runs.js';
import type { MysqlPool } from './pool.js';

/** Of findings beyond this the first ones tell enough. */
const FINDINGS_KEPT = 1000;
const NAME_MAX = 128;

interface RunRow {
  readonly id: string;
  readonly sale_id: string | null;
  readonly applied: number;
  readonly actor: string;
  readonly started_at: Date;
  readonly finished_at: Date | null;
  readonly outcome: RunOutcome | null;
  readonly figures_json: string | null;
  readonly findings_json: string | null;
}

/** The record of runs, in MySQL. Its clock ends a lease. */
export function createReconcileRuns(pool: MysqlPool): ReconcileRuns {
  return {
    lease: (saleId, owner, leaseMs) => lease(pool, saleId, owner, leaseMs),
    async free(saleId, owner): Promise<void> {
      await pool.execute(
        'UPDATE reconcile_leases SET leased_until = UTC_TIMESTAMP(3) WHERE sale_id = ? AND owner = ?',
        [saleId, owner.slice(0, NAME_MAX)],
      );
    },
    async begin({ saleId, applied, actor }): Promise<string> {
      const sql = 'INSERT INTO reconcile_runs (sale_id, applied, actor) VALUES (?, ?, ?)';
      return (await pool.execute(sql, [saleId, applied ? 1 : 0, actor.slice(0, NAME_MAX)])).insertId;
    },
    async end(runId, { outcome, figures, findings }): Promise<void> {
      await pool.execute(
        'UPDATE reconcile_runs SET finished_at = UTC_TIMESTAMP(3), outcome = ?, figures_json = ?, findings_json = ?' +
          ' WHERE id = ?',
        [outcome, JSON.stringify(figures), JSON.stringify(findings.slice(0, FINDINGS_KEPT)), runId],
      );
    },
    async removeOld(keepMs, max): Promise<number> {
      const sql =
        'DELETE FROM reconcile_runs WHERE started_at < UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND ORDER BY id LIMIT ?';
      return (await pool.execute(sql, [keepMs * 1000, max])).affectedRows;
    },
    async list({ saleId }, max): Promise<ReconcileRun[]> {
      const where = saleId === undefined ? '' : 'WHERE sale_id = ? ';
      const rows = await pool.query<RunRow>(`SELECT * FROM reconcile_runs ${where}ORDER BY id DESC LIMIT ?`, [
        ...(saleId === undefined ? [] : [saleId]),
        max,
      ]);
      return rows.map(runOf);
    },
  };
}

/** The row is made first, free, so that there is always one to lock. */
async function lease(pool: MysqlPool, saleId: string, ownerName: string, leaseMs: number): Promise<SaleLease> {
  const owner = ownerName.slice(0, NAME_MAX);
  await pool.execute(
    "INSERT INTO reconcile_leases (sale_id, owner, leased_until) VALUES (?, '', '2000-01-01')" +
      ' ON DUPLICATE KEY UPDATE sale_id = VALUES(sale_id)',
    [saleId],
  );
  return pool.transaction(async (tx) => {
    const [row] = await tx.query<{ readonly owner: string; readonly leased_until: Date; readonly free: number }>(
      'SELECT owner, leased_until, leased_until <= UTC_TIMESTAMP(3) AS free FROM reconcile_leases' +
        ' WHERE sale_id = ? FOR UPDATE',
      [saleId],
    );
    if (row !== undefined && row.owner !== owner && Number(row.free) === 0) {
      return { outcome: 'taken', owner: row.owner, untilMs: row.leased_until.getTime() };
    }
    await tx.execute(
      'UPDATE reconcile_leases SET owner = ?, leased_until = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND' +
        ' WHERE sale_id = ?',
      [owner, leaseMs * 1000, saleId],
    );
    return { outcome: 'held' };
  });
}

const runOf = (row: RunRow): ReconcileRun => ({
  runId: row.id,
  saleId: row.sale_id,
  applied: row.applied === 1,
  actor: row.actor,
  startedAtMs: row.started_at.getTime(),
  finishedAtMs: row.finished_at?.getTime() ?? null,
  outcome: row.outcome,
  figures: JSON.parse(row.figures_json ?? '{}') as Record<string, number>,
  findings: JSON.parse(row.findings_json ?? '[]') as SaleFinding[],
});
