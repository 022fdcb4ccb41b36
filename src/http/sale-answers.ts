import type { Registry } from 'prom-client';
import { OperationalError } from '../core/errors.js';
import { bugLog } from '../core/job.js';
import type { AnswerHistory, AnswersOfSecond } from '../core/ports/answer-history.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import { Tally } from './tally.js';

/** Maximum number of sales that have their own counters, because each such sale is a label. */
const SALES_MAX = 20;
/** The label of sales that have no counters of their own, and of unknown sales. */
const OTHER = 'other';
/** If a sale has no buyers for this long, another sale may take over its counters. */
const QUIET_MS = 10 * 60_000;

interface SaleTally {
  readonly saleId: string;
  lastMs: number;
  readonly byCode: Map<string, () => void>;
}

/** Counts the answers to purchases by sale and code, for a limited number of sales. */
export class SaleAnswers {
  readonly #tally: Tally;
  readonly #isKnown: (saleId: string) => boolean;
  readonly #monotonicMs: () => number;
  readonly #sales = new Map<string, SaleTally>();
  /** Answers to known sales that have no counters of their own, since the last call of `takeNew`. */
  #others = 0;
  readonly #other: SaleTally = { saleId: OTHER, lastMs: 0, byCode: new Map() };
  /** Counters of the latest sale. The next request is nearly always for the same sale. */
  #latest: SaleTally = this.#other;

  /** @param isKnown whether a sale exists, answered from memory. An unknown sale id gets no counters of its own */
  constructor(registry: Registry, isKnown: (saleId: string) => boolean, monotonicMs: () => number) {
    this.#tally = new Tally(
      registry,
      'seckill_sale_answers_total',
      `Answers to purchases by sale and code, for at most ${SALES_MAX} sales; sale="${OTHER}" is the rest.`,
      ['sale', 'code'],
    );
    this.#isKnown = isKnown;
    this.#monotonicMs = monotonicMs;
  }

  count(saleId: string, code: string): void {
    const sale = this.#latest.saleId === saleId ? this.#latest : this.#find(saleId);
    let add = sale.byCode.get(code);
    if (add === undefined) {
      add = this.#tally.bind([sale.saleId, code]);
      sale.byCode.set(code, add);
    }
    add();
  }

  /** Returns the answers since the last call, except answers about unknown sales. */
  takeNew(): AnswersOfSecond {
    const sales = new Map<string, Record<string, number>>();
    for (const [[saleId = '', code = ''], times] of this.#tally.takeNew()) {
      if (saleId === OTHER) continue;
      const counts = sales.get(saleId) ?? {};
      sales.set(saleId, counts);
      counts[code] = times;
    }
    const others = this.#others;
    this.#others = 0;
    return { sales, others };
  }

  #find(saleId: string): SaleTally {
    const nowMs = this.#monotonicMs();
    this.#latest.lastMs = nowMs; // single requests set no time stamp, so the sale counts as quiet only from now on
    const sale = this.#sales.get(saleId) ?? this.#admit(saleId, nowMs);
    sale.lastMs = nowMs;
    if (sale !== this.#other) this.#latest = sale;
    return sale;
  }

  #admit(saleId: string, nowMs: number): SaleTally {
    if (!this.#isKnown(saleId)) return this.#other;
    if (this.#sales.size >= SALES_MAX) this.#forgetQuiet(nowMs);
    if (this.#sales.size >= SALES_MAX) {
      this.#others++;
      return this.#other;
    }
    const sale = { saleId, lastMs: nowMs, byCode: new Map<string, () => void>() };
    this.#sales.set(saleId, sale);
    return sale;
  }

  #forgetQuiet(nowMs: number): void {
    for (const { saleId, lastMs, byCode } of this.#sales.values()) {
      if (nowMs - lastMs < QUIET_MS) continue;
      this.#sales.delete(saleId);
      for (const code of byCode.keys()) this.#tally.remove([saleId, code]);
    }
  }
}

const SECOND_MS = 1000;

/**
 * Adds the answers of this process to the history after each second, until the signal aborts. Adds nothing while there
 * are no purchases. If Redis does not confirm a second, or a bug occurs, that second is lost: it must not be added
 * twice, and the figures are only for people.
 */
export async function rememberAnswers(
  answers: SaleAnswers,
  { history, clock, log }: { readonly history: AnswerHistory; readonly clock: Clock; readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  const onBug = bugLog('the answers of a second were not stored', { clock, log });
  let adding = Promise.resolve();
  while (!signal.aborted) {
    const nowMs = clock.nowMs();
    const atMs = Math.floor(nowMs / SECOND_MS) * SECOND_MS;
    await clock.sleep(atMs + SECOND_MS - nowMs, signal);
    adding = remember(atMs);
  }
  await adding;

  async function remember(atMs: number): Promise<void> {
    try {
      const taken = answers.takeNew();
      if (taken.sales.size > 0 || taken.others > 0) await history.add(atMs, taken);
    } catch (err) {
      if (err instanceof OperationalError) log.debug({ err }, 'the answers of a second were not stored');
      else onBug(err);
    }
  }
}
