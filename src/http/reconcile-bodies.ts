import type { CompensationJob } from '../core/ports/compensation-repository.js';
import type { ReconcileRun } from '../core/ports/reconcile-runs.js';
import type { SaleResult } from '../recovery/reconcile/sale-report.js';

const iso = (ms: number): string => new Date(ms).toISOString();

/** A compensation job as a program reads it: times in ISO 8601. */
export function jobBody({ availableAtMs, createdAtMs, updatedAtMs, ...job }: CompensationJob): object {
  return {
    ...job,
    availableAt: iso(availableAtMs),
    createdAt: iso(createdAtMs),
    updatedAt: iso(updatedAtMs),
  };
}

export function runBody({ startedAtMs, finishedAtMs, ...run }: ReconcileRun): object {
  return { ...run, startedAt: iso(startedAtMs), finishedAt: finishedAtMs === null ? null : iso(finishedAtMs) };
}

/** What a run says of one sale. */
export function saleResultBody(result: SaleResult): object {
  switch (result.outcome) {
    case 'compared': {
      return { ...result.report, jobs: result.jobs.map(jobBody) };
    }
    case 'taken':
      return { outcome: result.outcome, saleId: result.saleId, owner: result.owner, until: iso(result.untilMs) };
    case 'not_found':
      return result;
    case 'failed':
      return { outcome: result.outcome, saleId: result.saleId, detail: result.error.message };
  }
}
