import type { OrderBook } from '../../src/core/ports/order-book.js';
import type { Outbox } from '../../src/core/ports/outbox.js';
import type { CheckBack } from '../../src/core/ports/purchase-channel.js';
import type { RepairLedger } from '../../src/core/ports/repair-ledger.js';
import type { SettlementLedger } from '../../src/core/ports/settlement-ledger.js';
import type { SaleLedger, StockLedger } from '../../src/core/ports/stock-ledger.js';
import type { TransferLedger } from '../../src/core/ports/transfer-ledger.js';
import type { Delivery } from '../../src/core/ports/delivery-source.js';
import type { OrderMoves, OverdueOrders } from '../../src/core/ports/order-moves.js';
import type { Log } from '../../src/core/ports/log.js';
import type { Place } from '../../src/purchase/batcher.js';
import type { MemoryBooks } from '../helpers/memory/memory-books.js';
import type { MemoryBroker } from '../helpers/memory/memory-broker.js';
import type { MemoryCompensationBook } from '../helpers/memory/memory-compensation-book.js';
import type { MemoryDeadLetterBook } from '../helpers/memory/memory-dead-letter-book.js';
import type { MemoryLedger } from '../helpers/memory/memory-ledger.js';
import type { MemoryOrderMoves } from '../helpers/memory/memory-order-moves.js';
import type { MemoryPurchaseNews } from '../helpers/memory/memory-purchase-news.js';
import type { MemoryReconcileRuns } from '../helpers/memory/memory-reconcile-runs.js';
import type { MemoryRefundBook } from '../helpers/memory/memory-refund-book.js';
import type { MemorySaleCardCache } from '../helpers/memory/memory-sale-card-cache.js';
import type { MemoryWorkerSlots } from '../helpers/memory/memory-worker-slots.js';
import type { LifeWorld } from './engine/life.js';
import type { Shape } from './shape.js';

/** The servers as the programs reach them. A mutant replaces one of these. */
export interface Servers {
  readonly stock: StockLedger;
  /** Units that move between buckets. */
  readonly transfers: TransferLedger;
  readonly settlement: SettlementLedger;
  readonly repair: RepairLedger;
  /** The book as workers see it; everybody else reads the books themselves. */
  readonly orders: OrderBook;
  readonly moves: OrderMoves & OverdueOrders;
  readonly outbox: Outbox;
}

/** Rules that are no port; a mutant replaces one of these. */
export interface Rules {
  readonly place: (place: Place) => Place;
  readonly checkBack: (checkBack: CheckBack) => CheckBack;
  /** A delivery as a worker gets it. */
  readonly delivery: (delivery: Delivery) => Delivery;
  readonly redrives: boolean;
}

export interface Past {
  restarts: number;
  /** Restarts, and times that the sale was scattered: after each of them its books are rebuilt, in a new epoch. */
  repairs: number;
  /** Writes that are gone; 0 while Redis lost nothing. */
  lostWrites: number;
  /** When it lost something for the last time. */
  lostAtMs: number;
}

/** All that the programs of one run share. */
export interface Site extends LifeWorld {
  readonly shape: Shape;
  readonly ledger: MemoryLedger & SaleLedger;
  readonly books: MemoryBooks;
  readonly moves: MemoryOrderMoves;
  readonly letters: MemoryDeadLetterBook;
  readonly refunds: MemoryRefundBook;
  readonly news: MemoryPurchaseNews;
  readonly compensations: MemoryCompensationBook;
  readonly runs: MemoryReconcileRuns;
  readonly slots: MemoryWorkerSlots;
  readonly cache: MemorySaleCardCache;
  readonly broker: MemoryBroker;
  /** What Redis went through in this run. */
  readonly past: Past;
  readonly servers: Servers;
  readonly rules: Rules;
  readonly log: Log;
  /** Counts what the run came to: `kind: word`. */
  readonly count: (what: string) => void;
  /** A mistake of the program, or a promise that is broken: the run ends here. */
  readonly fail: (code: string, what: string) => void;
  /** Resolves when the broker may have something for the group, or after some seconds. */
  readonly arrival: (topic: string, group: string) => Promise<void>;
}

/** Reports what a program threw that is no fault of a dependency. */
export function onBug(site: Site): (error: unknown) => void {
  return (error) => site.fail('BUG', error instanceof Error ? (error.stack ?? error.message) : String(error));
}
