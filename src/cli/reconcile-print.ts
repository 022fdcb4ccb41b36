import { describeFinding } from '../core/sale-finding.js';
import type { CompensationJob } from '../core/ports/compensation-repository.js';
import type { ReconcileRun } from '../core/ports/reconcile-runs.js';
import type { SaleResult } from '../recovery/reconcile/sale-report.js';

const FINDINGS_SHOWN = 20;

const SALE_WIDTHS = [18, 10, 9, 9, 9, 9, 10, 8, 8];
const JOB_WIDTHS = [8, 13, 13, 18, 8, 24];
const RUN_WIDTHS = [8, 24, 18, 8, 10, 16];

const line = (cells: readonly string[], widths: readonly number[]): string =>
  cells
    .map((cell, index) => cell.padEnd(widths[index] ?? 0))
    .join('  ')
    .trimEnd();

export function printSaleHeading(): void {
  console.log(
    line(['sale', 'outcome', 'stock', 'sold', 'left', 'buyers', 'difference', 'young', 'waiting'], SALE_WIDTHS),
  );
}

export function printSale(result: SaleResult): void {
  switch (result.outcome) {
    case 'not_found':
      return console.log(line([result.saleId, 'not_found'], SALE_WIDTHS));
    case 'taken': {
      const until = new Date(result.untilMs).toISOString();
      return console.log(line([result.saleId, 'taken', `${result.owner} reconciles it, until ${until}`], SALE_WIDTHS));
    }
    case 'failed':
      return console.log(line([result.saleId, 'failed', result.error.message], SALE_WIDTHS));
    case 'compared': {
      const { saleId, outcome, figures, findings, counts } = result.report;
      const { stock, sold, unitsLeft, unitsOfBuyers, difference, moving, young, waiting, unseen } = figures;
      const apart = moving === 1 ? `${difference} moving` : String(difference);
      const cells = [stock, sold, unitsLeft, unitsOfBuyers].map(String);
      console.log(line([saleId, outcome, ...cells, apart, String(young), String(waiting)], SALE_WIDTHS));
      if (unseen > 0) console.log(`  ${unseen} more that differ were not looked at: run it again`);
      for (const finding of findings.slice(0, FINDINGS_SHOWN)) {
        console.log(`  ${finding.kind.padEnd(13)} ${describeFinding(finding)}`);
      }
      const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
      if (all > FINDINGS_SHOWN) console.log(`  … ${all} in all`);
      for (const { jobId, state, lastError } of result.jobs.slice(0, FINDINGS_SHOWN)) {
        console.log(`  job ${jobId.padEnd(9)} ${state.padEnd(13)} ${lastError ?? ''}`.trimEnd());
      }
    }
  }
}

export function printJobHeading(): void {
  console.log(line(['job', 'kind', 'state', 'sale', 'attempts', 'due', 'found, and met last'], JOB_WIDTHS));
}

export function printJob(job: CompensationJob): void {
  const due = job.state === 'pending' ? new Date(job.availableAtMs).toISOString() : '-';
  const told = job.lastError === null ? job.detail : `${job.detail}; ${job.lastError}`;
  console.log(line([job.jobId, job.kind, job.state, job.saleId, String(job.attempts), due, told], JOB_WIDTHS));
}

export function printRunHeading(): void {
  console.log(line(['run', 'started at', 'sale', 'applied', 'outcome', 'actor', 'findings'], RUN_WIDTHS));
}

export function printRun(run: ReconcileRun): void {
  const { runId, startedAtMs, saleId, applied, outcome, actor, findings } = run;
  const started = new Date(startedAtMs).toISOString();
  const cells = [runId, started, saleId ?? 'all', applied ? 'yes' : 'no', outcome ?? 'no end', actor];
  console.log(line([...cells, String(findings.length)], RUN_WIDTHS));
}
