import type { Batch } from '../batch.js';
import type { Metadata } from '../metadata.js';
import type { FailureReason, Order } from '../order.js';
import type { OrderRepository, SaleTerms } from './order-repository.js';

/** A row as the workers wrote it. */
export type WrittenRow = Order & { readonly metadata: Metadata | null };

/** A row as this build would write it. */
export interface PlannedRow {
  readonly userId: string;
  readonly requestId: string;
  readonly quantity: number;
  readonly amountCents: number;
  readonly failure: FailureReason | null;
  readonly metadata: Metadata | null;
  readonly paymentWindowMs: number;
}

/** A repository that answers as MySQL answered the workers, and writes nothing. */
export interface Replay {
  readonly repository: OrderRepository;
  /** The rows of the plans that the repository received. */
  readonly planned: readonly PlannedRow[];
}

/** The queries that a shadow runs on MySQL. They change nothing. Methods throw OperationalError mysql. */
export interface ShadowStore {
  /** Returns the rows of the purchases of a batch, whichever batch wrote them. */
  rowsOf(batch: Batch): Promise<WrittenRow[]>;

  /** Returns whether the message, or its batch, is a dead letter. */
  isParked(message: { readonly messageId: string; readonly batchId: string | null }): Promise<boolean>;

  termsOf(saleId: string): Promise<ReadonlyMap<string, SaleTerms>>;

  replay(batch: Batch, rows: readonly WrittenRow[], terms: ReadonlyMap<string, SaleTerms>): Promise<Replay>;
}
