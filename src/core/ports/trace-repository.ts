import type { Order } from '../order.js';
import type { RequestRef } from '../request.js';
import type { OutboxKind } from './outbox.js';

export interface TracedPayment {
  readonly paymentId: string;
  readonly amountCents: number;
  readonly atMs: number;
}

/** Money that is owed back, or was paid back. */
export interface TracedRefund extends TracedPayment {
  readonly reason: string;
  readonly state: 'due' | 'refunded';
  readonly updatedAtMs: number;
}

/** A row of the outbox that concerns the purchase. */
export interface TracedPromise {
  readonly outboxId: string;
  readonly kind: OutboxKind;
  readonly attempts: number;
  readonly atMs: number;
  /** When it is due, or its lease ends. */
  readonly availableAtMs: number;
  /** Null while it is not done. */
  readonly doneAtMs: number | null;
}

/** Everything MySQL has of one purchase, but for dead letters and the audit log. Times in Unix ms on its clock. */
export interface OrderTrace {
  /** Null while nobody has recorded it. */
  readonly order: (Order & { readonly updatedAtMs: number }) | null;
  readonly payments: readonly TracedPayment[];
  readonly refunds: readonly TracedRefund[];
  readonly couponAtMs: number | null;
  readonly promises: readonly TracedPromise[];
  readonly nowMs: number;
}

/** What a search may be narrowed by. */
export interface TraceSearch {
  readonly saleId?: string;
  readonly userId?: string;
}

/** The book as somebody reads it who asks for one purchase. */
export interface TraceRepository {
  /**
   * Purchases whose row has this order id or batch id, or this request id of the buyer in `search`; by index, so cheap.
   * @throws OperationalError mysql
   */
  findRequests(id: string, search: TraceSearch, max: number): Promise<RequestRef[]>;

  /**
   * Purchases with this request id, whoever bought: reads the table, newest rows first, and gives up after ten million.
   * @throws OperationalError mysql
   */
  walkForRequest(requestId: string, search: TraceSearch, max: number): Promise<RequestRef[]>;

  /** @throws OperationalError mysql */
  read(request: RequestRef): Promise<OrderTrace>;
}
