import type { OrderRepository } from '../../src/core/ports/order-repository.js';
import type { Outbox } from '../../src/core/ports/outbox.js';
import type { RepairStore } from '../../src/core/ports/repair-stores.js';
import type { BatchStore } from '../../src/core/ports/batch-store.js';
import type { SaleStore, StockStore } from '../../src/core/ports/stock-store.js';
import type { TransferStore } from '../../src/core/ports/transfer-store.js';
import type { OrderTransitions, OverdueOrders } from '../../src/core/ports/order-transitions.js';
import type { Log } from '../../src/core/ports/log.js';
import type { MemoryRepositories } from '../helpers/memory/memory-repositories.js';
import type { MemoryBroker } from '../helpers/memory/memory-broker.js';
import type { MemoryCompensationRepository } from '../helpers/memory/memory-compensation-repository.js';
import type { MemoryDeadLetterRepository } from '../helpers/memory/memory-dead-letter-repository.js';
import type { MemoryRedis } from '../helpers/memory/memory-redis.js';
import type { MemoryOrderTransitions } from '../helpers/memory/memory-order-transitions.js';
import type { MemoryPurchaseNotifications } from '../helpers/memory/memory-purchase-notifications.js';
import type { MemoryReconcileRuns } from '../helpers/memory/memory-reconcile-runs.js';
import type { MemoryRefundRepository } from '../helpers/memory/memory-refund-repository.js';
import type { MemorySaleSnapshotCache } from '../helpers/memory/memory-sale-snapshot-cache.js';
import type { MemoryWorkerSlots } from '../helpers/memory/memory-worker-slots.js';
import type { LifeWorld } from './engine/simulated-process.js';
import type { Shape } from './shape.js';

/** The servers as the programs reach them. */
export interface Servers {
  readonly stock: StockStore;
  /** Units that move between buckets. */
  readonly transfers: TransferStore;
  readonly settlement: BatchStore;
  readonly repair: RepairStore;
  /** The book as workers see it; everybody else reads the books themselves. */
  readonly orders: OrderRepository;
  readonly moves: OrderTransitions & OverdueOrders;
  readonly outbox: Outbox;
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
  readonly store: MemoryRedis & SaleStore;
  readonly books: MemoryRepositories;
  readonly moves: MemoryOrderTransitions;
  readonly deadLetters: MemoryDeadLetterRepository;
  readonly refunds: MemoryRefundRepository;
  readonly notifications: MemoryPurchaseNotifications;
  readonly compensations: MemoryCompensationRepository;
  readonly runs: MemoryReconcileRuns;
  readonly slots: MemoryWorkerSlots;
  readonly cache: MemorySaleSnapshotCache;
  readonly broker: MemoryBroker;
  /** What Redis went through in this run. */
  readonly past: Past;
  readonly servers: Servers;
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
