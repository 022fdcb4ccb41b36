import type { Registry } from 'prom-client';
import { OperationalError } from '../core/errors.js';
import { bugLog } from '../core/job.js';
import type { AnswerHistory, AnswersOfSecond } from '../core/ports/answer-history.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import { Tally } from './tally.js';

/** Sales that are counted apart; each is a label. */
const SALES_MAX = 20;
/** Those that have no place, and what names no sale that this process knows. */
const OTHER = 'other';
/** A sale whose buyers have been gone for so long gives its place to another. */
const QUIET_MS = 10 * 60_000;

interface SaleTally {
  readonly saleId: string;
  lastMs: number;
  readonly byCode: Map<string, () => void>;
}

/** Answers to purchases by sale and code, for a bounded number of sales: what do buyers of this sale hear? */
export class SaleAnswers {
  readonly #tally: Tally;
  readonly #isKnown: (saleId: string) => boolean;
  readonly #monotonicMs: () => number;
  readonly #sales = new Map<string, SaleTally>();
  /** Answers to sales that are known and have no place, since the last look. */
  #others = 0;
  readonly #other: SaleTally = { saleId: OTHER, lastMs: 0, byCode: new Map() };
  /** Nearly always the next request is for the same sale. */
  #latest: SaleTally = this.#other;

  /** @param isKnown whether there is such a sale, without asking anybody: made-up ones get no place */
  constructor(registry: Registry, isKnown: (saleId: string) => boolean, monotonicMs: () => number) {
    this.#tally = new Tally(
      registry,
      'seckill_sale_answers_total',
      `Answers to purchases by sale and code, for ${SALES_MAX} sales that are asked for; sale="${OTHER}" is the rest.`,
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

  /** What was answered since the last call. What was asked of made-up sales is in no part of it. */
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
    this.#latest.lastMs = nowMs; // it is not stamped with each of its requests, so its quiet begins now
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

export interface RememberAnswersPorts {
  readonly history: Pick<AnswerHistory, 'add'>;
  readonly clock: Clock;
  readonly log: Pick<Log, 'debug' | 'error'>;
}

/**
 * Adds what this process has answered to the history, each second when it is over, until the signal aborts; nothing while nobody
 * buys. A second that Redis does not take is lost: it may have been added, and these figures are for people. So is one that a
 * bug costs.
 */
export async function rememberAnswers(
  answers: Pick<SaleAnswers, 'takeNew'>,
  { history, clock, log }: RememberAnswersPorts,
  signal: AbortSignal,
): Promise<void> {
  const onBug = bugLog('the answers of a second were not remembered', { clock, log });
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
      if (err instanceof OperationalError) log.debug({ err }, 'the answers of a second were not remembered');
      else onBug(err);
    }
  }
}
