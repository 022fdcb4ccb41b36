import type { FindingKind, SaleFinding } from '../../core/sale-finding.js';

/** Units unless it says otherwise. */
export interface LiveFigures {
  readonly stock: number;
  readonly sold: number;
  readonly unitsLeft: number;
  readonly unitsOfBuyers: number;
  /** Stock less units left less units of buyers. */
  readonly difference: number;
  /** 1: units moved while they were counted, so the difference was not judged. */
  readonly moving: number;
  /** Requests that Redis let in, and rows that MySQL has. */
  readonly requests: number;
  readonly rows: number;
  readonly pendingBatches: number;
  /** Requests that differ and were not judged: too young, served by the re-drive, or their batch is a dead letter. */
  readonly young: number;
  readonly waiting: number;
  readonly parked: number;
  /** Requests that differ and that this run had no time for. */
  readonly unseen: number;
  /** Units of purchases that the last guard refused, ever. */
  readonly guarded: number;
}

/**
 * - `match`: nothing was found, and everything was looked at
 * - `findings`: something was found
 * - `partly`: nothing was found in what this run had time for
 */
export type SaleOutcome = 'match' | 'findings' | 'partly';

export interface SaleReport {
  readonly saleId: string;
  readonly outcome: SaleOutcome;
  /** Not everything was looked at: the next run goes on. */
  readonly more: boolean;
  readonly figures: LiveFigures;
  /** How many of each kind. */
  readonly counts: Readonly<Partial<Record<FindingKind, number>>>;
  /** The first of them, at most `FINDINGS_MAX`. */
  readonly findings: readonly SaleFinding[];
}

/** Findings that are kept; the next run takes those that are left. */
export const FINDINGS_MAX = 1000;

/** What one comparison has seen and found so far. */
export class SaleNotes {
  readonly findings: SaleFinding[] = [];
  readonly counts: Partial<Record<FindingKind, number>> = {};
  readonly seen = { requests: 0, rows: 0, young: 0, waiting: 0, parked: 0, unseen: 0 };

  found(finding: SaleFinding): void {
    this.counts[finding.kind] = (this.counts[finding.kind] ?? 0) + 1;
    if (this.findings.length < FINDINGS_MAX) this.findings.push(finding);
  }

  report(saleId: string, units: Omit<LiveFigures, keyof SaleNotes['seen']>): SaleReport {
    const { findings, counts, seen } = this;
    const more = seen.unseen > 0;
    const outcome = findings.length > 0 ? 'findings' : more ? 'partly' : 'match';
    return { saleId, outcome, more, figures: { ...units, ...seen }, counts, findings };
  }
}
