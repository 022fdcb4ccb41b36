import { OperationalError } from '../../../src/core/errors.js';
import { vanishedPrograms, type SeenProgram } from '../../../src/core/vanished-programs.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { LiveProgram, ProgramReport, ProgramReports } from '../../../src/core/ports/program-reports.js';

interface Stored {
  readonly report: ProgramReport;
  readonly atMs: number;
  readonly lifeMs: number;
  readonly startedAtMs: number;
}

/** Reports of programs in memory that expire with the clock. */
export class MemoryProgramReports implements ProgramReports {
  readonly #clock: Clock;
  readonly #reports = new Map<string, Stored>();
  /** While true, every call fails as if Redis were down. */
  down = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async report(processId: string, report: ProgramReport, lifeMs: number): Promise<void> {
    this.#failIfDown();
    const atMs = this.#clock.nowMs();
    const { startedAtMs = atMs } = this.#reports.get(processId) ?? {};
    this.#reports.set(processId, { report, atMs, lifeMs, startedAtMs });
  }

  async withdraw(processId: string): Promise<void> {
    this.#failIfDown();
    this.#reports.delete(processId);
  }

  async live(): Promise<readonly LiveProgram[]> {
    this.#failIfDown();
    const nowMs = this.#clock.nowMs();
    return [...this.#reports.values()]
      .filter(({ atMs, lifeMs }) => nowMs - atMs < lifeMs)
      .map(({ report, atMs }) => ({ ...report, seenMsAgo: nowMs - atMs }))
      .sort((one, other) => (`${one.kind} ${one.id}` < `${other.kind} ${other.id}` ? -1 : 1));
  }

  async vanished(): Promise<readonly SeenProgram[]> {
    this.#failIfDown();
    const nowMs = this.#clock.nowMs();
    const seen = [...this.#reports.values()].map(({ report: { kind, id }, atMs, lifeMs, startedAtMs }) => ({
      program: { kind, id, startedAtMs, seenAtMs: atMs },
      isLive: nowMs - atMs < lifeMs,
    }));
    const [gone, live] = [false, true].map((is) =>
      seen.filter(({ isLive }) => isLive === is).map((one) => one.program),
    );
    return vanishedPrograms(gone ?? [], live ?? [], nowMs);
  }

  #failIfDown(): void {
    if (this.down) throw new OperationalError('redis', 'memory program reports are down', { retryable: true });
  }
}
