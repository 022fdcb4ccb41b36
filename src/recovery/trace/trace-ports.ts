import type { AuditLog } from '../../core/ports/audit-log.js';
import type { CompensationBook } from '../../core/ports/compensation-book.js';
import type { DeadLetterBook } from '../../core/ports/dead-letters.js';
import type { SaleBook } from '../../core/ports/sale-book.js';
import type { StockLedger } from '../../core/ports/stock-ledger.js';
import type { TraceBook, TraceSearch } from '../../core/ports/trace-book.js';
import type { TraceBroker } from '../../core/ports/trace-broker.js';
import type { TraceLedger } from '../../core/ports/trace-ledger.js';

export interface TracePorts {
  readonly sales: Pick<SaleBook, 'find' | 'list'>;
  readonly stock: Pick<StockLedger, 'findRequest' | 'readSale' | 'precheck'>;
  readonly ledger: TraceLedger;
  readonly book: TraceBook;
  readonly letters: Pick<DeadLetterBook, 'list' | 'find'>;
  readonly jobs: Pick<CompensationBook, 'byRequest' | 'byBatch'>;
  readonly audit: AuditLog;
  /** Null where the way to its admin port is not known. */
  readonly broker: TraceBroker | null;
}

/** What is asked for: a request id, batch id or order id, and what narrows it. */
export interface TraceQuery extends TraceSearch {
  readonly id: string;
}
