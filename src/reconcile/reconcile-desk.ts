import { randomBytes } from 'node:crypto';
import { OperationalError } from '../domain/errors.js';
import { subjectOf, type FindingKind, type SaleFinding } from '../domain/sale-finding.js';
import type { Sale } from '../domain/sale.js';
import type { CompensationJob, JobFilter, JobPage, Retried } from '../ports/compensation-book.js';
import type { ReconcileRun, ReconcileRuns, RunOutcome } from '../ports/reconcile-runs.js';
import type { SaleBook } from '../ports/sale-book.js';
import { compareSale, FINDINGS_MAX, type CompareLimits, type SaleReport } from './compare-sale.js';
import { compensate, type CompensateOptions, type CompensatePorts } from './compensate.js';
import { jobsOf } from './jobs-of.js';

export interface ReconcileDeskPorts extends CompensatePorts {
  readonly runs: ReconcileRuns;
  readonly sales: Pick<SaleBook, 'list'>;
}

export type ReconcileOptions = CompareLimits & CompensateOptions;

export interface ReconcileRequest {
  /** Absent: every sale that is warm, open, paused or closed recently. */
  readonly saleId?: string;
  /** Makes jobs of what was found. */
  readonly apply: boolean;
  /** How long the jobs are worked off and followed, ms; 0 leaves them to the keeper. */
  readonly waitMs: number;
  /** Who asked for it; stands in the audit log. */
  readonly actor: string;
  /** Ends the wait early, and begins no further sale. */
  readonly signal?: AbortSignal;
}

/**
 * - `compared`: here is what was found, and the jobs that were made of it
 * - `taken`: somebody else reconciles this sale right now
 * - `not_found`: there is no such sale
 */
export type SaleResult =
  | { readonly outcome: 'compared'; readonly report: SaleReport; readonly jobs: readonly CompensationJob[] }
  | { readonly outcome: 'taken'; readonly saleId: string; readonly owner: string; readonly untilMs: number }
  | { readonly outcome: 'not_found'; readonly saleId: string };

export interface ReconcileResult {
  readonly runId: string;
  /** `match` also when everything that was found is mended. */
  readonly outcome: RunOutcome;
  readonly counts: Readonly<Partial<Record<FindingKind, number>>>;
  readonly salesCompared: number;
  /** Sales that somebody else reconciles right now. */
  readonly salesTaken: number;
}

/** More sales at once are no use of this system. */
const LIVE_SALES_MAX = 10_000;
const CLOSED_SALES_MAX = 500;
/** What a sale had under way when it closed has ended by then, and its markers are removed. */
const CLOSED_RECENTLY_MS = 8 * 24 * 3_600_000;
/** The right to a sale, kept from page to page. */
const SALE_LEASE_MS = 60_000;
const FOLLOW_EVERY_MS = 200;
const JOBS_PAGE = 500;

/** Compares the books of sales, makes jobs of what it finds, and shows what became of them. */
export class ReconcileDesk {
  readonly #ports: ReconcileDeskPorts;
  readonly #options: ReconcileOptions;

  constructor(ports: ReconcileDeskPorts, options: ReconcileOptions) {
    this.#ports = ports;
    this.#options = options;
  }

  /**
   * @param onSale told of each sale as it ends
   * @throws OperationalError; the run is noted as `failed`
   */
  async run(
    request: ReconcileRequest,
    onSale: (result: SaleResult) => void = () => undefined,
  ): Promise<ReconcileResult> {
    const { runs } = this.#ports;
    const { saleId = null, apply: applied, actor } = request;
    const runId = await runs.begin({ saleId, applied, actor });
    const tally = new Tally();
    try {
      for (const id of saleId === null ? await this.#recentSales() : [saleId]) {
        if (request.signal?.aborted === true) break;
        const result = await this.#runSale(id, request);
        tally.add(result);
        onSale(result);
      }
    } catch (error) {
      if (error instanceof OperationalError) await this.#endAsFailed(runId, tally);
      throw error;
    }
    const { outcome, figures, findings, counts, salesCompared, salesTaken } = tally;
    await runs.end(runId, { outcome, figures, findings });
    return { runId, outcome, counts, salesCompared, salesTaken };
  }

  /** Works off jobs that are due. @returns how many; @throws OperationalError mysql */
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

