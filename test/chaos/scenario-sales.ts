import { join } from 'node:path';
import type { FailureReason } from '../../src/core/order.js';
import type { Sale } from '../../src/core/sale.js';
import { checkSale, waitUntilAtRest, type SaleCheck, type SaleFigures } from '../invariants/check-sale.js';
import { Buyers } from './harness/buyers.js';
import { joinLogs, type JoinedLogs } from './harness/op-log.js';
import type { StackControls } from './harness/stack-controls.js';
import { grantedClock } from './harness/wait.js';

/** How long a failed scenario waits for rest before its sales are checked. */
const FAILED_REST_TIMEOUT_MS = 5_000;
/** Time limit of one attempt to buy. A buyer tries the next api if an api hangs. */
const TRY_TIMEOUT_MS = 5_000;

/** Totals over the sales of a scenario. */
export interface ScenarioFigures {
  /** Purchases sent, including retries with the same key. */
  readonly requests: number;
  /** Purchases that were answered 2xx at least once. */
  readonly accepted: number;
  /** Rows that are not failed. */
  readonly orders: number;
  readonly failedRows: number;
  /** Units. */
  readonly oversold: number;
  readonly duplicates: number;
  readonly lost: number;
}

export const NO_FIGURES: ScenarioFigures = Object.freeze({
  requests: 0,
  accepted: 0,
  orders: 0,
  failedRows: 0,
  oversold: 0,
  duplicates: 0,
  lost: 0,
});

export const addFigures = (a: ScenarioFigures, b: ScenarioFigures): ScenarioFigures => ({
  requests: a.requests + b.requests,
  accepted: a.accepted + b.accepted,
  orders: a.orders + b.orders,
  failedRows: a.failedRows + b.failedRows,
  oversold: a.oversold + b.oversold,
  duplicates: a.duplicates + b.duplicates,
  lost: a.lost + b.lost,
});

/** The sales, buyers and answers of a scenario run, on which I1 to I8 are checked. */
export class ScenarioSales {
  readonly #stack: StackControls;
  /** Path of the op logs, up to the end of their names. */
  readonly #logPrefix: string;
  /** Reasons for which an accepted purchase may fail. */
  readonly #mayFail: readonly FailureReason[];
  readonly #sales = new Map<string, { readonly sale: Sale; readonly buyers: Buyers[] }>();

  constructor(stack: StackControls, logDir: string, label: string, mayFail: readonly FailureReason[]) {
    this.#stack = stack;
    this.#logPrefix = join(logDir, label);
    this.#mayFail = mayFail;
  }

  add(sale: Sale): void {
    this.#sales.set(sale.saleId, { sale, buyers: [] });
  }

  get all(): Sale[] {
    return [...this.#sales.values()].map(({ sale }) => sale);
  }

  /** @param urls of the apis that buyers use, in turn; read again for each request */
  buyers(saleId: string, urls: () => readonly string[]): Buyers {
    const known = this.#sales.get(saleId);
    if (known === undefined) throw new Error(`the scenario has no sale ${saleId}; open it with context.openSale`);
    const file = `${this.#logPrefix}-sale-${saleId}-client-${known.buyers.length + 1}.jsonl`;
    const buyers = new Buyers(saleId, this.#stack.env.JWT_SECRET, urls, file);
    buyers.tryTimeoutMs = TRY_TIMEOUT_MS;
    known.buyers.push(buyers);
    return buyers;
  }

  /** Purchases, as `userId/requestId`, that were answered 2xx. */
  acceptedOf(saleId: string): Set<string> {
    const entries = [...this.#answersOf(saleId).entries];
    return new Set(entries.filter(([, outcome]) => outcome === 'ok').map(([key]) => key));
  }

  /** @throws if a sale is not at rest in time, or breaks an invariant */
  async expectInvariants(saleId: string, restTimeoutMs: number): Promise<SaleFigures> {
    const atRest = await this.#waitUntilAtRest(saleId, restTimeoutMs);
    const { figures, findings } = await this.#check(saleId);
    const state = `sale ${saleId}: ${JSON.stringify(figures)}`;
    if (findings.length > 0) {
      throw new Error(`${findings.map(({ invariant, detail }) => `${invariant} ${detail}`).join('; ')} in ${state}`);
    }
    if (!atRest) throw new Error(`not at rest after ${restTimeoutMs} ms, ${state}`);
    return figures;
  }

  /** Returns the figures of all sales, even after a failure. @throws if Redis or MySQL cannot be read */
  async figures(): Promise<ScenarioFigures> {
    let sum = NO_FIGURES;
    for (const [saleId, { buyers }] of this.#sales) {
      const { figures } = await this.#check(saleId);
      const { rows, failedRows, oversold, duplicates, lost } = figures;
      sum = addFigures(sum, {
        requests: buyers.reduce((count, { opLog }) => count + opLog.requests, 0),
        accepted: buyers.reduce((count, { opLog }) => count + opLog.count('ok'), 0),
        orders: rows - failedRows,
        failedRows,
        oversold,
        duplicates,
        lost,
      });
    }
    return sum;
  }

  /**
   * Returns the findings of the checker in every sale after a failure, as sentences that start with the invariant. Ends
   * the loads first, so that nothing is under way.
   */
  async findings(): Promise<string[]> {
    await this.endLoads();
    const found = await Promise.all(
      [...this.#sales.keys()].map(async (saleId) => {
        await this.#waitUntilAtRest(saleId, FAILED_REST_TIMEOUT_MS);
        return (await this.#check(saleId)).findings;
      }),
    );
    return found.flat().map(({ invariant, detail }) => `${invariant} ${detail}`);
  }

  /** Never rejects. */
  async endLoads(): Promise<void> {
    const buyers = [...this.#sales.values()].flatMap((sale) => sale.buyers);
    await Promise.allSettled(buyers.map((client) => client.close()));
  }

  #waitUntilAtRest(saleId: string, timeoutMs: number): Promise<boolean> {
    return waitUntilAtRest(saleId, { ...this.#stack.audit, clock: grantedClock() }, timeoutMs);
  }

  #check(saleId: string): Promise<SaleCheck> {
    const { entries, history } = this.#answersOf(saleId);
    return checkSale(saleId, this.#stack.audit, entries, { history, mayFail: this.#mayFail });
  }

  #answersOf(saleId: string): JoinedLogs {
    return joinLogs(this.#sales.get(saleId)?.buyers.map(({ opLog }) => opLog) ?? []);
  }
}
