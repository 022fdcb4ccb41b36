import { OperationalError } from '../../../src/core/errors.js';
import type { Order } from '../../../src/core/order.js';
import type { ArchiveStep, OrderArchive } from '../../../src/core/ports/order-archive.js';
import type { OrderCursor } from '../../../src/core/ports/reconcile-repository.js';
import type { MemoryRepositories } from './memory-repositories.js';

/** Moves orders of `MemoryRepositories`. Reads still find them, but the unique keys do not. */
export class MemoryOrderArchive implements OrderArchive {
  readonly #repositories: MemoryRepositories;
  readonly #hasOpenMoney: (orderId: string) => boolean;
  readonly #begun = new Map<string, 'archiving' | 'archived'>();
  /** Due times of sales whose move has begun. */
  readonly #dueMs = new Map<string, number>();
  readonly #faults: ('move_fails' | 'move_reply_lost' | 'move_refused')[] = [];

  constructor(repositories: MemoryRepositories, hasOpenMoney: (orderId: string) => boolean = () => false) {
    this.#repositories = repositories;
    this.#hasOpenMoney = hasOpenMoney;
  }

  /** Injects a fault for the next call of its kind. After a lost reply the orders are still moved. */
  breakNext(...faults: ('move_fails' | 'move_reply_lost' | 'move_refused')[]): void {
    this.#faults.push(...faults);
  }

  isArchived(saleId: string): boolean {
    return this.#begun.get(saleId) === 'archived';
  }

  async due(afterMs: number, max: number): Promise<string[]> {
    const untilMs = this.#repositories.clock.nowMs() - afterMs;
    const sales = this.#repositories.allSales
      .filter(({ saleId, retiredAtMs }) => {
        return retiredAtMs !== null && retiredAtMs <= untilMs && this.#repositories.hasForgotten(saleId);
      })
      .filter(({ saleId }) => !this.isArchived(saleId))
      .map(({ saleId, retiredAtMs }) => {
        return { saleId, dueMs: this.#dueMs.get(saleId) ?? (retiredAtMs ?? 0) + afterMs };
      });
    return sales
      .filter(({ dueMs }) => dueMs <= this.#repositories.clock.nowMs())
      .sort((a, b) => a.dueMs - b.dueMs)
      .map(({ saleId }) => saleId)
      .slice(0, max);
  }

  async begin(saleId: string, actor: string): Promise<void> {
    const sale = this.#repositories.saleOf(saleId);
    if (sale === undefined || !this.#repositories.hasForgotten(saleId) || this.#begun.has(saleId)) return;
    this.#begun.set(saleId, 'archiving');
    this.#dueMs.set(saleId, sale.retiredAtMs ?? 0);
    this.#repositories.putSale({ ...sale, epoch: sale.epoch + 1 });
    this.#repositories.audited.push({
      actor,
      action: 'sale.archived',
      subject: `sale:${saleId}`,
      before: null,
      after: null,
    });
  }

  async move(saleId: string, from: OrderCursor | null, max: number): Promise<ArchiveStep> {
    const fault = this.#faults.shift();
    if (fault === 'move_fails') throw new OperationalError('mysql', 'fault of the test', { retryable: true });
    if (fault === 'move_refused') throw new OperationalError('mysql', 'fault of the test', { retryable: false });
    const readTo = BigInt(from?.readTo ?? 0);
    const orders = this.#live(saleId)
      .filter(({ orderId }) => BigInt(orderId) > readTo)
      .sort((a, b) => (BigInt(a.orderId) < BigInt(b.orderId) ? -1 : 1))
      .slice(0, max);
    const moved = orders.filter(({ orderId, state }) => state !== 'pending_payment' && !this.#hasOpenMoney(orderId));
    for (const { orderId } of moved) this.#repositories.archived.add(orderId);
    if (fault === 'move_reply_lost') throw new OperationalError('mysql', 'fault of the test', { retryable: true });
    const last = orders.length < max ? undefined : orders.at(-1);
    return {
      moved: moved.length,
      kept: orders.length - moved.length,
      next: last === undefined ? null : { afterFirst: '0', readTo: last.orderId },
    };
  }

  async later(saleId: string, afterMs: number): Promise<void> {
    if (this.#begun.get(saleId) === 'archiving') this.#dueMs.set(saleId, this.#repositories.clock.nowMs() + afterMs);
  }

  async finish(saleId: string): Promise<boolean> {
    if (this.isArchived(saleId)) return true;
    if (this.#begun.get(saleId) !== 'archiving' || this.#live(saleId).length > 0) return false;
    this.#begun.set(saleId, 'archived');
    return true;
  }

  #live(saleId: string): Order[] {
    const { allOrders, archived } = this.#repositories;
    return allOrders.filter((order) => order.saleId === saleId && !archived.has(order.orderId));
  }
}
