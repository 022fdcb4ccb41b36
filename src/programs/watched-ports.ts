import type { SharedBreakers } from '../admission/breaker/shared-breakers.js';
import type { Dependency } from '../core/errors.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type { PurchaseChannel } from '../core/ports/channels.js';
import type { SaleRepository } from '../core/ports/sale-repository.js';
import type { StockStore } from '../core/ports/stock-store.js';

type Breakers = Pick<SharedBreakers, 'isOn' | 'watch'>;

/**
 * The ports of an api with the calls that buyers wait for watched by the breakers. A batch is a few calls, so what is
 * added is per batch: while the breakers are off, one look at their mode for each call.
 */
export const watchedPorts = (breakers: Breakers) => ({
  store: (store: StockStore): StockStore => watchedStore(store, breakers),
  channel: (channel: PurchaseChannel): PurchaseChannel => watchedChannel(channel, breakers),
  orders: (repository: OrderRepository): OrderRepository => watchedOrders(repository, breakers),
  moves: (moves: OrderTransitions): OrderTransitions => watchedMoves(moves, breakers),
  sales: (repository: SaleRepository): SaleRepository => watchedSales(repository, breakers),
});
export type WatchedPorts = ReturnType<typeof watchedPorts>;

/** Two words stand for a failure where a call never throws. `acceptedKeys` is many calls, and no buyer waits for it. */
function watchedStore(store: StockStore, breakers: Breakers): StockStore {
  const watched = watcher('redis', breakers);
  return {
    ...store,
    precheck: watched((ref, purchases) => store.precheck(ref, purchases)),
    deduct: watched(
      (batch) => store.deduct(batch),
      ({ outcome }) => outcome === 'outcome_unknown',
    ),
    resolve: watched(
      (ref) => store.resolve(ref),
      (fate) => fate === 'outcome_unknown',
    ),
    findRequest: watched((ref, userId, requestId) => store.findRequest(ref, userId, requestId)),
    readSale: watched((ref) => store.readSale(ref)),
  };
}

/** Commit and rollback never say how they went. */
function watchedChannel(channel: PurchaseChannel, breakers: Breakers): PurchaseChannel {
  const watched = watcher('rocketmq', breakers);
  return {
    sendHalf: watched(
      (batch) => channel.sendHalf(batch),
      (half) => typeof half === 'string',
    ),
  };
}

function watchedOrders(repository: OrderRepository, breakers: Breakers): OrderRepository {
  const watched = watcher('mysql', breakers);
  return {
    ...repository,
    findByPurchases: watched((saleId, purchases) => repository.findByPurchases(saleId, purchases)),
    findOrder: watched((orderId) => repository.findOrder(orderId)),
  };
}

function watchedMoves(moves: OrderTransitions, breakers: Breakers): OrderTransitions {
  const watched = watcher('mysql', breakers);
  return {
    ...moves,
    pay: watched((orderId, payment) => moves.pay(orderId, payment)),
    cancel: watched((orderId) => moves.cancel(orderId)),
  };
}

function watchedSales(repository: SaleRepository, breakers: Breakers): SaleRepository {
  const watched = watcher('mysql', breakers);
  return { ...repository, find: watched((saleId) => repository.find(saleId)) };
}

type Call<A extends unknown[], T> = (...asked: A) => Promise<T>;

/** Watches calls of one dependency. `failed` tells a result that stands for a failure. */
const watcher =
  (dependency: Dependency, breakers: Breakers) =>
  <A extends unknown[], T>(call: Call<A, T>, failed?: (result: T) => boolean): Call<A, T> =>
  (...asked) =>
    breakers.isOn ? breakers.watch(dependency, () => call(...asked), failed) : call(...asked);
