import { stepDueMs, type Sale } from '../../../src/core/sale.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { SaleSchedule } from '../../../src/core/ports/sale-repository.js';
import type { MemoryRepositories } from './memory-repositories.js';

const byId = (a: Sale, b: Sale): number => Number(BigInt(a.saleId) - BigInt(b.saleId));
const inOrder = (a: Sale, b: Sale): number => (stepDueMs(a) ?? 0) - (stepDueMs(b) ?? 0) || byId(a, b);

/** Returns the due work of the sales in memory, on an injected clock. */
export class MemorySaleSchedule implements SaleSchedule {
  readonly #repositories: MemoryRepositories;
  readonly #clock: Clock;
  readonly #compared = new Set<string>();
  readonly #compareAfterMs = new Map<string, number>();

  constructor(repositories: MemoryRepositories, clock: Clock) {
    this.#repositories = repositories;
    this.#clock = clock;
  }

  async due(max: number, behind?: Sale): Promise<Sale[]> {
    const nowMs = this.#clock.nowMs();
    const due = this.#dueNow(
      ({ state, closesAtMs }) => state !== 'closed' && (state !== 'draft' || closesAtMs > nowMs),
      Infinity,
    );
    const isBehind = (sale: Sale): boolean => behind === undefined || inOrder(behind, sale) < 0;
    return due.filter(isBehind).slice(0, max);
  }

  async toCompare(afterMs: number, max: number): Promise<Sale[]> {
    const nowMs = this.#clock.nowMs();
    return this.#dueNow(
      ({ state, closesAtMs, retiredAtMs }) =>
        state === 'closed' && retiredAtMs === null && closesAtMs <= nowMs - afterMs,
      max,
    );
  }

  async compared(saleId: string, actor: string): Promise<boolean> {
    if (this.#repositories.saleOf(saleId)?.state !== 'closed' || this.#compared.has(saleId)) return false;
    this.#compared.add(saleId);
    const change = { before: { state: 'closed' }, after: { state: 'closed', compared: 'match' } };
    this.#repositories.audited.push({ actor, action: 'sale.compared', subject: `sale:${saleId}`, ...change });
    return true;
  }

  async compareLater(saleId: string, afterMs: number): Promise<void> {
    this.#compareAfterMs.set(saleId, this.#clock.nowMs() + afterMs);
  }

  async coming(withinMs: number, max: number): Promise<Sale[]> {
    const nowMs = this.#clock.nowMs();
    const opensFirst = (a: Sale, b: Sale): number => a.opensAtMs - b.opensAtMs || byId(a, b);
    const sales = this.#repositories.allSales.filter(({ state }) => state !== 'closed');
    const found = sales
      .filter(({ opensAtMs, closesAtMs }) => opensAtMs <= nowMs + withinMs && closesAtMs > nowMs)
      .sort(opensFirst)
      .slice(0, max);
    const over = sales.filter(({ closesAtMs }) => closesAtMs <= nowMs).sort((a, b) => b.closesAtMs - a.closesAtMs);
    return [...over.slice(0, max - found.length).sort(opensFirst), ...found];
  }

  #dueNow(wanted: (sale: Sale) => boolean, max: number): Sale[] {
    const dueMs = (sale: Sale): number => this.#dueMs(sale) ?? Infinity;
    return this.#repositories.allSales
      .filter((sale) => dueMs(sale) <= this.#clock.nowMs() && wanted(sale))
      .sort((a, b) => dueMs(a) - dueMs(b) || byId(a, b))
      .slice(0, max);
  }

  #dueMs(sale: Sale): number | null {
    const { saleId } = sale;
    if (this.#compared.has(saleId)) return null;
    const dueMs = stepDueMs(sale);
    return sale.state === 'closed' && dueMs !== null ? (this.#compareAfterMs.get(saleId) ?? dueMs) : dueMs;
  }
}
