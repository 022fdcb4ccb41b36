import type { SharedBreakers } from '../admission/breaker/shared-breakers.js';
import type { Dependency } from '../core/errors.js';
import type { OrderBook } from '../core/ports/order-book.js';
import type { OrderMoves } from '../core/ports/order-moves.js';
import type { PurchaseChannel } from '../core/ports/purchase-channel.js';
import type { SaleBook } from '../core/ports/sale-book.js';
import type { StockLedger } from '../core/ports/stock-ledger.js';

type Breakers = Pick<SharedBreakers, 'isOn' | 'watch'>;

/**
 * The ports of an api with the calls that buyers wait for watched by the breakers. A batch is a few calls, so what is
 * added is per batch: while the breakers are off, one look at their mode for each call.
 */
export const watchedPorts = (breakers: Breakers) => ({
  ledger: (ledger: StockLedger): StockLedger => watchedLedger(ledger, breakers),
  channel: (channel: PurchaseChannel): PurchaseChannel => watchedChannel(channel, breakers),
  orders: (book: OrderBook): OrderBook => watchedOrders(book, breakers),
  moves: (moves: OrderMoves): OrderMoves => watchedMoves(moves, breakers),
  sales: (book: SaleBook): SaleBook => watchedSales(book, breakers),
});
export type WatchedPorts = ReturnType<typeof watchedPorts>;

/** Two words stand for a failure where a call never throws. `acceptedKeys` is many calls, and no buyer waits for it. */
function watchedLedger(ledger: StockLedger, breakers: Breakers): StockLedger {
  const watched = watcher('redis', breakers);
  return {
    ...ledger,
    precheck: watched((ref, purchases) => ledger.precheck(ref, purchases)),
    deduct: watched(
      (batch) => ledger.deduct(batch),
      ({ outcome }) => outcome === 'outcome_unknown',
    ),
    decide: watched(
      (ref) => ledger.decide(ref),
      (fate) => fate === 'outcome_unknown',
    ),
    findRequest: watched((ref, userId, requestId) => ledger.findRequest(ref, userId, requestId)),
    readSale: watched((ref) => ledger.readSale(ref)),
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

function watchedOrders(book: OrderBook, breakers: Breakers): OrderBook {
  const watched = watcher('mysql', breakers);
  return {
    ...book,
    findByPurchases: watched((saleId, purchases) => book.findByPurchases(saleId, purchases)),
    findOrder: watched((orderId) => book.findOrder(orderId)),
  };
}

function watchedMoves(moves: OrderMoves, breakers: Breakers): OrderMoves {
  const watched = watcher('mysql', breakers);
  return {
    ...moves,
    pay: watched((orderId, payment) => moves.pay(orderId, payment)),
    cancel: watched((orderId) => moves.cancel(orderId)),
  };
}

function watchedSales(book: SaleBook, breakers: Breakers): SaleBook {
  const watched = watcher('mysql', breakers);
  return { ...book, find: watched((saleId) => book.find(saleId)) };
}

type Call<A extends unknown[], T> = (...asked: A) => Promise<T>;

/** Watches calls of one dependency. `failed` tells a result that stands for a failure. */
const watcher =
  (dependency: Dependency, breakers: Breakers) =>
  <A extends unknown[], T>(call: Call<A, T>, failed?: (result: T) => boolean): Call<A, T> =>
  (...asked) =>
    breakers.isOn ? breakers.watch(dependency, () => call(...asked), failed) : call(...asked);
