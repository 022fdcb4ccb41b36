import type { Batch } from '../batch.js';
import type { Metadata } from '../metadata.js';
import type { FailureReason, Order } from '../order.js';
import type { OrderRepository, SaleTerms } from './order-repository.js';

/** A row that the workers wrote. */
export type WrittenRow = Order & { readonly metadata: Metadata | null };

/** A row as the present build would write it. */
export interface PlannedRow {
  readonly userId: string;
  readonly requestId: string;
  readonly quantity: number;
  readonly amountCents: number;
  readonly failure: FailureReason | null;
  readonly metadata: Metadata | null;
  readonly paymentWindowMs: number;
}

/** A repository that answers as MySQL answered the workers. It writes nothing. */
export interface Replay {
  readonly repository: OrderRepository;
  /** The rows of the plans that the repository was given. */
  readonly planned: readonly PlannedRow[];
}

/** What a shadow reads of MySQL. It changes nothing there. */
export interface ShadowStore {
  /** Returns the rows of the purchases of a batch, whichever batch wrote them. @throws OperationalError mysql */
  rowsOf(batch: Batch): Promise<WrittenRow[]>;

  /** Whether a message is a dead letter, by itself or as its batch. @throws OperationalError mysql */
  isParked(message: { readonly messageId: string; readonly batchId: string | null }): Promise<boolean>;

  /** @throws OperationalError mysql */
  termsOf(saleId: string): Promise<ReadonlyMap<string, SaleTerms>>;

  /** @throws OperationalError mysql */
  replay(batch: Batch, rows: readonly WrittenRow[], terms: ReadonlyMap<string, SaleTerms>): Promise<Replay>;
}
