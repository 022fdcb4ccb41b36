import { OperationalError } from '../../../src/core/errors.js';
import type { AnswerCounts, AnswerHistory, AnswersOfSecond } from '../../../src/core/ports/answer-history.js';
import type { Clock } from '../../../src/core/ports/clock.js';

interface Second {
  readonly sales: Map<string, Record<string, number>>;
  others: number;
  untilMs: number;
}

/** The answers to buyers, in memory. */
export class MemoryAnswerHistory implements AnswerHistory {
  readonly #seconds = new Map<number, Second>();
  readonly #clock: Clock;
  readonly #keepMs: number;
  /** While true, every call fails as if Redis were down. */
  down = false;

  constructor(clock: Clock, keepMs = 3_600_000) {
    this.#clock = clock;
    this.#keepMs = keepMs;
  }

  async add(atMs: number, { sales, others }: AnswersOfSecond): Promise<void> {
    this.#failIfDown();
    const second = this.#seconds.get(atMs) ?? { sales: new Map(), others: 0, untilMs: 0 };
    this.#seconds.set(atMs, second);
    second.untilMs = this.#clock.nowMs() + this.#keepMs;
    second.others += others;
    for (const [saleId, counts] of sales) {
      const known = second.sales.get(saleId) ?? {};
      second.sales.set(saleId, known);
      for (const [code, times] of Object.entries(counts)) known[code] = (known[code] ?? 0) + times;
    }
  }

  async busy(fromMs: number, toMs: number): Promise<ReadonlyMap<string, number>> {
    const busy = new Map<string, number>();
    for (const [, { sales }] of this.#between(fromMs, toMs)) {
      for (const [saleId, counts] of sales) {
        for (const times of Object.values(counts)) busy.set(saleId, (busy.get(saleId) ?? 0) + times);
      }
    }
    return busy;
  }

  async read(saleId: string, fromMs: number, toMs: number): Promise<ReadonlyMap<number, AnswerCounts | null>> {
    return new Map(
      this.#between(fromMs, toMs)
        .filter(([, { sales, others }]) => sales.has(saleId) || others > 0)
        .map(([atMs, { sales }]) => [atMs, sales.get(saleId) ?? null]),
    );
  }

  #between(fromMs: number, toMs: number): [atMs: number, second: Second][] {
    this.#failIfDown();
    return [...this.#seconds]
      .filter(([atMs, { untilMs }]) => atMs >= fromMs && atMs < toMs && untilMs > this.#clock.nowMs())
      .sort(([one], [other]) => one - other);
  }

  #failIfDown(): void {
    if (this.down) throw new OperationalError('redis', 'memory answer history is down', { retryable: true });
  }
}
