import type { OrderRepository } from '../../src/core/ports/order-repository.js';
import type { Outbox } from '../../src/core/ports/outbox.js';
import type { RepairStore } from '../../src/core/ports/repair-stores.js';
import type { BatchStore } from '../../src/core/ports/batch-store.js';
import type { SaleStore, StockStore } from '../../src/core/ports/stock-store.js';
import type { TransferStore } from '../../src/core/ports/transfer-store.js';
import type { OrderTransitions } from '../../src/core/ports/order-transitions.js';
import type { Log } from '../../src/core/ports/log.js';
import type { MemoryRepositories } from '../helpers/memory/memory-repositories.js';
import type { MemoryBroker } from '../helpers/memory/memory-broker.js';
import type { MemoryCompensationRepository } from '../helpers/memory/memory-compensation-repository.js';
import type { MemoryDeadLetters } from '../helpers/memory/memory-dead-letters.js';
import type { MemoryRedis } from '../helpers/memory/memory-redis.js';
import type { MemoryOrderTransitions } from '../helpers/memory/memory-order-transitions.js';
import type { MemoryPurchaseNotifications } from '../helpers/memory/memory-purchase-notifications.js';
import type { MemoryReconcileRuns } from '../helpers/memory/memory-reconcile-runs.js';
import type { MemoryPaymentAttempts } from '../helpers/memory/memory-payment-attempts.js';
import type { MemoryRefundRepository } from '../helpers/memory/memory-refund-repository.js';
import type { MemorySaleSnapshotCache } from '../helpers/memory/memory-sale-snapshot-cache.js';
import type { MemoryWorkerSlots } from '../helpers/memory/memory-worker-slots.js';
import type { ProcessWorld } from './engine/simulated-process.js';
import type { Shape } from './shape.js';

/** Servers whose calls pass through faults, by the names of the ports. */
export interface Servers {
  readonly stock: StockStore;
  readonly transfers: TransferStore;
  readonly batches: BatchStore;
  readonly repair: RepairStore;
  /** MySQL for the workers. All other programs use `repositories`. */
  readonly orders: OrderRepository;
  readonly transitions: OrderTransitions;
  readonly outbox: Outbox;
}

/** Restarts and losses of Redis in this run. */
export interface RedisHistory {
  restarts: number;
  /** Restarts and reshards. After each of them, the sale is rebuilt in a new epoch. */
  repairs: number;
  /** Number of lost writes; 0 while Redis lost nothing. */
  lostWrites: number;
  /** When it last lost data. */
  lostAtMs: number;
}

/** The servers in memory, faults, clock and trace that all programs of a run share. */
export interface SimulatedSystem extends ProcessWorld {
  readonly shape: Shape;
  readonly redis: MemoryRedis & SaleStore;
  readonly repositories: MemoryRepositories;
  readonly transitions: MemoryOrderTransitions;
  readonly deadLetters: MemoryDeadLetters;
  readonly refunds: MemoryRefundRepository;
  readonly attempts: MemoryPaymentAttempts;
  readonly notifications: MemoryPurchaseNotifications;
  readonly compensations: MemoryCompensationRepository;
  readonly runs: MemoryReconcileRuns;
  readonly slots: MemoryWorkerSlots;
  readonly cache: MemorySaleSnapshotCache;
  readonly broker: MemoryBroker;
  readonly past: RedisHistory;
  readonly servers: Servers;
  readonly log: Log;
  /** Counts an event: `kind: word`. */
  readonly count: (what: string) => void;
  /** Reports a bug of a program, or a broken promise, which ends the run. */
  readonly fail: (code: string, what: string) => void;
  /** Resolves when the broker may have something for the group, or after some seconds. */
  readonly arrival: (topic: string, group: string) => Promise<void>;
}

/** Reports an error other than a fault of a dependency. */
export function onBug(system: SimulatedSystem): (error: unknown) => void {
  return (error) => system.fail('BUG', error instanceof Error ? (error.stack ?? error.message) : String(error));
}