  /** @throws OperationalError mysql */
  retry(jobId: string, actor: string): Promise<Retried> {
    return this.#ports.jobs.retry(jobId, actor);
  }

  /** @throws OperationalError mysql */
  runs(filter: { readonly saleId?: string }, max: number): Promise<ReconcileRun[]> {
    return this.#ports.runs.list(filter, max);
  }

  async #recentSales(): Promise<string[]> {
    const { sales, clock } = this.#ports;
    const live = await sales.list({ states: ['warm', 'open', 'paused'], max: LIVE_SALES_MAX });
    const closed = await sales.list({ states: ['closed'], max: CLOSED_SALES_MAX });
    const recently = closed.filter(({ closesAtMs }) => closesAtMs >= clock.nowMs() - CLOSED_RECENTLY_MS);
    return [...live, ...recently].map(({ saleId }) => saleId);
  }

  async #runSale(saleId: string, request: ReconcileRequest): Promise<SaleResult> {
    const { runs, book } = this.#ports;
    const sale = await book.findSale(saleId);
    if (sale === null) return { outcome: 'not_found', saleId };
    const owner = `${request.actor.slice(0, 64)}-${randomBytes(6).toString('hex')}`;
    const lease = await runs.lease(saleId, owner, SALE_LEASE_MS);
    if (lease.outcome === 'taken') return { ...lease, saleId };
    const keepLease = async (): Promise<void> => void (await runs.lease(saleId, owner, SALE_LEASE_MS));
    try {
      const report = await compareSale(sale, this.#ports, this.#options, keepLease);
      const jobs = request.apply ? await this.#apply(sale, report.findings, request, keepLease) : [];
      return { outcome: 'compared', report, jobs };
    } finally {
      await runs.free(saleId, owner);
    }
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
    const deadlineMs = clock.nowMs() + waitMs;
    while (clock.nowMs() < deadlineMs && signal?.aborted !== true) {
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
      const after = last === undefined ? {} : { afterId: last };
      const page = await this.#ports.jobs.list({ saleId }, { ...after, max: JOBS_PAGE });
      all.push(...page);
      if (page.length < JOBS_PAGE) return all;
    }
  }

  /** The fault that ended the run may keep this from being written too; then the run stays without an end. */
  async #endAsFailed(runId: string, tally: Tally): Promise<void> {
    try {
      await this.#ports.runs.end(runId, { outcome: 'failed', figures: tally.figures, findings: tally.findings });
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#ports.log.warn({ runId, error: error.message }, 'the end of a reconcile run was not noted');
    }
  }
}

/** Figures of a sale that make sense added up. */
const SUMMED = ['requests', 'rows', 'young', 'parked', 'moving'] as const;

/** Adds up the sales of one run. */
class Tally {
  readonly counts: Partial<Record<FindingKind, number>> = {};
  readonly findings: SaleFinding[] = [];
  salesCompared = 0;
  salesTaken = 0;
  #open = 0;
  readonly #sums = { requests: 0, rows: 0, young: 0, parked: 0, moving: 0 };

  add(result: SaleResult): void {
    if (result.outcome === 'taken') this.salesTaken++;
    if (result.outcome !== 'compared') return;
    const { report, jobs } = result;
    this.salesCompared++;
    for (const name of SUMMED) this.#sums[name] += report.figures[name];
    for (const [kind, count] of Object.entries(report.counts)) {
      this.counts[kind as FindingKind] = (this.counts[kind as FindingKind] ?? 0) + count;
    }
    this.findings.push(...report.findings.slice(0, FINDINGS_MAX - this.findings.length));
    if (!isMended(report, jobs)) this.#open++;
  }

  get outcome(): RunOutcome {
    return this.#open === 0 ? 'match' : 'findings';
  }

  get figures(): Record<string, number> {
    const { salesCompared, salesTaken } = this;
    return { salesCompared, salesTaken, ...this.#sums };
  }
}

/** Whether nothing was found, or every single finding has a job that is compensated. */
export function isMended({ counts, findings }: SaleReport, jobs: readonly CompensationJob[]): boolean {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const mended = new Set(
    jobs.filter(({ state }) => state === 'compensated').map(({ kind, subject }) => `${kind} ${subject}`),
  );
  return all === findings.length && findings.every((one) => mended.has(`${one.kind} ${subjectOf(one)}`));
}
