import type { Release } from './batch-store.js';

/**
 * The payload of an outbox row of kind `batch_recorded`, one per batch and committed with its rows. Payment deadlines
 * and order events are made of it. The key of the row is the batch id, its `created_at` the time of the orders.
 */
export interface BatchRecorded {
  readonly batchId: string;
  readonly saleId: string;
  /** Order ids that are live. */
  readonly orders: readonly string[];
  /** Order ids of rows that were written as `failed`. */
  readonly failed: readonly string[];
  /** From the time of the transaction, ms. */
  readonly paymentWindowMs: number;
  readonly metadata?: MetadataTexts;
  /** Of the span that placed the batch. Absent: it has none. */
  readonly traceparent?: string;
}

/**
 * By order id, each as JSON; of at least one order, absent where none has any. As text it holds no quoted order id but its
 * names, by which a trace finds the rows of an order.
 */
export type MetadataTexts = Readonly<Record<string, string>>;

/**
 * The payload of an outbox row of kind `orders_moved`: orders of one sale that made the same move in one transaction.
 * The key of the row is the first order id.
 */
export interface OrdersMoved {
  readonly move: 'paid' | 'cancelled' | 'expired';
  readonly saleId: string;
  readonly orders: readonly string[];
  readonly metadata?: MetadataTexts;
}

/** The payload of each kind of row. `release`: units that go back (protocol rule 7). */
export interface OutboxPayloads {
  readonly batch_recorded: BatchRecorded;
  readonly orders_moved: OrdersMoved;
  readonly release: readonly Release[];
}
export type OutboxKind = keyof OutboxPayloads;
export const OUTBOX_KINDS = ['batch_recorded', 'orders_moved', 'release'] as const satisfies readonly OutboxKind[];

/** An undone row, leased to us. */
export interface OutboxRow<K extends OutboxKind> {
  /** Decimal; grows with time. */
  readonly outboxId: string;
  readonly kind: K;
  /** Null when it cannot be read. */
  readonly payload: OutboxPayloads[K] | null;
  /** Time of its transaction, Unix ms on the clock of MySQL. */
  readonly createdAtMs: number;
  /** How often it was leased, with this time: 1 for the first. */
  readonly attempts: number;
}

export interface OutboxBacklog {
  readonly kind: OutboxKind;
  /** Rows that are not done, due or not. */
  readonly undone: number;
  /** Age of the oldest of them, ms; 0 when there is none. */
  readonly oldestMs: number;
}

/** Work that follows from committed transactions. Several keepers may take from it at once. */
export interface Outbox {
  /**
   * Undone rows of a kind that are due and not leased, those that are due for longest first, at most `max`. They are
   * ours for `leaseMs`; one that is neither done nor postponed by then is due again.
   * @throws OperationalError mysql; rows may have been leased, so they come after `leaseMs`
   */
  lease<K extends OutboxKind>(kind: K, max: number, leaseMs: number): Promise<OutboxRow<K>[]>;

  /**
   * Done for ever; again for a row that is done changes nothing.
   * @throws OperationalError mysql
   */
  markDone(outboxIds: readonly string[]): Promise<void>;

  /**
   * Makes rows due again in `delayMs`; a row that is done stays done.
   * @throws OperationalError mysql
   */
  postpone(outboxIds: readonly string[], delayMs: number): Promise<void>;

  /**
   * The same for rows that were leased and not tried: the lease does not count as an attempt.
   * @throws OperationalError mysql
   */
  giveBack(outboxIds: readonly string[], delayMs: number): Promise<void>;

  /**
   * How much is not done, one entry per kind.
   * @throws OperationalError mysql
   */
  backlog(): Promise<OutboxBacklog[]>;

  /**
   * Removes rows that were done more than `olderThanMs` ago, at most `max` of each kind.
   * @returns how many went
   * @throws OperationalError mysql; some may have gone
   */
  removeDone(olderThanMs: number, max: number): Promise<number>;
}
