import { OperationalError } from '../../core/errors.js';
import {
  describeFinding,
  type FindingKind,
  isCompensated,
  type SaleFinding,
  subjectOf,
} from '../../core/sale-finding.js';
import type { Sale } from '../../core/sale.js';
import type {
  CompensationJob,
  JobFilter,
  JobPage,
  NewCompensationJob,
  Retried,
} from '../../core/ports/compensation-repository.js';
import type { ReconcileRun, ReconcileRuns, RunFilter, RunOutcome } from '../../core/ports/reconcile-runs.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import { listSalesInRedis } from '../../sales/list-sales-in-redis.js';
import { compareSale } from './compare-sale.js';
import { compensate, type CompensateOptions } from './compensate.js';
import type { CompareLimits } from './judge-requests.js';
import type { CompensatePorts } from './repair-request.js';
import { withSaleLease } from './sale-lease.js';
import { RunTally, type SaleResult } from './sale-report.js';
import { withoutUndefined } from '../../core/without-undefined.js';

export interface ReconcileAdminPorts extends CompensatePorts {
  readonly runs: ReconcileRuns;
  readonly sales: SaleRepository;
}

export type ReconcileOptions = CompareLimits & CompensateOptions;

export interface ReconcileRequest {
  /** If set, only this sale. Otherwise every sale that is warm, open, paused or recently closed. */
  readonly saleId?: string;
  /** Whether to create jobs for the findings. */
  readonly apply: boolean;
  /** How long to work on the jobs and to wait for them, ms. 0 leaves them to the keeper. */
  readonly waitMs: number;
  readonly actor: string;
  /** Ends the wait early, and starts no further sale. */
  readonly signal?: AbortSignal;
}

export interface ReconcileResult {
  readonly runId: string;
  /** `match` even if there were findings, provided that all are repaired. */
  readonly outcome: RunOutcome;
  readonly counts: Readonly<Partial<Record<FindingKind, number>>>;
  readonly salesCompared: number;
  /** Sales that another run is reconciling. */
  readonly salesTaken: number;
  /** Sales that could not be compared because a dependency failed. */
  readonly salesFailed: number;
}

/** `not_retryable` means that the purchase was given up, which its row records for good. */
export type JobRetried = Retried | 'not_retryable';

/** When a closed sale has this age, nothing is under way any more and its markers have been removed. */
const CLOSED_RECENTLY_MS = 8 * 24 * 3_600_000;
const FOLLOW_EVERY_MS = 200;
const JOBS_PAGE = 500;
/** After this many failed sales in a row, the run ends, because it must be an outage. */
const FAILURES_IN_A_ROW_MAX = 3;

/** Drift of an open sale gets no job, because no script may set its stock. Findings for a person get none either. */
function jobsOf(sale: Sale, findings: readonly SaleFinding[]): NewCompensationJob[] {
  return findings.flatMap((finding) => {
    const { kind, saleId } = finding;
    if (!isCompensated(kind) || (kind === 'drift' && sale.state === 'open')) return [];
    const { batchId, userId, requestId } =
      'requestId' in finding ? finding : { batchId: null, userId: null, requestId: null };
    const subject = subjectOf(finding);
    return [{ kind, saleId, batchId, userId, requestId, subject, detail: describeFinding(finding) }];
  });
}

export class ReconcileAdmin {
  readonly #ports: ReconcileAdminPorts;
  readonly #options: ReconcileOptions;

  constructor(ports: ReconcileAdminPorts, options: ReconcileOptions) {
    this.#ports = ports;
    this.#options = options;
  }

  /** @throws OperationalError if the sale or the whole system cannot be compared; the run is then `failed` */
  async run(
    request: ReconcileRequest,
    onSale: (result: SaleResult) => void = () => undefined,
  ): Promise<ReconcileResult> {
    const { runs } = this.#ports;
    const { saleId = null, apply: applied, actor } = request;
    const runId = await runs.begin({ saleId, applied, actor });
    const tally = new RunTally();
    try {
      const ids = saleId === null ? await this.recentSales() : [saleId];
      for (const id of ids) {
        if (request.signal?.aborted === true) break;
        const result = await this.#trySale(id, request);
        if (result.outcome === 'failed' && (saleId !== null || tally.failedInARow + 1 >= FAILURES_IN_A_ROW_MAX)) {
          throw result.error;
        }
        tally.add(result);
        onSale(result);
      }
      tally.wanted = ids.length;
    } catch (error) {
      if (error instanceof OperationalError) await this.#endAsFailed(runId, tally);
      throw error;
    }
    const { outcome, figures, findings, counts, salesCompared, salesTaken, salesFailed } = tally;
    await runs.end(runId, { outcome, figures, findings });
    return { runId, outcome, counts, salesCompared, salesTaken, salesFailed };
  }

  /** Compares a sale that is over. @returns `match` despite stale markers, which expire. @throws OperationalError */
  async compareEnded(saleId: string): Promise<{ readonly outcome: RunOutcome; readonly hasStaleMarkers: boolean }> {
    let isWhole = false;
    const { outcome, counts } = await this.run({ saleId, apply: false, waitMs: 0, actor: 'keeper' }, (result) => {
      isWhole = result.outcome === 'compared' && !result.report.more;
    });
    const { stale_marker: staleMarkers = 0, ...others } = counts;
    const differs = Object.values(others).some((count) => count > 0);
    return {
      outcome: outcome === 'findings' && isWhole && !differs ? 'match' : outcome,
      hasStaleMarkers: staleMarkers > 0,
    };
  }

