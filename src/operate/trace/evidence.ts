import type { RequestEntry } from '../../core/outcome.js';
import type { RequestRef } from '../../core/purchase.js';
import type { Sale } from '../../core/sale.js';
import type { AuditLog, StoredAuditEntry } from '../../core/ports/audit-log.js';
import type { CompensationJob, CompensationRepository } from '../../core/ports/compensation-repository.js';
import type { TracedDeadLetter, TracedDeadLetters } from '../../core/ports/dead-letters.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import type { StockStore, StoredSale } from '../../core/ports/stock-store.js';
import type { TraceBroker, TracedMessage } from '../../rocketmq/admin/trace-broker.js';
import type { OrderTrace, TraceRepository, TraceSearch } from './trace-repository.js';
import type { TracedBatch, TraceStore } from './trace-store.js';

export interface TracePorts {
  /** 0 without cells. */
  readonly cell: number;
  readonly sales: SaleRepository;
  readonly stock: StockStore;
  readonly store: TraceStore;
  readonly repository: TraceRepository;
  readonly deadLetters: TracedDeadLetters;
  readonly jobs: CompensationRepository;
  readonly audit: AuditLog;
  /** Null if the admin port of the brokers is unknown. */
  readonly broker: TraceBroker | null;
}

/** The id of a request, batch, order, trace or dead letter, and filters that narrow the search. */
export interface TraceQuery extends TraceSearch {
  readonly id: string;
}

export interface StoreEvidence {
  /** The buyer's bucket of the sale, or null if it is not loaded. */
  readonly sale: StoredSale | null;
  /** Units left in all buckets of the sale. */
  readonly unitsLeft: number;
  /** Units that the buyer holds or has ordered in this sale. */
  readonly buyerUnits: number;
  /** Null if the request was never accepted, or is lost. */
  readonly entry: RequestEntry | null;
  /** The bucket is missing or needs a repair, which may change this data. */
  readonly unsure: boolean;
  readonly batch: (TracedBatch & { readonly batchId: string }) | null;
}

/** Redis is read first, then MySQL, then the others, so a change in between may appear twice. */
export interface PurchaseEvidence {
  readonly request: RequestRef;
  /** Null if MySQL does not know the sale. */
  readonly sale: Sale | null;
  readonly store: StoreEvidence;
  readonly repository: OrderTrace;
  readonly deadLetters: readonly TracedDeadLetter[];
  readonly jobs: readonly CompensationJob[];
  /** Messages of its batch at the brokers, or why no broker was asked. */
  readonly broker: readonly TracedMessage[] | string;
  /** Brokers that may have more messages but did not answer, each with the reason. */
  readonly silentBrokers: readonly string[];
  readonly audit: readonly StoredAuditEntry[];
}
