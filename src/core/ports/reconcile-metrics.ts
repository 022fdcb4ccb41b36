import type { FindingKind } from '../sale-finding.js';
import type { JobState } from './compensation-repository.js';

/** What the keeper counts of reconcile and compensation. */
export interface ReconcileMetrics {
  /** A run has ended: how many findings of each kind it had; kinds that are missing had none. */
  reconciled(findings: Readonly<Partial<Record<FindingKind, number>>>): void;
  /** How many compensation jobs stand in each state. */
  jobs(counts: Readonly<Record<JobState, number>>): void;
}
