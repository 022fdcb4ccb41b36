import type { AuditLog } from '../../core/ports/audit-log.js';
import type { CompensationRepository } from '../../core/ports/compensation-repository.js';
import type { DeadLetterRepository } from '../../core/ports/dead-letter-repository.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import type { StockStore } from '../../core/ports/stock-store.js';
import type { TraceRepository, TraceSearch } from '../../core/ports/trace-repository.js';
import type { TraceBroker } from '../../core/ports/trace-broker.js';
import type { TraceStore } from '../../core/ports/trace-store.js';

export interface TracePorts {
  readonly sales: Pick<SaleRepository, 'find' | 'list'>;
  readonly stock: Pick<StockStore, 'findRequest' | 'readSale' | 'precheck'>;
  readonly store: TraceStore;
  readonly repository: TraceRepository;
  readonly deadLetters: Pick<DeadLetterRepository, 'list' | 'find'>;
  readonly jobs: Pick<CompensationRepository, 'byRequest' | 'byBatch'>;
  readonly audit: AuditLog;
  /** Null where the way to its admin port is not known. */
  readonly broker: TraceBroker | null;
}

/** What is asked for: a request id, batch id or order id, and what narrows it. */
export interface TraceQuery extends TraceSearch {
  readonly id: string;
}
