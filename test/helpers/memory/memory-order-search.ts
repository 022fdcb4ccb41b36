import { isId, isOrderId, isSaleId } from '../../../src/core/ids.js';
import type { Order } from '../../../src/core/order.js';
import { lowestOrderIdAt } from '../../../src/core/order-id.js';
import type { OrderDetails, OrderFilter, OrderPage, OrderSearch } from '../../../src/core/ports/order-search.js';
import type { MemoryRepositories } from './memory-repositories.js';

/** Finds the orders of repositories in memory. */
export class MemoryOrderSearch implements OrderSearch {
  readonly #repositories: MemoryRepositories;

  constructor(repositories: MemoryRepositories) {
    this.#repositories = repositories;
  }

  async page(filter: OrderFilter, after: string | null, max: number): Promise<OrderPage | null> {
    const { userId, saleId, state, fromMs, toMs, paidFromMs, paidToMs = Infinity } = filter;
    const lowest = (atMs: number): bigint => BigInt(lowestOrderIdAt(atMs));
    const found = this.#repositories.allOrders.filter(
      (order) =>
        (userId === undefined || order.userId === userId) &&
        (saleId === undefined || order.saleId === saleId) &&
        (state === undefined || order.state === state) &&
        (fromMs === undefined || BigInt(order.orderId) >= lowest(fromMs)) &&
        (toMs === undefined || BigInt(order.orderId) < lowest(toMs)) &&
        (paidFromMs === undefined ||
          (order.paidAtMs !== null && order.paidAtMs >= paidFromMs && order.paidAtMs < paidToMs)),
    );
    const page = userId === undefined ? byId(found, after, max) : byRequest(found, after, max);
    return page === null ? null : { ...page, orders: page.orders.map((order) => this.#repositories.shown(order)) };
  }

  async detailsOf(orders: readonly Order[]): Promise<ReadonlyMap<string, OrderDetails>> {
    return new Map(
      orders.map(({ orderId, saleId }) => {
        const { sku = '', title = '' } = this.#repositories.saleOf(saleId) ?? {};
        return [orderId, { sku, title, paymentId: null }];
      }),
    );
  }

  async currenciesOf(orderIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const found = this.#repositories.allOrders.filter(({ orderId }) => orderIds.includes(orderId));
    return new Map(found.map((order) => [order.orderId, this.#repositories.shown(order).currency]));
  }
}

type Page = Omit<OrderPage, 'orders'> & { readonly orders: readonly Order[] };

function byId(found: readonly Order[], after: string | null, max: number): Page | null {
  if (after !== null && !isOrderId(after)) return null;
  const orders = found
    .filter(({ orderId }) => after === null || BigInt(orderId) > BigInt(after))
    .sort((a, b) => (BigInt(a.orderId) < BigInt(b.orderId) ? -1 : 1))
    .slice(0, max);
  return { orders, next: orders.length < max ? null : (orders.at(-1)?.orderId ?? null) };
}

function byRequest(found: readonly Order[], after: string | null, max: number): Page | null {
  const [, saleId = '', requestId = ''] = /^([^.]+)\.(.+)$/.exec(after ?? '') ?? [];
  if (after !== null && (!isSaleId(saleId) || !isId(requestId))) return null;
  const precedes = (a: Pick<Order, 'saleId' | 'requestId'>, b: Pick<Order, 'saleId' | 'requestId'>): boolean =>
    a.saleId === b.saleId ? a.requestId > b.requestId : BigInt(a.saleId) > BigInt(b.saleId);
  const orders = found
    .filter((order) => after === null || precedes({ saleId, requestId }, order))
    .sort((a, b) => (precedes(a, b) ? -1 : 1))
    .slice(0, max);
  const last = orders.at(-1);
  return { orders, next: last === undefined || orders.length < max ? null : `${last.saleId}.${last.requestId}` };
}
