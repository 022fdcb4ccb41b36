import type { OrderState } from '../order.js';
import type { CaseState, FoundCase } from './payment-cases.js';

/**
 * - `due`: a keeper asks the provider, or a person claims the refund and pays it by hand
 * - `refunded`: the money went back
 * - `failed`: the provider refused, or the money came back to the shop later
 */
export const ORDER_REFUND_STATES = ['due', 'refunded', 'failed'] as const;
export type OrderRefundState = (typeof ORDER_REFUND_STATES)[number];

/** A refund of a paid order, in whole or in part. */
export interface OrderRefund {
  readonly refundId: string;
  readonly orderId: string;
  readonly paymentId: string;
  /** Chosen by the caller, or made for the refund. Unique within the order. */
  readonly key: string;
  readonly amountCents: number;
  /** Whether the units are for sale again once nothing of the amount is left. */
  readonly restock: boolean;
  readonly reason: string;
  readonly actor: string;
  readonly state: OrderRefundState;
  readonly attempts: number;
  readonly lastError: string | null;
  /** Id of the refund that tries a failed refund again. */
  readonly followedBy: string | null;
  readonly createdAtMs: number;
}

/** The wish of an operator. */
export interface RefundWish {
  /** Absent: all that is left of the amount. */
  readonly amountCents?: number;
  readonly restock: boolean;
  readonly reason: string;
  /** Makes a repeated request the same refund. Absent: a refund of all that is left is the same as the refund before. */
  readonly key?: string;
}

/**
 * - `refunding`: the refund is due, now or since an earlier request
 * - `refunded`: nothing of the amount is left, or the refund with this key is done
 * - `refund_failed`: the refund with this key was refused; another key may try again
 * - `in_progress`: another refund of the order is due
 * - `wrong_state`: the order is not paid, or it is disputed
 * - `too_much`: less than that is left of the amount
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
 * - `refund_failed`: the new refund failed too, so it is the refund to try again
 */
export type RefundAgain =
  | { readonly outcome: 'refunding'; readonly refund: OrderRefund }
  | { readonly outcome: 'refunded'; readonly refund: OrderRefund }
  | RefundRefused
  | { readonly outcome: 'not_found' };

/**
 * - `done`: the refund is yours to pay. Nobody else pays it
 * - `already_refunded`: pay nothing
 * - `being_asked`: a keeper asks the provider now
 */
export type RefundTakenOn =
  | { readonly outcome: 'done'; readonly refund: OrderRefund }
  | { readonly outcome: 'already_refunded' }
  | { readonly outcome: 'being_asked' }
  | RefundRefused
  | { readonly outcome: 'not_found' };

/** A due refund that this process has leased. */
export interface LeasedOrderRefund extends Pick<OrderRefund, 'refundId' | 'orderId' | 'paymentId' | 'amountCents'> {
  /** The currency of the sale. */
  readonly currency: string;
  /** Number of leases, this lease included. */
  readonly attempts: number;
}

/** The case of a dispute. */
export interface Dispute extends FoundCase {
  readonly kind: 'disputed';
  readonly paymentId: string;
  readonly amountCents: number;
}

/** The orders of one step of voiding a sale: how many were moved, or would be. */
export interface VoidStep {
  readonly outcome: 'done';
  readonly cancelled: number;
  readonly refunding: number;
  /** The sum of the refunds, in the currency of the sale. */
  readonly refundCents: number;
  /** Start of the next step, or null after the last order. */
  readonly next: string | null;
}
/**
 * - `sale_open`: buyers can still buy, so the sale must be paused or closed first
 * - `no_place`: `after` is no place of this list
 */
export type VoidAnswer = VoidStep | { readonly outcome: 'not_found' | 'sale_open' | 'no_place' };

export interface VoidWish {
  /** Cancels unpaid orders. Their units are for sale again. */
  readonly unpaid: boolean;
  /** Refunds paid orders in whole. */
  readonly refundAll: boolean;
  /** Counts only. */
  readonly dryRun: boolean;
  readonly reason: string;
}

