import type { BatchStore } from '../../src/core/ports/batch-store.js';
import type {
  HalfMessage,
  PurchaseChannel,
  RedriveChannel,
  Delivery,
  DeliverySource,
} from '../../src/core/ports/channels.js';
import type { CompensationRepository } from '../../src/core/ports/compensation-repository.js';
import type { DeadLetterParking } from '../../src/core/ports/dead-letters.js';
import type { OrderRepository, WorkerSlots } from '../../src/core/ports/order-repository.js';
import type { OrderRefunds } from '../../src/core/ports/order-refunds.js';
import type { OrderTransitions } from '../../src/core/ports/order-transitions.js';
import type { Outbox } from '../../src/core/ports/outbox.js';
import type { RepairRepository, RepairStore } from '../../src/core/ports/repair-stores.js';
import type { SaleRepository } from '../../src/core/ports/sale-repository.js';
import type { SaleStore, StockStore } from '../../src/core/ports/stock-store.js';
import type { TransferStore } from '../../src/core/ports/transfer-store.js';
import type { DeadLetterStore } from '../../src/operate/dead-letters/dead-letter-store.js';

/**
 * The name of a call, a method of a port, that a fault may hit or after which a promise is checked. The type rejects
 * names that no port has, which no fault would ever hit.
 */
export type CallName = keyof (BatchStore &
  CompensationRepository &
  DeadLetterParking &
  DeadLetterStore &
  Delivery &
  DeliverySource &
  HalfMessage &
  OrderRepository &
  OrderRefunds &
  OrderTransitions &
  Outbox &
  PurchaseChannel &
  RedriveChannel &
  RepairRepository &
  RepairStore &
  SaleRepository &
  SaleStore &
  StockStore &
  TransferStore &
  WorkerSlots) &
  string;
