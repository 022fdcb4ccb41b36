import type { MoneyState } from '../order.js';
import type { Release } from './batch-store.js';

/**
 * The payload of an outbox row of kind `batch_recorded`: one row per batch, committed with the rows of the batch. The
 * relay makes payment deadlines and order events from it. The key of the row is the batch id, and `created_at` is the
 * time of the orders.
 */
export interface BatchRecorded {
  readonly batchId: string;
  readonly saleId: string;
  /** Ids of live orders. */
  readonly orders: readonly string[];
  /** Ids of orders that were written as `failed`. */
  readonly failed: readonly string[];
  /** Time to pay after the transaction, ms. */
  readonly paymentWindowMs: number;
  readonly metadata?: MetadataTexts;
  /** `traceparent` of the span that placed the batch. Absent if there was no span. */
  readonly traceparent?: string;
}

/**
 * Metadata as JSON by order id. Contains at least one order, and is absent if no order has metadata. In its text, order
 * ids occur in quotes only as names, so a trace can find the rows of an order.
 */
export type MetadataTexts = Readonly<Record<string, string>>;

/** Transitions of an unpaid order. */
export type PurchaseMove = 'paid' | 'cancelled' | 'expired';
/**
 * Transitions of the money of a paid order.
 * - `refund_failed`: the provider refused, or the money came back to the shop
 * - `dispute_won`: the bank decided for the shop
 */
export type MoneyMove = MoneyState | 'refund_failed' | 'dispute_won';
export type OrderMove = PurchaseMove | MoneyMove;

/**
 * The payload of an outbox row of kind `orders_moved`: orders of one sale that made the same transition in one
 * transaction. The key of the row is the first order id.
 */
export interface OrdersMoved {
  readonly move: OrderMove;
  readonly saleId: string;
  readonly orders: readonly string[];
  readonly metadata?: MetadataTexts;
}

/** The payload of each kind of row. A `release` gives back units (protocol rule 7). */
export interface OutboxPayloads {
  readonly batch_recorded: BatchRecorded;
  readonly orders_moved: OrdersMoved;
  readonly release: readonly Release[];
}
export type OutboxKind = keyof OutboxPayloads;
export const OUTBOX_KINDS = ['batch_recorded', 'orders_moved', 'release'] as const satisfies readonly OutboxKind[];

/** A row that is not done and that this process has leased. */
export interface OutboxRow<K extends OutboxKind> {
  /** Decimal; grows with time. */
  readonly outboxId: string;
  readonly kind: K;
  /** Null if the payload cannot be read. */
  readonly payload: OutboxPayloads[K] | null;
  /** Time of the transaction, Unix ms on the clock of MySQL. */
  readonly createdAtMs: number;
  /** Number of leases, including this one. */
  readonly attempts: number;
}

export interface OutboxBacklog {
  readonly kind: OutboxKind;
  /** Rows that are not done, due or not. */
  readonly undone: number;
  /** Age of the oldest row that is not done, ms. 0 if there is none. */
  readonly oldestMs: number;
}

/** Work that must follow committed transactions. Several keepers may lease rows at once. */
export interface Outbox {
  /**
   * Leases at most `max` due rows of a kind for `leaseMs`, longest overdue first. A row that is neither done nor
   * postponed by then is due again.
   * @throws OperationalError mysql; some rows may be leased and are due again after `leaseMs`
   */
  lease<K extends OutboxKind>(kind: K, max: number, leaseMs: number): Promise<OutboxRow<K>[]>;

  /**
   * Marks rows as done, permanently. Has no effect on a row that is done already.
   * @throws OperationalError mysql
   */
  markDone(outboxIds: readonly string[]): Promise<void>;

  /**
   * Makes rows due again in `delayMs`. A row that is done stays done.
   * @throws OperationalError mysql
   */
  postpone(outboxIds: readonly string[], delayMs: number): Promise<void>;

  /**
   * Makes rows that were leased but not tried due again in `delayMs`. The lease then does not count as an attempt.
   * @throws OperationalError mysql
   */
  giveBack(outboxIds: readonly string[], delayMs: number): Promise<void>;

  /**
   * Counts the rows that are not done, with one entry per kind.
   * @throws OperationalError mysql
   */
  backlog(): Promise<OutboxBacklog[]>;

  /**
   * Removes at most `max` rows of each kind that were done more than `olderThanMs` ago.
   * @returns the number of removed rows
   * @throws OperationalError mysql; some rows may be removed
   */
  removeDone(olderThanMs: number, max: number): Promise<number>;
}