/**
 * Refunds of paid orders, and what the provider reports about their money. Each call is one transaction with the state
 * of the order, its outbox row, its units and, for operators, the audit log. Orders of retired sales are refunded in the
 * archive.
 */
export interface OrderRefunds {
  /** @throws OperationalError mysql; the refund may be ordered, so ask again with the same key */
  order(orderId: string, wish: RefundWish, actor: string): Promise<RefundOrdered>;

  /** Cancels an unpaid order for its buyer. @throws OperationalError mysql; ask again */
  cancel(
    orderId: string,
    reason: string,
    actor: string,
  ): Promise<'cancelled' | 'not_found' | { readonly state: OrderState }>;

  /** Returns the refunds of an order, oldest first. @throws OperationalError mysql */
  refundsOf(orderId: string): Promise<OrderRefund[]>;

  /**
   * Moves the next orders of a sale. Safe to repeat from the start: moved orders are passed over.
   * @param after null: from the first order
   * @throws OperationalError mysql; some orders may be moved
   */
  voidNext(saleId: string, after: string | null, wish: VoidWish, actor: string): Promise<VoidAnswer>;

  /** Leases due refunds for `leaseMs`, oldest first. @throws OperationalError mysql */
  lease(max: number, leaseMs: number): Promise<LeasedOrderRefund[]>;

  /**
   * Records that the money went back.
   * @returns false when the refund was no longer due
   * @throws OperationalError mysql
   */
  settle(refundId: string): Promise<boolean>;

  /** Records that the provider refused for good. Does nothing unless the refund is due. @throws OperationalError mysql */
  refuse(refundId: string, error: string): Promise<void>;

  /** Makes a refund due again in `delayMs`, unless the lease has passed to another keeper. @throws OperationalError mysql */
  postpone(lease: Pick<LeasedOrderRefund, 'refundId' | 'attempts'>, delayMs: number, error: string): Promise<void>;

  /**
   * Claims the due refund of a payment for a person who then pays it by hand.
   * @throws OperationalError mysql; check before paying
   */
  takeOn(
    paymentId: string,
    actor: string,
  ): Promise<
    { readonly outcome: 'done' | 'being_asked'; readonly refund: OrderRefund } | { readonly outcome: 'not_found' }
  >;

  /**
   * Tries a failed refund again, as a new refund of the same amount: the provider answers a known id as before. A failed
   * refund is followed by one refund at most, so a repeat is the same refund.
   * @throws OperationalError mysql; the refund may be ordered, so ask again
   */
  again(refundId: string, reason: string, actor: string): Promise<RefundAgain>;

  /**
   * Claims a due or failed refund for a person who then pays it by hand.
   * @throws OperationalError mysql; check before paying
   */
  takeOnRefund(refundId: string, reason: string, actor: string): Promise<RefundTakenOn>;

  /**
   * The provider has given back this much of a payment in all.
   * - `known`: by our own refunds, or it was recorded before
   * - `recorded`: the order is refunded now
   * - `does_not_fit`: a person must look. What another program gave back while a refund of ours is due is recorded too
   * @throws OperationalError mysql
   */
  refundedElsewhere(
    paymentId: string,
    totalCents: number,
    currency: string,
  ): Promise<'known' | 'recorded' | 'does_not_fit'>;

  /**
   * The money of a refund came back to the shop.
   * @param refundId as given to the provider
   * @returns false if it is no refund of ours, or was recorded before
   * @throws OperationalError mysql
   */
  cameBack(paymentId: string, refundId: string, detail: string): Promise<boolean>;

  /**
   * A dispute of a payment began or ended: moves the order and notes the case, in one transaction. An order becomes
   * disputed while some of its money is left, and not by a dispute whose case is closed: a late copy of its first report
   * begins nothing. An order whose refund is due becomes disputed when the refund has ended. A dispute is lost once.
   * @param state of the case
   * @throws OperationalError mysql
   */
  disputed(dispute: Dispute, word: 'open' | 'won' | 'lost', state: CaseState): Promise<void>;
}
