import type { RequestEntry } from '../../core/outcome.js';
import type { RequestRef } from '../../core/purchase.js';
import type { Sale } from '../../core/sale.js';
import type { AuditLog, StoredAuditEntry } from '../../core/ports/audit-log.js';
import type { CompensationJob, CompensationRepository } from '../../core/ports/compensation-repository.js';
import type { DeadLetterRepository, DeadLetterSummary } from '../../core/ports/dead-letter-repository.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import type { StockStore, StoredSale } from '../../core/ports/stock-store.js';
import type {
  OrderTrace,
  TraceBroker,
  TracedBatch,
  TracedMessage,
  TraceRepository,
  TraceSearch,
  TraceStore,
} from '../../core/ports/trace-sources.js';

/** Where the evidence is read. */
export interface TracePorts {
  readonly sales: Pick<SaleRepository, 'find' | 'list'>;
  readonly stock: Pick<StockStore, 'findRequest' | 'readSale' | 'precheck'>;
  readonly store: TraceStore;
  readonly repository: TraceRepository;
  readonly deadLetters: Pick<DeadLetterRepository, 'list' | 'find'>;
  readonly jobs: Pick<CompensationRepository, 'byRequest' | 'byBatch'>;
  readonly audit: Pick<AuditLog, 'list'>;
  /** Null where the way to its admin port is not known. */
  readonly broker: TraceBroker | null;
}

/** The id of a request, batch, order or trace, or the number of a dead letter; and what narrows the search. */
export interface TraceQuery extends TraceSearch {
  readonly id: string;
}

/** What Redis has of one purchase. */
export interface StoreEvidence {
  /** Its bucket of the sale; null: it is not loaded. */
  readonly sale: StoredSale | null;
  /** Units left in all buckets of the sale. */
  readonly unitsLeft: number;
  /** Units that the buyer holds or has ordered in this sale. */
  readonly buyerUnits: number;
  /** Null: never accepted, or lost. */
  readonly entry: RequestEntry | null;
  /** The bucket is missing, in repair or in need of it: what it says of the purchase may change with the repair. */
  readonly unsure: boolean;
  /** Its batch, where a batch is known. */
  readonly batch: (TracedBatch & { readonly batchId: string }) | null;
}

/**
 * Everything that the stores have of one purchase. Redis is read first, then MySQL, then the rest, several at once: no two of them
 * as of the same moment, so a change meanwhile may show twice.
 */
export interface PurchaseEvidence {
  readonly request: RequestRef;
  /** Null: MySQL does not know the sale. */
  readonly sale: Sale | null;
  readonly store: StoreEvidence;
  readonly repository: OrderTrace;
  readonly deadLetters: readonly DeadLetterSummary[];
  readonly jobs: readonly CompensationJob[];
  /** What the brokers have of its batch, or why none was asked. */
  readonly broker: readonly TracedMessage[] | string;
  /** Which brokers may have more and did not answer, and why. */
  readonly silentBrokers: readonly string[];
  readonly audit: readonly StoredAuditEntry[];
}
