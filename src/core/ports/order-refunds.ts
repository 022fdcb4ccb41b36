import type { OrderState } from '../order.js';
import type { CaseState, FoundCase } from './payment-cases.js';

/**
 * - `due`: a keeper will ask the provider, or a person claims the refund and pays it by hand
 * - `refunded`: the money went back
 * - `failed`: the provider refused, or the money came back to the shop later
 */
export const ORDER_REFUND_STATES = ['due', 'refunded', 'failed'] as const;
export type OrderRefundState = (typeof ORDER_REFUND_STATES)[number];

/** A full or partial refund of a paid order. */
export interface OrderRefund {
  readonly refundId: string;
  readonly orderId: string;
  readonly paymentId: string;
  /** Chosen by the caller, or generated for the refund. Unique within the order. */
  readonly key: string;
  readonly amountCents: number;
  /** Whether the units go back on sale once the whole amount has been refunded. */
  readonly restock: boolean;
  readonly reason: string;
  readonly actor: string;
  readonly state: OrderRefundState;
  readonly attempts: number;
  readonly lastError: string | null;
  /** Id of the refund that retries this failed refund. */
  readonly followedBy: string | null;
  readonly createdAtMs: number;
}

/** A refund that an operator requests. */
export interface RefundWish {
  /** Absent: the whole remaining amount. */
  readonly amountCents?: number;
  readonly restock: boolean;
  readonly reason: string;
  /** Equal keys are the same refund. Without a key, a refund of the whole rest repeats the previous one. */
  readonly key?: string;
}

/**
 * - `refunding`: due, now or since an earlier request
 * - `refunded`: the whole amount, or the refund with this key, is done
 * - `refund_failed`: the refund with this key was refused; try another key
 * - `in_progress`: another refund of the order is due
 * - `wrong_state`: the order is not paid, or it is disputed
 * - `too_much`: the remaining amount is smaller
 * - `sale_closed`: units of a closed sale cannot be sold again
 * - `key_conflict`: the key belongs to a refund of another amount
 */
export type RefundOrdered =
  | { readonly outcome: 'refunding'; readonly refund: OrderRefund | null }
  | { readonly outcome: 'refunded'; readonly refund: OrderRefund | null }
  | RefundRefused
  | { readonly outcome: 'not_found' }
  | { readonly outcome: 'key_conflict' };
export type RefundRefused =
  | { readonly outcome: 'refund_failed'; readonly refund: OrderRefund | null }
  | { readonly outcome: 'in_progress'; readonly refund: OrderRefund | null }
  | { readonly outcome: 'wrong_state'; readonly state: OrderState }
  | { readonly outcome: 'too_much'; readonly leftCents: number }
  | { readonly outcome: 'sale_closed' };

/**
 * - `refunding`: the new refund is due, now or since an earlier request
 * - `refunded`: the money went back
 * - `refund_failed`: the new refund failed too, so it is the one to try again
 */
export type RefundAgain =
  | { readonly outcome: 'refunding'; readonly refund: OrderRefund }
  | { readonly outcome: 'refunded'; readonly refund: OrderRefund }
  | RefundRefused
  | { readonly outcome: 'not_found' };

/**
 * - `done`: the caller now has to pay, and no keeper will
 * - `already_refunded`: pay nothing
 * - `being_asked`: a keeper is asking the provider now
 */
export type RefundTakenOn =
  | { readonly outcome: 'done'; readonly refund: OrderRefund }
  | { readonly outcome: 'already_refunded' }
  | { readonly outcome: 'being_asked' }
  | RefundRefused
  | { readonly outcome: 'not_found' };

/** A due refund that this process has leased. */
export interface LeasedOrderRefund extends Pick<OrderRefund, 'refundId' | 'orderId' | 'paymentId' | 'amountCents'> {
  readonly currency: string;
  /** Number of leases, including this one. */
  readonly attempts: number;
}

interface Dispute extends FoundCase {
  readonly kind: 'disputed';
  readonly paymentId: string;
  readonly amountCents: number;
}

/** Money that was given back at the provider, with the case to store if it does not fit the order. */
export interface RefundedElsewhere extends FoundCase {
  readonly kind: 'refunded_elsewhere';
  readonly paymentId: string;
  /** The total that the provider has given back of this payment, including our own refunds. */
  readonly amountCents: number;
}

