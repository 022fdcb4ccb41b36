import { join } from 'node:path';
import type { FailureReason } from '../../src/core/order.js';
import type { Sale } from '../../src/core/sale.js';
import { systemClock } from '../../src/programs/system-clock.js';
import type { ClientHistory, Look, Move } from '../invariants/check-history.js';
import { checkSale, type Heard, type SaleCheck, type SaleFigures, waitUntilAtRest } from '../invariants/check-sale.js';
import { Buyers } from './harness/buyers.js';
import type { OpLog } from './harness/op-log.js';
import type { StackHands } from './harness/stack-controls.js';
import { addFigures, NO_FIGURES, type RowFigures } from './scenario.js';

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

/** What all clients of a sale heard, as one. */
export interface JoinedLogs {
  readonly entries: ReadonlyMap<string, Heard>;
  readonly history: ClientHistory;
}

/**
 * Joins the op logs of several clients. A purchase that two of them tried: ok if either heard ok, fail if both heard
 * fail, else unknown; its `sold_out` counts only when no other client heard otherwise. Looks of two clients at one
 * purchase have no common order, so only those of the first are kept.
 */
export function joinLogs(logs: readonly OpLog[]): JoinedLogs {
  const entries = new Map<string, Heard>();
  const moves = new Map<string, Set<Move>>();
  const looks = new Map<string, readonly Look[]>();
  const soldOut = new Map<string, number>();
  for (const log of logs) {
    for (const [key, heard] of log.entries) entries.set(key, joined(entries.get(key), heard));
    for (const [orderId, said] of log.moves) moves.set(orderId, new Set([...(moves.get(orderId) ?? []), ...said]));
    for (const [key, seen] of log.looks) if (!looks.has(key)) looks.set(key, seen);
    for (const [key, quantity] of log.soldOut) soldOut.set(key, quantity);
  }
  for (const key of soldOut.keys()) {
    if (logs.some((log) => log.entries.has(key) && !log.soldOut.has(key))) soldOut.delete(key);
  }
  return { entries, history: { moves, looks, soldOut } };
}

function joined(before: Heard | undefined, heard: Heard): Heard {
  if (before === undefined || before === heard) return heard;
  return before === 'ok' || heard === 'ok' ? 'ok' : 'unknown';
}
