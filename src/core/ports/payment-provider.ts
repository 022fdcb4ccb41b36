import type { Payment } from './order-transitions.js';

/**
 * - `succeeded`: this payment took the money; every call with this key has the same result
 * - `declined`: no money was taken, and this key will never take it
 * - `action_needed`: the bank first asks its customer, for which the buyer's page uses `clientSecret` and the
 *   provider's library. Money may move at any time: charge again with the same key to get the result
 * - `unknown`: no answer in time; the money may be taken, so charge again with the same key
 */
export type ChargeOutcome =
  | { readonly outcome: 'succeeded'; readonly payment: Payment }
  | { readonly outcome: 'declined' }
  | { readonly outcome: 'action_needed'; readonly clientSecret: string }
  | { readonly outcome: 'unknown' };

/**
 * A charge that was begun.
 * - `not_found`: the provider does not know it; a call on its way may yet arrive
 * - `unknown`: no answer, or not decided yet; ask again
 * - otherwise as in `ChargeOutcome`
 */
export type FoundCharge = ChargeOutcome | { readonly outcome: 'not_found' };

/**
 * - `refunded`: the money is on its way back, now or since an earlier call
 * - `refused`: by the provider; `detail` is for people
 * - `unknown`: no answer in time; ask again with the same key
 */
export type RefundOutcome =
  | { readonly outcome: 'refunded' | 'unknown' }
  | { readonly outcome: 'refused'; readonly detail: string };

/**
 * After this wait, the outcome is `unknown`. Providers answer within seconds. Leases of callers, and the time after
 * which a keeper asks about a charge, are longer, so no second caller asks in the meantime.
 */
export const PROVIDER_CALL_MAX_MS = 20_000;
/** After this time every call has ended, so another process may ask about the charge. */
export const PROVIDER_ASKED_AFTER_MS = PROVIDER_CALL_MAX_MS + 10_000;

export interface Price {
  /** A whole number of the smallest unit of the currency (cents of EUR, yen of JPY), 0 or more. */
  readonly amountCents: number;
  /** ISO 4217. */
  readonly currency: string;
}

/** Returns why a provider cannot charge a price: the end of a sentence that begins with its name, or null. */
export type PriceFault = (price: Price) => string | null;

/** A refund of all or part of an order's amount. */
export interface RefundPart {
  /** Unique, and the same at every attempt. A later report about this refund names it. */
  readonly refundId: string;
  readonly currency: string;
}

/** Moves the money. `PAYMENT_PROVIDER` selects the adapter. Methods never reject: any error on the way is `unknown`. */
export interface PaymentProvider {
  /** Whether a charge needs a payment method. Such a provider charges nothing without one. */
  readonly needsMethod: boolean;

  /**
   * Says why the provider cannot charge a price, such as an amount below its minimum. Asks no server. A coupon that
   * would leave such a price is refused. Absent: the limits of the provider that `PAYMENT_PROVIDER` names.
   */
  readonly priceFault?: PriceFault;

  /**
   * Takes the money for an order. Safe to repeat: one order and key are one payment.
   * @param price in the currency of the sale, never of an account or a region
   * @param key chosen before the first try, unique for the order
   * @param method the provider's name for the buyer's card, from the browser; never the card itself
   */
  charge(orderId: string, price: Price, key: string, method?: string): Promise<ChargeOutcome>;

  /**
   * Asks for the result of a charge. Moves no money.
   * @param giveUp nobody waits for this charge: the provider ends an undecided charge if it can, and it becomes
   * `declined`
   */
  lookUp(orderId: string, price: Price, key: string, giveUp?: boolean): Promise<FoundCharge>;

  /**
   * Gives back money. Safe to repeat: one payment and key are one refund.
   * @param amountCents in the smallest unit of its currency; without `part`, the whole payment
   * @param key the same at every attempt
   * @param part of an order's refund; one payment may have several, each with its own id
   */
  refund(paymentId: string, amountCents: number, key: string, part?: RefundPart): Promise<RefundOutcome>;
}

/** Fields of a payment report that cannot be recorded. Unchecked, for people. */
export const PAYMENT_CLAIMS = ['orderId', 'paymentId', 'amountCents', 'currency', 'live'] as const;
export type PaymentClaims = Readonly<Partial<Record<(typeof PAYMENT_CLAIMS)[number], unknown>>>;

/**
 * A report by webhook. `live`: it is about real money, not the provider's test mode.
 * - `succeeded`: this payment was taken for this order
 * - `changed`: a charge of this order has changed, perhaps for good: ask the provider
 * - `refund_failed`: money on its way back did not arrive
 * - `refunded`: we or the provider gave money back; `amountCents` is the total given back of this payment
 * - `disputed`: the bank of a buyer wants money of this payment back. `isOver`: the dispute has ended and the money is
 *   ours; `isLost`: the dispute has ended and the money is gone
 * - `other`: irrelevant; providers send many kinds of reports
 * - `unreadable`: may be about money, but cannot be recorded; `detail` is a sentence
 */
export type PaymentReport =
  | { readonly type: 'succeeded'; readonly orderId: string; readonly payment: Payment; readonly live: boolean }
  | { readonly type: 'changed'; readonly orderId: string; readonly live: boolean }
  | {
      readonly type: 'refund_failed';
      /** Id of the refund, if it has its own. */
      readonly refundId?: string;
      /** The id that we gave to the refund of an order. If absent, `refundId` has it. */
      readonly ourId?: string;
      readonly paymentId: string;
      readonly detail: string;
      readonly live: boolean;
    }
  | { readonly type: 'refunded'; readonly payment: Payment; readonly live: boolean }
  | {
      readonly type: 'disputed';
      readonly disputeId: string;
      readonly payment: Payment;
      readonly detail: string;
      readonly isOver: boolean;
      readonly isLost?: boolean;
      readonly live: boolean;
    }
  | { readonly type: 'other' }
  | { readonly type: 'unreadable'; readonly detail: string; readonly claims: PaymentClaims };

/** The provider's message format. All sign with `t=<unix seconds>,v1=<hex of HMAC-SHA-256 over "<t>.<body>">`. */
export interface PaymentWebhook {
  /** Name of the signature header, in lower case. */
  readonly header: string;
  /** Reads a body with a valid signature. Never throws. */
  read(body: string): PaymentReport;
}

/** A provider that is ready for calls, and its webhook. */
export interface Payments {
  readonly provider: PaymentProvider;
  /** Null if the reports arrive in our own format (docs/api.md). */
  readonly webhook: PaymentWebhook | null;
}
