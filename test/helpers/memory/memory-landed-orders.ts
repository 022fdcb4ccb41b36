import { mintedAtMs } from '../../../src/core/order-id.js';
import type { LandedOrders, OrdersBySale, OrdersBySecond } from '../../../src/core/ports/landed-orders.js';
import type { MemoryRepositories } from './memory-repositories.js';

/** Returns when the orders of the repositories in memory were written. */
export class MemoryLandedOrders implements LandedOrders {
  readonly #repositories: Pick<MemoryRepositories, 'allOrders'>;

  constructor(repositories: Pick<MemoryRepositories, 'allOrders'>) {
    this.#repositories = repositories;
  }

  async bySale(saleIds: readonly string[], fromMs: number, toMs: number): Promise<OrdersBySale> {
    const counts = new Map<string, number>();
    for (const { saleId } of this.#written(fromMs, toMs)) {
      if (saleIds.includes(saleId)) counts.set(saleId, (counts.get(saleId) ?? 0) + 1);
    }
    return counts;
  }

  async bySecond(
    saleId: string,
    fromMs: number,
    toMs: number,
  ): Promise<{ readonly seconds: OrdersBySecond; readonly readToMs: number }> {
    const seconds = new Map<number, number>();
    for (const order of this.#written(fromMs, toMs)) {
      const atMs = Math.floor(mintedAtMs(order.orderId) / 1000) * 1000;
      if (order.saleId === saleId) seconds.set(atMs, (seconds.get(atMs) ?? 0) + 1);
    }
    return { seconds: new Map([...seconds].sort(([one], [other]) => one - other)), readToMs: toMs };
  }

  #written(fromMs: number, toMs: number) {
    return this.#repositories.allOrders.filter(({ orderId }) => {
      const atMs = mintedAtMs(orderId);
      return atMs >= fromMs && atMs < toMs;
    });
  }
}
