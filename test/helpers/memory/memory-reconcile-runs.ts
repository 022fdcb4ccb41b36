import type { Clock } from '../../../src/core/ports/clock.js';
import type {
  ReconcileRun,
  ReconcileRuns,
  RunFilter,
  RunResult,
  SaleLease,
} from '../../../src/core/ports/reconcile-runs.js';
import { ManualClock } from './manual-clock.js';
import { isWaitOver } from './wait-over.js';

/** Runs and leases in memory, on an injected clock. */
export class MemoryReconcileRuns implements ReconcileRuns {
  runs: ReconcileRun[] = [];
  readonly #leases = new Map<string, { owner: string; untilMs: number }>();
  readonly #clock: Clock;

  constructor(clock: Clock = new ManualClock()) {
    this.#clock = clock;
  }

  async lease(saleId: string, owner: string, leaseMs: number): Promise<SaleLease> {
    const nowMs = this.#clock.nowMs();
    const lease = this.#leases.get(saleId);
    if (lease !== undefined && lease.owner !== owner && !isWaitOver(lease.untilMs, nowMs, leaseMs))
      return { outcome: 'taken', ...lease };
    this.#leases.set(saleId, { owner, untilMs: nowMs + leaseMs });
    return { outcome: 'held' };
  }

  async free(saleId: string, owner: string): Promise<void> {
    if (this.#leases.get(saleId)?.owner === owner) this.#leases.delete(saleId);
  }

  /** Counts leases, for tests. */
  leasesOf(saleId: string): number {
    return this.#leases.has(saleId) ? 1 : 0;
  }

  async begin(run: { saleId: string | null; applied: boolean; actor: string }): Promise<string> {
    const runId = String(this.runs.length + 1);
    const fresh = { finishedAtMs: null, outcome: null, figures: {}, findings: [] };
    this.runs.push({ ...run, ...fresh, runId, startedAtMs: this.#clock.nowMs() });
    return runId;
  }

  async end(runId: string, result: RunResult): Promise<void> {
    const finishedAtMs = this.#clock.nowMs();
    this.runs = this.runs.map((run) => (run.runId === runId ? { ...run, ...result, finishedAtMs } : run));
  }

  async removeOld(keepMs: number, max: number): Promise<number> {
    const old = this.runs.filter(({ startedAtMs }) => startedAtMs < this.#clock.nowMs() - keepMs).slice(0, max);
    this.runs = this.runs.filter((run) => !old.includes(run));
    return old.length;
  }

  async list({ saleId, beforeId }: RunFilter, max: number): Promise<ReconcileRun[]> {
    const found = this.runs.filter(
      (run) =>
        (saleId === undefined || run.saleId === saleId) &&
        (beforeId === undefined || Number(run.runId) < Number(beforeId)),
    );
    return found.reverse().slice(0, max);
  }
}
