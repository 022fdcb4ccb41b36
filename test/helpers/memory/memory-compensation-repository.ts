import type { Clock } from '../../../src/core/ports/clock.js';
import type {
  Added,
  Claim,
  CompensationRepository,
  CompensationJob,
  JobEnd,
  JobFilter,
  JobPage,
  JobState,
  NewCompensationJob,
  Retried,
} from '../../../src/core/ports/compensation-repository.js';
import { ManualClock } from './manual-clock.js';
import type { Audited } from './memory-dead-letters.js';
import { isWaitOver } from './wait-over.js';

/** Compensation jobs in memory, on an injected clock. */
export class MemoryCompensationRepository implements CompensationRepository {
  jobs: CompensationJob[] = [];
  readonly audited: Audited[] = [];
  readonly #clock: Clock;

  constructor(clock: Clock = new ManualClock()) {
    this.#clock = clock;
  }

  async add(jobs: readonly NewCompensationJob[], actor: string): Promise<Added[]> {
    return jobs.map((job) => this.#addOne(job, actor));
  }

  async list({ state, kind, saleId }: JobFilter, { afterId = '0', max }: JobPage): Promise<CompensationJob[]> {
    const same = <T>(wanted: T | undefined, has: T): boolean => wanted === undefined || wanted === has;
    return this.jobs
      .filter((job) => same(state, job.state) && same(kind, job.kind) && same(saleId, job.saleId))
      .filter(({ jobId }) => Number(jobId) > Number(afterId))
      .slice(0, max);
  }

  async find(jobId: string): Promise<CompensationJob | null> {
    return this.jobs.find((job) => job.jobId === jobId) ?? null;
  }

  async byRequest(saleId: string, userId: string, requestId: string): Promise<CompensationJob[]> {
    return this.jobs.filter((job) => job.subject === `${saleId}/${userId}/${requestId}`);
  }

  async byBatch(batchId: string): Promise<CompensationJob[]> {
    return this.jobs.filter((job) => job.batchId === batchId);
  }

  async counts(): Promise<Record<JobState, number>> {
    const count = (state: JobState): number => this.jobs.filter((job) => job.state === state).length;
    return { pending: count('pending'), compensated: count('compensated'), failed_final: count('failed_final') };
  }

  async removeOld(keepMs: number, max: number): Promise<number> {
    const isOld = (job: CompensationJob): boolean =>
      job.state === 'compensated' && job.availableAtMs < this.#clock.nowMs() - keepMs;
    const old = this.jobs.filter(isOld).slice(0, max);
    this.jobs = this.jobs.filter((job) => !old.includes(job));
    return old.length;
  }

  async claim({ max, leaseMs, pauseMaxMs, saleId }: Claim): Promise<CompensationJob[]> {
    const nowMs = this.#clock.nowMs();
    const due = this.jobs.filter(
      (job) =>
        job.state === 'pending' &&
        isWaitOver(job.availableAtMs, nowMs, pauseMaxMs) &&
        (saleId === undefined || job.saleId === saleId),
    );
    return due
      .sort((a, b) => a.availableAtMs - b.availableAtMs)
      .slice(0, max)
      .map(({ jobId }) => this.#change(jobId, { availableAtMs: nowMs + leaseMs }));
  }

  async done(jobId: string, actor: string, note: string): Promise<JobEnd> {
    return this.#end(jobId, actor, 'compensated', note);
  }

  async failed(jobId: string, actor: string, error: string): Promise<JobEnd> {
    return this.#end(jobId, actor, 'failed_final', error);
  }

  async postpone(jobId: string, delayMs: number, error: string, attempt: 'counts' | 'given_back'): Promise<void> {
    const job = await this.find(jobId);
    if (job?.state !== 'pending') return;
    const attempts = attempt === 'counts' ? job.attempts + 1 : job.attempts;
    this.#change(jobId, { availableAtMs: this.#clock.nowMs() + delayMs, lastError: error, attempts });
  }

  async retry(jobId: string, actor: string): Promise<Retried> {
    const job = await this.find(jobId);
    if (job === null) return 'not_found';
    const { state, attempts } = job;
    if (state === 'compensated') return 'compensated';
    this.#change(jobId, { state: 'pending', attempts: 0, availableAtMs: this.#clock.nowMs() });
    this.#audit(jobId, actor, 'compensation.retried', { state, attempts }, { state: 'pending', attempts: 0 });
    return 'retried';
  }

  async announce(jobId: string, actor: string, action: string, before: unknown, after: unknown): Promise<void> {
    this.#audit(jobId, actor, action, before, after);
  }

  #addOne(job: NewCompensationJob, actor: string): Added {
    const nowMs = this.#clock.nowMs();
    const after = { state: 'pending', detail: job.detail };
    const before = this.jobs.find(({ kind, subject }) => kind === job.kind && subject === job.subject);
    if (before === undefined) {
      const jobId = String(this.jobs.length + 1);
      const fresh = { state: 'pending', attempts: 0, lastError: null } as const;
      this.jobs.push({ ...job, ...fresh, jobId, availableAtMs: nowMs, createdAtMs: nowMs, updatedAtMs: nowMs });
      this.#audit(jobId, actor, 'compensation.added', null, after);
      return 'added';
    }
    if (before.state === 'pending') return 'already_pending';
    if (before.state === 'failed_final') return 'failed_final';
    const { jobId, state, attempts } = before;
    const { batchId, detail } = job;
    this.#change(jobId, { state: 'pending', attempts: 0, availableAtMs: nowMs, batchId, detail, lastError: null });
    this.#audit(jobId, actor, 'compensation.reopened', { state, attempts }, after);
    return 'reopened';
  }

  async #end(jobId: string, actor: string, state: Exclude<JobState, 'pending'>, note: string): Promise<JobEnd> {
    const job = await this.find(jobId);
    if (job === null) return 'not_found';
    if (job.state !== 'pending') return 'not_pending';
    const { attempts } = job;
    this.#change(jobId, { state, lastError: note });
    this.#audit(jobId, actor, `compensation.${state}`, { state: job.state, attempts }, { state, attempts, note });
    return 'done';
  }

  #change(jobId: string, change: Partial<CompensationJob>): CompensationJob {
    const index = this.jobs.findIndex((job) => job.jobId === jobId);
    const changed = { ...(this.jobs[index] as CompensationJob), ...change, updatedAtMs: this.#clock.nowMs() };
    this.jobs[index] = changed;
    return changed;
  }

  #audit(jobId: string, actor: string, action: string, before: unknown, after: unknown): void {
    this.audited.push({ actor, action, subject: `compensation_job:${jobId}`, before, after });
  }
}
