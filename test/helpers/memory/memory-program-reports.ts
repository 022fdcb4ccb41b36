import { OperationalError } from '../../../src/core/errors.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { LiveProgram, ProgramReport, ProgramReports } from '../../../src/core/ports/program-reports.js';

interface Stored {
  readonly report: ProgramReport;
  readonly atMs: number;
  readonly lifeMs: number;
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
    this.#reports.set(processId, { report, atMs: this.#clock.nowMs(), lifeMs });
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

  #failIfDown(): void {
    if (this.down) throw new OperationalError('redis', 'memory program reports are down', { retryable: true });
  }
}
