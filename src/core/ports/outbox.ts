import type { MoneyState } from '../order.js';
import type { Release } from './batch-store.js';

/**
 * Payload of `batch_recorded`: one row per batch, committed with its rows, for payment deadlines and order events. The
 * key is the batch id; `created_at` is the time of the orders.
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

/** JSON by order id, for at least one order. Order ids are in quotes only as names: a trace can find their rows. */
export type MetadataTexts = Readonly<Record<string, string>>;

/** Transitions of an unpaid order. */
export type PurchaseMove = 'paid' | 'cancelled' | 'expired';
/** Moves of the money of a paid order. `refund_failed`: refused, or the money came back. `dispute_won`: by the shop. */
export type MoneyMove = MoneyState | 'refund_failed' | 'dispute_won';
export type OrderMove = PurchaseMove | MoneyMove;

/** Payload of `orders_moved`: orders of one sale that made one transition together. The key is the first order id. */
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
  /** Null if unreadable. */
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

/** Work that must follow committed transactions, for several keepers. Methods throw OperationalError mysql. */
export interface Outbox {
  /** Leases due rows for `leaseMs`, longest overdue first. A row neither done nor postponed by then is due again. */
  lease<K extends OutboxKind>(kind: K, max: number, leaseMs: number): Promise<OutboxRow<K>[]>;

  /** Marks rows as done for good. Safe to repeat. */
  markDone(outboxIds: readonly string[]): Promise<void>;

  /** Makes rows due again in `delayMs`. A row that is done stays done. */
  postpone(outboxIds: readonly string[], delayMs: number): Promise<void>;

  /** Gives back rows that were leased but not tried: the lease does not count as an attempt. */
  giveBack(outboxIds: readonly string[], delayMs: number): Promise<void>;

  /** Counts the rows that are not done, with one entry per kind. */
  backlog(): Promise<OutboxBacklog[]>;

  /** Removes at most `max` rows of each kind, done more than `olderThanMs` ago. Returns their number. */
  removeDone(olderThanMs: number, max: number): Promise<number>;
}
