import { join } from 'node:path';
import { systemClock } from '../../src/programs/system-clock.js';
import type { FailureReason } from '../../src/core/order.js';
import type { Sale } from '../../src/core/sale.js';
import { checkSale, waitUntilAtRest, type SaleCheck, type SaleFigures } from '../invariants/check-sale.js';
import { Buyers } from './harness/buyers.js';
import type { StackHands } from './harness/stack-hands.js';
import { joinLogs, type JoinedLogs } from './join-logs.js';
import { addFigures, NO_FIGURES, type RowFigures } from './row.js';

/** What a row that has failed may still wait for, before its books are looked at. */
const FAILED_REST_TIMEOUT_MS = 5_000;

export interface OwnSalesParts {
  readonly stack: StackHands;
  /** Where op logs are kept, and what their names begin with. */
  readonly logDir: string;
  readonly label: string;
  /** Reasons that an accepted purchase may fail for. */
  readonly mayFail: readonly FailureReason[];
}

/** The sales of one run of a row, who bought from them and what they heard: what is held against I1 to I8 at its end. */
export class OwnSales {
  readonly #parts: OwnSalesParts;
  readonly #own = new Map<string, { readonly sale: Sale; readonly buyers: Buyers[] }>();

  constructor(parts: OwnSalesParts) {
    this.#parts = parts;
  }

  add(sale: Sale): void {
    this.#own.set(sale.saleId, { sale, buyers: [] });
  }

  get all(): Sale[] {
    return [...this.#own.values()].map(({ sale }) => sale);
  }

  /** @param urls those of the apis that it asks, in turn; asked anew for each request */
  buyers(saleId: string, urls: () => readonly string[]): Buyers {
    const known = this.#own.get(saleId);
    if (known === undefined) throw new Error(`sale ${saleId} is not of this row; open it with arena.openSale`);
    const { logDir, label, stack } = this.#parts;
    const file = join(logDir, `${label}-sale-${saleId}-client-${known.buyers.length + 1}.jsonl`);
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, urls, file);
    known.buyers.push(buyers);
    return buyers;
  }

  /** Purchases, as `userId/requestId`, that were answered 2xx. */
  acceptedOf(saleId: string): Set<string> {
    const heard = [...this.#heard(saleId).entries];
    return new Set(heard.filter(([, said]) => said === 'ok').map(([key]) => key));
  }

  /** @throws when a sale is not at rest in time, or breaks an invariant */
  async rest(saleId: string, restTimeoutMs: number): Promise<SaleFigures> {
    const atRest = await this.#waitUntilAtRest(saleId, restTimeoutMs);
    const { figures, findings } = await this.#check(saleId);
    const told = `sale ${saleId}: ${JSON.stringify(figures)}`;
    if (findings.length > 0) {
      throw new Error(`${findings.map(({ invariant, detail }) => `${invariant} ${detail}`).join('; ')} in ${told}`);
    }
    if (!atRest) throw new Error(`not at rest after ${restTimeoutMs} ms, ${told}`);
    return figures;
  }

  /** Of all sales, also after a failure. @throws when a book cannot be read */
  async figures(): Promise<RowFigures> {
    let sum = NO_FIGURES;
    for (const [saleId, { buyers }] of this.#own) {
      const { figures } = await this.#check(saleId);
      const accepted = buyers.reduce((count, { opLog }) => count + opLog.count('ok'), 0);
      const requests = buyers.reduce((count, { opLog }) => count + opLog.requests, 0);
      const { rows, failedRows, oversold, duplicates, lost } = figures;
      sum = addFigures(sum, { requests, accepted, orders: rows - failedRows, failedRows, oversold, duplicates, lost });
    }
    return sum;
  }

  /**
   * What the checker says of every sale after the row has failed; ends its loads first, so that nothing is under way.
   * @returns sentences that begin with the invariant
   */
  async findings(): Promise<string[]> {
    await this.endLoads();
    const found = await Promise.all(
      [...this.#own.keys()].map(async (saleId) => {
        await this.#waitUntilAtRest(saleId, FAILED_REST_TIMEOUT_MS);
        return (await this.#check(saleId)).findings;
      }),
    );
    return found.flat().map(({ invariant, detail }) => `${invariant} ${detail}`);
  }

  /** Never rejects. */
  async endLoads(): Promise<void> {
    const buyers = [...this.#own.values()].flatMap((own) => own.buyers);
    await Promise.allSettled(buyers.map((client) => client.close()));
  }

  #waitUntilAtRest(saleId: string, timeoutMs: number): Promise<boolean> {
    return waitUntilAtRest(saleId, { ...this.#parts.stack.audit, clock: systemClock }, timeoutMs);
  }

  #check(saleId: string): Promise<SaleCheck> {
    const { entries, history } = this.#heard(saleId);
    return checkSale(saleId, this.#parts.stack.audit, entries, { history, mayFail: this.#parts.mayFail });
  }

  #heard(saleId: string): JoinedLogs {
    return joinLogs(this.#own.get(saleId)?.buyers.map(({ opLog }) => opLog) ?? []);
  }
}