  /** Works through the due jobs. @returns the number of jobs. @throws OperationalError mysql */
  compensate(actor: string, saleId?: string): Promise<number> {
    return compensate(this.#ports, this.#options, actor, saleId);
  }

  /** @throws OperationalError mysql */
  jobs(filter: JobFilter, page: JobPage): Promise<CompensationJob[]> {
    return this.#ports.jobs.list(filter, page);
  }

  /** @throws OperationalError mysql */
  findJob(jobId: string): Promise<CompensationJob | null> {
    return this.#ports.jobs.find(jobId);
  }

  /** @throws OperationalError mysql */
  jobCounts(): ReturnType<CompensatePorts['jobs']['counts']> {
    return this.#ports.jobs.counts();
  }

  /** Gives a job new attempts, unless its purchase was given up for good. @throws OperationalError mysql */
  async retry(jobId: string, actor: string): Promise<JobRetried> {
    const { jobs, repository } = this.#ports;
    const job = await jobs.find(jobId);
    if (job?.kind === 'leak' && job.state === 'failed_final' && job.userId !== null && job.requestId !== null) {
      const [row] = await repository.rowsOf(job.saleId, [{ userId: job.userId, requestId: job.requestId }]);
      if (row?.reason === 'compensation_failed') return 'not_retryable';
    }
    return jobs.retry(jobId, actor);
  }

  /** Removes at most `max` old runs and `max` jobs. @returns whether more are left. @throws OperationalError mysql */
  async removeOld(keepMs: number, max: number): Promise<boolean> {
    const { runs, jobs } = this.#ports;
    return [await runs.removeOld(keepMs, max), await jobs.removeOld(keepMs, max)].includes(max);
  }

  /** @throws OperationalError mysql */
  runs(filter: RunFilter, max: number): Promise<ReconcileRun[]> {
    return this.#ports.runs.list(filter, max);
  }

  /** Lists the sales for a run that names none. @throws OperationalError mysql */
  async recentSales(): Promise<string[]> {
    const { sales, clock } = this.#ports;
    const listed = await listSalesInRedis(sales);
    const recentMs = clock.nowMs() - CLOSED_RECENTLY_MS;
    return listed
      .filter(({ state, closesAtMs }) => state !== 'closed' || closesAtMs >= recentMs)
      .map(({ saleId }) => saleId);
  }

  async #trySale(saleId: string, request: ReconcileRequest): Promise<SaleResult> {
    try {
      return await this.#runSale(saleId, request);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#ports.log.warn({ saleId, error: error.message }, 'a sale was not compared, because a server failed');
      return { outcome: 'failed', saleId, error };
    }
  }

  async #runSale(saleId: string, request: ReconcileRequest): Promise<SaleResult> {
    const { runs, repository } = this.#ports;
    const sale = await repository.findSale(saleId);
    if (sale === null) return { outcome: 'not_found', saleId };
    return withSaleLease(saleId, request.actor, runs, async (keepLease): Promise<SaleResult> => {
      const report = await compareSale(sale, this.#ports, this.#options, keepLease);
      const jobs = request.apply ? await this.#apply(sale, report.findings, request, keepLease) : [];
      return { outcome: 'compared', report, jobs };
    });
  }

  async #apply(
    sale: Sale,
    findings: readonly SaleFinding[],
    { actor, waitMs, signal }: ReconcileRequest,
    keepLease: () => Promise<void>,
  ): Promise<CompensationJob[]> {
    const { jobs, clock } = this.#ports;
    const { saleId } = sale;
    const wanted = jobsOf(sale, findings);
    if (wanted.length === 0) return [];
    await jobs.add(wanted, actor);
    const deadlineMs = clock.monotonicMs() + waitMs;
    while (clock.monotonicMs() < deadlineMs && signal?.aborted !== true) {
      await this.compensate(actor, saleId);
      await keepLease();
      if ((await jobs.list({ saleId, state: 'pending' }, { max: 1 })).length === 0) break;
      await clock.sleep(FOLLOW_EVERY_MS, signal);
    }
    const names = new Set(wanted.map(({ kind, subject }) => `${kind} ${subject}`));
    return (await this.#allJobs(saleId)).filter(({ kind, subject }) => names.has(`${kind} ${subject}`));
  }

  async #allJobs(saleId: string): Promise<CompensationJob[]> {
    const all: CompensationJob[] = [];
    for (;;) {
      const last = all.at(-1)?.jobId;
      const after = withoutUndefined({ afterId: last });
      const page = await this.#ports.jobs.list({ saleId }, { ...after, max: JOBS_PAGE });
      all.push(...page);
      if (page.length < JOBS_PAGE) return all;
    }
  }

  /** Records the end of a failed run. The same outage may also prevent this write; the run then has no recorded end. */
  async #endAsFailed(runId: string, tally: RunTally): Promise<void> {
    try {
      await this.#ports.runs.end(runId, { outcome: 'failed', figures: tally.figures, findings: tally.findings });
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#ports.log.warn({ runId, error: error.message }, 'could not record the end of a reconcile run');
    }
  }
}
