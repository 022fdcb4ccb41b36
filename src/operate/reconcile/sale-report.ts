import type { OperationalError } from '../../core/errors.js';
import type { CompensationJob } from '../../core/ports/compensation-repository.js';
import type { RunOutcome } from '../../core/ports/reconcile-runs.js';
import { type FindingKind, type SaleFinding, subjectOf } from '../../core/sale-finding.js';

/** Figures of a live sale, in units unless noted otherwise. */
export interface LiveFigures {
  readonly stock: number;
  readonly sold: number;
  readonly unitsLeft: number;
  readonly unitsOfBuyers: number;
  /** Stock minus units left, units in transit between buckets and buyers' units. 0 if all are accounted for. */
  readonly difference: number;
  /** 1 if units moved during the count, so that the difference was not judged. */
  readonly moving: number;
  /** Number of accepted requests in Redis, and of rows in MySQL. */
  readonly requests: number;
  readonly rows: number;
  readonly pendingBatches: number;
  /** Requests that differ but are too young, in the re-drive, or in a dead letter. */
  readonly young: number;
  readonly waiting: number;
  readonly parked: number;
  /** Requests that differ but that this run did not read again. */
  readonly unseen: number;
  /** Units of all purchases that the MySQL guard has refused. */
  readonly guarded: number;
}

/** `partly`: no findings, but not everything was compared. */
type SaleOutcome = 'match' | 'findings' | 'partly';

export interface SaleReport {
  readonly saleId: string;
  readonly outcome: SaleOutcome;
  /** Whether something is left to compare: either the next run continues, or the sale is closed and not in Redis. */
  readonly more: boolean;
  readonly figures: LiveFigures;
  readonly counts: Readonly<Partial<Record<FindingKind, number>>>;
  /** The first findings, at most `FINDINGS_MAX`. */
  readonly findings: readonly SaleFinding[];
}

/** Maximum number of findings kept. The next run finds the others. */
const FINDINGS_MAX = 1000;

/** Counts and findings of one comparison so far. */
export class SaleNotes {
  readonly findings: SaleFinding[] = [];
  readonly counts: Partial<Record<FindingKind, number>> = {};
  /** False if Redis does not have the sale, so that only its rows were compared. */
  isWhole = true;
  readonly seen = { requests: 0, rows: 0, young: 0, waiting: 0, parked: 0, unseen: 0 };

  found(finding: SaleFinding): void {
    this.counts[finding.kind] = (this.counts[finding.kind] ?? 0) + 1;
    if (this.findings.length < FINDINGS_MAX) this.findings.push(finding);
  }

  report(saleId: string, units: Omit<LiveFigures, keyof SaleNotes['seen']>): SaleReport {
    const { findings, counts, seen } = this;
    const more = seen.unseen > 0 || !this.isWhole;
    const outcome = findings.length > 0 ? 'findings' : more ? 'partly' : 'match';
    return { saleId, outcome, more, figures: { ...units, ...seen }, counts, findings };
  }
}

/** `taken`: another run is reconciling this sale. `failed`: a dependency failed; only in a run over all sales. */
export type SaleResult =
  | { readonly outcome: 'compared'; readonly report: SaleReport; readonly jobs: readonly CompensationJob[] }
  | { readonly outcome: 'taken'; readonly saleId: string; readonly owner: string; readonly untilMs: number }
  | { readonly outcome: 'not_found'; readonly saleId: string }
  | { readonly outcome: 'failed'; readonly saleId: string; readonly error: OperationalError };

const SUMMED = ['requests', 'rows', 'young', 'waiting', 'parked', 'unseen', 'moving'] as const;

export class RunTally {
  readonly counts: Partial<Record<FindingKind, number>> = {};
  readonly findings: SaleFinding[] = [];
  wanted = 0;
  salesCompared = 0;
  salesTaken = 0;
  salesFailed = 0;
  failedInARow = 0;
  #open = 0;
  #partly = 0;
  readonly #sums = { requests: 0, rows: 0, young: 0, waiting: 0, parked: 0, unseen: 0, moving: 0 };

  add(result: SaleResult): void {
    this.failedInARow = result.outcome === 'failed' ? this.failedInARow + 1 : 0;
    if (result.outcome === 'failed') this.salesFailed++;
    if (result.outcome === 'taken') this.salesTaken++;
    if (result.outcome !== 'compared') return;
    const { report, jobs } = result;
    this.salesCompared++;
    for (const name of SUMMED) this.#sums[name] += report.figures[name];
    for (const [kind, count] of Object.entries(report.counts)) {
      this.counts[kind as FindingKind] = (this.counts[kind as FindingKind] ?? 0) + count;
    }
    this.findings.push(...report.findings.slice(0, FINDINGS_MAX - this.findings.length));
    if (report.more) this.#partly++;
    if (!isRepaired(report, jobs)) this.#open++;
  }

  get outcome(): RunOutcome {
    if (this.#open > 0) return 'findings';
    if (this.salesCompared === 0) return 'none';
    return this.#partly > 0 || this.salesCompared < this.wanted ? 'partly' : 'match';
  }

  get figures(): Record<string, number> {
    const { salesCompared, salesTaken, salesFailed } = this;
    return { salesCompared, salesTaken, salesFailed, ...this.#sums };
  }
}

/** Whether there are no findings, or every finding has a compensated job. */
function isRepaired({ counts, findings }: SaleReport, jobs: readonly CompensationJob[]): boolean {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const repaired = new Set(
    jobs.filter(({ state }) => state === 'compensated').map(({ kind, subject }) => `${kind} ${subject}`),
  );
  return all === findings.length && findings.every((one) => repaired.has(`${one.kind} ${subjectOf(one)}`));
}
