import { OperationalError } from '../../../src/core/errors.js';
import type { AnswerHistory, AnswersOfSecond } from '../../../src/core/ports/answer-history.js';
import type { Clock } from '../../../src/core/ports/clock.js';

interface Second {
  readonly sales: Map<string, Record<string, number>>;
  untilMs: number;
}

/** What buyers heard, in memory. */
export class MemoryAnswerHistory implements AnswerHistory {
  readonly #seconds = new Map<number, Second>();
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #keepMs: number;
  /** While true every call fails as if Redis were away. */
  down = false;

  constructor(clock: Pick<Clock, 'nowMs'>, keepMs = 3_600_000) {
    this.#clock = clock;
    this.#keepMs = keepMs;
  }

  async add(atMs: number, answers: AnswersOfSecond): Promise<void> {
    this.#failIfDown();
    const second = this.#seconds.get(atMs) ?? { sales: new Map(), untilMs: 0 };
    this.#seconds.set(atMs, second);
    second.untilMs = this.#clock.nowMs() + this.#keepMs;
    for (const [saleId, counts] of answers) {
      const known = second.sales.get(saleId) ?? {};
      second.sales.set(saleId, known);
      for (const [code, times] of Object.entries(counts)) known[code] = (known[code] ?? 0) + times;
    }
  }

  async read(fromMs: number, toMs: number, saleId?: string): Promise<ReadonlyMap<number, AnswersOfSecond>> {
    this.#failIfDown();
    const found = [...this.#seconds]
      .filter(([atMs, { untilMs }]) => atMs >= fromMs && atMs < toMs && untilMs > this.#clock.nowMs())
      .map(([atMs, { sales }]) => [atMs, ofSale(sales, saleId)] as const)
      .filter(([, sales]) => sales.size > 0);
    return new Map(found.sort(([one], [other]) => one - other));
  }

  #failIfDown(): void {
    if (this.down) throw new OperationalError('redis', 'memory answer history is down', { retryable: true });
  }
}

const ofSale = (sales: AnswersOfSecond, saleId: string | undefined): AnswersOfSecond =>
  new Map([...sales].filter(([one]) => saleId === undefined || one === saleId));
