import type { SharedBreakers } from '../admission/breaker/shared-breakers.js';
import type { Dependency } from '../core/errors.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type { PurchaseChannel } from '../core/ports/channels.js';
import type { SaleRepository } from '../core/ports/sale-repository.js';
import type { StockStore } from '../core/ports/stock-store.js';

/** Lets the breakers count the calls for which buyers wait. The cost is per batch, not per purchase. */
export function breakerWrappers(breakers: SharedBreakers) {
  /** @param failed recognises an answer that means failure, for calls that never throw */
  const throughBreaker =
    (dependency: Dependency) =>
    <A extends unknown[], T>(call: Call<A, T>, failed?: (answer: T) => boolean): Call<A, T> =>
    (...asked) =>
      breakers.isOn ? breakers.watch(dependency, () => call(...asked), failed) : call(...asked);
  const redis = throughBreaker('redis');
  const rocketmq = throughBreaker('rocketmq');
  const mysql = throughBreaker('mysql');
  return {
    /** `acceptedBuyers` makes many calls, and no buyer waits for them. */
    store: (store: StockStore): StockStore => ({
      ...store,
      precheck: redis((ref, purchases) => store.precheck(ref, purchases)),
      deduct: redis(
        (batch) => store.deduct(batch),
        ({ outcome }) => outcome === 'outcome_unknown',
      ),
      resolve: redis(
        (ref) => store.resolve(ref),
        (fate) => fate === 'outcome_unknown',
      ),
      findRequest: redis((ref, userId, requestId) => store.findRequest(ref, userId, requestId)),
      readSale: redis((ref) => store.readSale(ref)),
    }),
    /** Commit and rollback are not watched, because the buyer's answer depends on `sendHalf`. */
    channel: (channel: PurchaseChannel): PurchaseChannel => ({
      sendHalf: rocketmq(
        (batch) => channel.sendHalf(batch),
        (half) => typeof half === 'string',
      ),
    }),
    orders: (repository: OrderRepository): OrderRepository => ({
      ...repository,
      findByPurchases: mysql((saleId, purchases) => repository.findByPurchases(saleId, purchases)),
      findOrder: mysql((orderId) => repository.findOrder(orderId)),
      expiredOf: mysql((saleId, userIds) => repository.expiredOf(saleId, userIds)),
    }),
    transitions: (transitions: OrderTransitions): OrderTransitions => ({
      ...transitions,
      pay: mysql((orderId, payment) => transitions.pay(orderId, payment)),
      cancel: mysql((orderId) => transitions.cancel(orderId)),
    }),
    sales: (repository: SaleRepository): SaleRepository => ({
      ...repository,
      find: mysql((saleId) => repository.find(saleId)),
      newestId: mysql(() => repository.newestId()),
    }),
  };
}
export type BreakerWrappers = ReturnType<typeof breakerWrappers>;

type Call<A extends unknown[], T> = (...asked: A) => Promise<T>;