/** The orders of one step of voiding a sale, counted: how many were moved or, in a dry run, would be. */
export interface VoidStep {
  readonly outcome: 'done';
  readonly cancelled: number;
  readonly refunding: number;
  /** The sum of the refunds, in the currency of the sale. */
  readonly refundCents: number;
  /** Null after the last order. */
  readonly next: string | null;
}
/**
 * - `sale_open`: pause or close the sale first, because buyers can still buy
 * - `no_place`: `after` is not a position in this list
 */
export type VoidAnswer = VoidStep | { readonly outcome: 'not_found' | 'sale_open' | 'no_place' };

export interface VoidWish {
  /** Whether to cancel unpaid orders. Their units go back on sale. */
  readonly unpaid: boolean;
  /** Whether to refund paid orders in full. */
  readonly refundAll: boolean;
  /** If true, only counts. */
  readonly dryRun: boolean;
  readonly reason: string;
}

/**
 * Refunds of paid orders, and the provider's reports about their money. Each call is one transaction with the state of
 * the order, its outbox row, its units and, for operators, the audit log. Orders of retired sales are refunded in the
 * archive. Methods throw OperationalError mysql; the change may be made, so ask again.
 */
export interface OrderRefunds {
  /** After an error the refund may be ordered, so ask again with the same key. */
  order(orderId: string, wish: RefundWish, actor: string): Promise<RefundOrdered>;

  /** Cancels an unpaid order for its buyer. @throws OperationalError mysql; ask again */
  cancel(
    orderId: string,
    reason: string,
    actor: string,
  ): Promise<'cancelled' | 'not_found' | { readonly state: OrderState }>;

  /** Returns the refunds of an order, oldest first. */
  refundsOf(orderId: string): Promise<OrderRefund[]>;

  /** Moves the next orders. Safe to repeat from the start. @param after null starts at the first order */
  voidNext(saleId: string, after: string | null, wish: VoidWish, actor: string): Promise<VoidAnswer>;

  /** Leases due refunds for `leaseMs`, oldest first. */
  lease(max: number, leaseMs: number): Promise<LeasedOrderRefund[]>;

  /** Records that the money went back. Returns false if the refund was no longer due. */
  settle(refundId: string): Promise<boolean>;

  /** Records that the provider has refused for good. Does nothing if the refund is not due. */
  refuse(refundId: string, error: string): Promise<void>;

  /** Makes a refund due again in `delayMs`, unless the lease has passed to another keeper. */
  postpone(lease: Pick<LeasedOrderRefund, 'refundId' | 'attempts'>, delayMs: number, error: string): Promise<void>;

  /** Gives the due refund of a payment to a person to pay by hand. After an error, check before paying. */
  takeOn(
    paymentId: string,
    actor: string,
  ): Promise<
    { readonly outcome: 'done' | 'being_asked'; readonly refund: OrderRefund } | { readonly outcome: 'not_found' }
  >;

  /** Retries a failed refund as a new one: the provider only repeats its answer to a known id. Safe to repeat. */
  again(refundId: string, reason: string, actor: string): Promise<RefundAgain>;

  /** Gives a due or failed refund to a person to pay by hand. After an error, check before paying. */
  takeOnRefund(refundId: string, reason: string, actor: string): Promise<RefundTakenOn>;

  /**
   * Records that the provider has given back this much of a payment in total, with its case.
   * - `known`: our own refunds explain it, or it was recorded before
   * - `recorded`: the order is refunded. If more than its amount went back, a `refunded_twice` case is open
   * - `does_not_fit`: the case is open. Money that another program gave back while our refund is due is recorded too
   */
  refundedElsewhere(found: RefundedElsewhere): Promise<'known' | 'recorded' | 'does_not_fit'>;

  /**
   * Records that money came back to the shop. False if not ours or known.
   * @param refundId as the provider got it
   */
  cameBack(paymentId: string, refundId: string, detail: string): Promise<boolean>;

  /**
   * Records that a dispute began or ended: moves the order and stores the case. An order becomes disputed only while
   * some of its money is left and the case is not closed, so a late copy of the first report has no effect. A due
   * refund of the order ends first. A dispute is lost only once.
   * @param state of the case
   */
  disputed(dispute: Dispute, word: 'open' | 'won' | 'lost', state: CaseState): Promise<void>;
}
