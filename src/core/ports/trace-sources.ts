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

/** Money that is owed back, or was paid back. */
interface TracedRefund extends TracedPayment {
  readonly reason: string;
  readonly state: 'due' | 'refunded';
  readonly updatedAtMs: number;
}

/** A row of the outbox that concerns the purchase. */
export interface TracedOutboxRow {
  readonly outboxId: string;
  readonly kind: OutboxKind;
  readonly attempts: number;
  readonly atMs: number;
  /** When it is due, or its lease ends. */
  readonly availableAtMs: number;
  /** Null while it is not done. */
  readonly doneAtMs: number | null;
}

/** Everything MySQL has of one purchase, except dead letters and the audit log. Times in Unix ms on its clock. */
export interface OrderTrace {
  /** Null while it is not recorded. */
  readonly order:
    | (Order & { readonly updatedAtMs: number; readonly metadata: Metadata | null; readonly traceId: string | null })
    | null;
  readonly payments: readonly TracedPayment[];
  readonly refunds: readonly TracedRefund[];
  readonly couponAtMs: number | null;
  readonly outboxRows: readonly TracedOutboxRow[];
  readonly nowMs: number;
}

/** What a search may be narrowed by. */
export interface TraceSearch {
  readonly saleId?: string;
  readonly userId?: string;
}

/** Reads everything in MySQL about one purchase. */
export interface TraceRepository {
  /**
   * Purchases whose row has this order id or batch id, or this request id of the buyer in `search`; by index, so cheap.
   * @throws OperationalError mysql
   */
  findRequests(id: string, search: TraceSearch, max: number): Promise<RequestRef[]>;

  /**
   * Purchases that were recorded with this trace id; by index.
   * @throws OperationalError mysql
   */
  findByTrace(traceId: string, search: TraceSearch, max: number): Promise<RequestRef[]>;

  /**
   * Purchases with this request id, of any buyer: reads the orders of the sale in `search`, or else the newest
   * 500,000 orders of all sales.
   * @throws OperationalError mysql
   */
  walkForRequest(requestId: string, search: TraceSearch, max: number): Promise<RequestRef[]>;

  /** @throws OperationalError mysql */
  read(request: RequestRef): Promise<OrderTrace>;
}

/** What Redis has of one batch. */
export interface TracedBatch {
  /** The kind of the marker; null: there is none (any more). */
  readonly marker: 'deducted' | 'aborted' | 'claimed' | null;
  /** The batch itself, until it is recorded. */
  readonly body: string | null;
  /** Since when it is deducted and not recorded, Unix ms on Redis time; null: it is not in `pending`. */
  readonly pendingSinceMs: number | null;
}

/** Reads everything in Redis about one purchase. Changes nothing. */
export interface TraceStore {
  /**
   * Buyers whose request with this id was let in, at most `max`. Reads all requests of the bucket, in chunks.
   * @throws OperationalError redis
   */
  buyersOf(ref: BucketRef, requestId: string, max: number): Promise<string[]>;

  /**
   * The entry of one request as it stands, also where the bucket may have lost what came after it.
   * @throws OperationalError redis
   */
  entryOf(ref: BucketRef, userId: string, requestId: string): Promise<RequestEntry | null>;

  /**
   * The units that a buyer holds or has ordered.
   * @throws OperationalError redis
   */
  unitsOf(ref: BucketRef, userId: string): Promise<number>;

  /**
   * Bodies of batches in `pending` that name this trace id, among the newest 2,000.
   * @throws OperationalError redis
   */
  pendingWith(ref: BucketRef, traceId: string): Promise<string[]>;

  /** @throws OperationalError redis */
  readBatch(ref: BucketRef, batchId: string): Promise<TracedBatch>;
}

/** A message of a batch that the broker still stores, Unix ms on its clock. */
export interface TracedMessage {
  /** As a half message, as one that workers see (committed), or published again. */
  readonly kind: 'half' | 'committed' | 'redriven';
  readonly storedAtMs: number;
}

/** A broker that holds a part of the answer and did not give it. */
export interface SilentBroker {
  readonly name: string;
  /** For a person. */
  readonly why: string;
}

/** What the brokers that answered have. */
export interface FromBrokers<T> {
  readonly found: readonly T[];
  /** What these have is not known. */
  readonly silent: readonly SilentBroker[];
}

/** The brokers, asked about one batch. They forget after days. Every method throws OperationalError rocketmq when no name server answers. */
export interface TraceBroker {
  /** @param without names of brokers that are not asked: each that is silent costs seconds */
  messagesOf(batchId: string, without?: ReadonlySet<string>): Promise<FromBrokers<TracedMessage>>;
  /** Bodies of half messages that have this trace id as a key, whatever became of them. Nobody has checked who wrote them. */
  halvesOf(traceId: string): Promise<FromBrokers<string>>;
}
