import type { Registry } from 'prom-client';
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
    if (this.#sales.size >= SALES_MAX) return this.#other;
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
