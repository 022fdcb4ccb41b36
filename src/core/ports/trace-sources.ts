import type { Metadata } from '../metadata.js';
import type { Order } from '../order.js';
import type { RequestEntry } from '../outcome.js';
import type { RequestRef } from '../purchase.js';
import type { OutboxKind } from './outbox.js';
import type { BucketRef } from '../bucket.js';

interface TracedPayment {
  readonly paymentId: string;
  readonly amountCents: number;
  readonly atMs: number;
}

/** Money that is owed back or was paid back. */
interface TracedRefund extends TracedPayment {
  readonly reason: string;
  readonly state: 'due' | 'refunded';
  readonly updatedAtMs: number;
}

/** An outbox row that concerns the purchase. */
export interface TracedOutboxRow {
  readonly outboxId: string;
  readonly kind: OutboxKind;
  readonly attempts: number;
  readonly atMs: number;
  /** When the row is due, or its lease ends. */
  readonly availableAtMs: number;
  /** Null while it is not done. */
  readonly doneAtMs: number | null;
}

/** All data of one purchase in MySQL, except dead letters and the audit log. Times in Unix ms on the clock of MySQL. */
export interface OrderTrace {
  /** Null while the purchase is not recorded. */
  readonly order:
    | (Order & { readonly updatedAtMs: number; readonly metadata: Metadata | null; readonly traceId: string | null })
    | null;
  readonly payments: readonly TracedPayment[];
  readonly refunds: readonly TracedRefund[];
  readonly couponAtMs: number | null;
  readonly outboxRows: readonly TracedOutboxRow[];
  readonly nowMs: number;
}

export interface TraceSearch {
  readonly saleId?: string;
  readonly userId?: string;
}

/** Reads all data of one purchase from MySQL. */
export interface TraceRepository {
  /**
   * Finds purchases whose row has this order id or batch id, or this request id of the buyer in `search`. Uses an
   * index, so it is cheap.
   * @throws OperationalError mysql
   */
  findRequests(id: string, search: TraceSearch, max: number): Promise<RequestRef[]>;

  /**
   * Finds purchases that were recorded with this trace id. Uses an index.
   * @throws OperationalError mysql
   */
  findByTrace(traceId: string, search: TraceSearch, max: number): Promise<RequestRef[]>;

  /**
   * Finds purchases of any buyer with this request id. Reads the orders of the sale in `search`, or else the newest
   * 500,000 orders of all sales.
   * @throws OperationalError mysql
   */
  walkForRequest(requestId: string, search: TraceSearch, max: number): Promise<RequestRef[]>;

  /** @throws OperationalError mysql */
  read(request: RequestRef): Promise<OrderTrace>;
}

/** The data of one batch in Redis. */
export interface TracedBatch {
  /** The kind of the marker. Null: there is no marker, or no longer. */
  readonly marker: 'deducted' | 'aborted' | 'claimed' | null;
  /** The body of the batch, until it is recorded. */
  readonly body: string | null;
  /** Time since which the batch is deducted and not recorded, Unix ms on Redis time. Null: it is not in `pending`. */
  readonly pendingSinceMs: number | null;
}

/** Reads all data of one purchase from Redis. Changes nothing. */
export interface TraceStore {
  /**
   * Returns the buyers whose request with this id was accepted, at most `max`. Reads all requests of the bucket, in
   * chunks.
   * @throws OperationalError redis
   */
  buyersOf(ref: BucketRef, requestId: string, max: number): Promise<string[]>;

  /**
   * Returns the entry of one request as it is, even if the bucket may have lost later writes.
   * @throws OperationalError redis
   */
  entryOf(ref: BucketRef, userId: string, requestId: string): Promise<RequestEntry | null>;

  /**
   * Returns the units that a buyer holds or has ordered.
   * @throws OperationalError redis
   */
  unitsOf(ref: BucketRef, userId: string): Promise<number>;

  /**
   * Returns bodies of batches in `pending` that name this trace id, among the newest 2,000.
   * @throws OperationalError redis
   */
  pendingWith(ref: BucketRef, traceId: string): Promise<string[]>;

  /** @throws OperationalError redis */
  readBatch(ref: BucketRef, batchId: string): Promise<TracedBatch>;
}

/** A message of a batch that the broker still stores. Times in Unix ms on the clock of the broker. */
export interface TracedMessage {
  /** A half message, a message visible to workers (committed), or a message published again. */
  readonly kind: 'half' | 'committed' | 'redriven';
  readonly storedAtMs: number;
}

/** A broker that holds a part of the answer and did not give it. */
export interface SilentBroker {
  readonly name: string;
  /** The reason, for people. */
  readonly why: string;
}

/** The results of the brokers that answered. */
export interface FromBrokers<T> {
  readonly found: readonly T[];
  /** Brokers whose data is missing. */
  readonly silent: readonly SilentBroker[];
}

/**
 * Searches the brokers for one batch. Brokers forget messages after days. Every method throws OperationalError rocketmq
 * when no name server answers.
 */
export interface TraceBroker {
  /** @param without names of brokers to skip: each silent broker costs seconds */
  messagesOf(batchId: string, without?: ReadonlySet<string>): Promise<FromBrokers<TracedMessage>>;
  /** Returns bodies of half messages with this trace id as a key, in any state. Nothing has verified their sender. */
  halvesOf(traceId: string): Promise<FromBrokers<string>>;
}
