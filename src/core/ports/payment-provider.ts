import type { Payment } from './order-transitions.js';

/**
 * - `succeeded`: the money was taken by this payment; every call with this key has the same result
 * - `declined`: the money was not taken, and this key will never take it
 * - `action_needed`: the bank first asks its customer for confirmation, for which the buyer's page uses `clientSecret`
 *   and the provider's library. No money has moved yet, but it may move at any time: charge again with the same key to
 *   get the result
 * - `unknown`: no answer in time; the money may or may not be taken, so charge again with the same key
 */
export type ChargeOutcome =
  | { readonly outcome: 'succeeded'; readonly payment: Payment }
  | { readonly outcome: 'declined' }
  | { readonly outcome: 'action_needed'; readonly clientSecret: string }
  | { readonly outcome: 'unknown' };

/**
 * The state of a charge that was begun.
 * - `succeeded`, `declined`, `action_needed`: as in `ChargeOutcome`
 * - `not_found`: the provider does not know the charge; a call that is still on its way may yet arrive
 * - `unknown`: no answer, or not decided yet; ask again
 */
export type FoundCharge = ChargeOutcome | { readonly outcome: 'not_found' };

/**
 * - `refunded`: the money of this payment is on its way back, now or since an earlier call
 * - `refused`: the provider refuses; `detail` is for people
 * - `unknown`: no answer in time; ask again with the same key
 */
export type RefundOutcome =
  | { readonly outcome: 'refunded' | 'unknown' }
  | { readonly outcome: 'refused'; readonly detail: string };

/**
 * Maximum wait for an answer. After that, the outcome is `unknown`. Providers answer within seconds. The leases of
 * callers, and the time after which a keeper asks about a charge, are longer, so that no second caller asks in the
 * meantime.
 */
export const PROVIDER_CALL_MAX_MS = 20_000;
/** After this time every call has ended, so another process may ask about the charge. */
export const PROVIDER_ASKED_AFTER_MS = PROVIDER_CALL_MAX_MS + 10_000;

/** The price of an order. */
export interface Price {
  /** A whole number of the smallest unit of the currency (cents of EUR, yen of JPY), 0 or more. */
  readonly amountCents: number;
  /** ISO 4217 code. */
  readonly currency: string;
}

/**
 * Returns why a provider cannot charge a price, as the end of a sentence that begins with the provider's name. Null if
 * it can.
 */
export type PriceFault = (price: Price) => string | null;

/** A refund of all or part of an order's amount. */
export interface RefundPart {
  /** Unique, and the same at every attempt. A later report about this refund names it. */
  readonly refundId: string;
  readonly currency: string;
}

/** Moves the money. The setting `PAYMENT_PROVIDER` selects the adapter. */
export interface PaymentProvider {
  /** Whether a charge needs a payment method. Such a provider charges nothing without one. */
  readonly needsMethod: boolean;

  /**
   * Says why the provider cannot charge a price, such as an amount below its minimum. Asks no server. A coupon that would
   * leave such a price is refused. Absent: the limits of the provider that `PAYMENT_PROVIDER` names.
   */
  readonly priceFault?: PriceFault;

  /**
   * Takes the money for an order. Safe to repeat: one order and key are one payment.
   * @param price of the order, in the currency of its sale: never in the currency of an account or a region
   * @param key chosen by the caller before the first try, unique for the order
   * @param method the name that the provider gave to the card of the buyer, in the browser; never the card itself
   * @returns never rejects: any error on the way is `unknown`
   */
  charge(orderId: string, price: Price, key: string, method?: string): Promise<ChargeOutcome>;

  /**
   * Asks for the result of a charge. Moves no money.
   * @param price, key price and key of the charge
   * @param giveUp true if no caller waits for the charge any more. An undecided charge is then ended, if the provider
   * can do that, and becomes `declined`
   * @returns never rejects: any error on the way becomes `unknown`
   */
  lookUp(orderId: string, price: Price, key: string, giveUp?: boolean): Promise<FoundCharge>;

  /**
   * Gives back money of a payment. Safe to repeat: the same payment and key are the same refund.
   * @param amountCents in the smallest unit of its currency. Without `part`, the whole payment
   * @param key the same at every attempt
   * @param part for a refund of an order; one payment may have several, each with its own id
   * @returns never rejects: any error on the way becomes `unknown`
   */
  refund(paymentId: string, amountCents: number, key: string, part?: RefundPart): Promise<RefundOutcome>;
}

/** Fields of a payment report that cannot be recorded. Unchecked, for people. */
export const PAYMENT_CLAIMS = ['orderId', 'paymentId', 'amountCents', 'currency', 'live'] as const;
export type PaymentClaims = Readonly<Partial<Record<(typeof PAYMENT_CLAIMS)[number], unknown>>>;

/**
 * A report of a provider by webhook. `live` says that the report is about real money, not the provider's test mode.
 * - `succeeded`: this payment was taken for this order
 * - `changed`: a charge of this order has changed, perhaps to a final state: ask the provider
 * - `refund_failed`: money that was on its way back did not arrive
 * - `refunded`: money of this payment was given back, by us or at the provider; `amountCents` is the total given back
 * - `disputed`: the bank of a buyer wants money of this payment back. `isOver` means that it has ended and the money is
 *   ours, `isLost` that it has ended and the money is gone
 * - `other`: irrelevant to us; providers send many kinds of reports
 * - `unreadable`: may be about money, but cannot be recorded; `detail` is a sentence
 */
export type PaymentReport =
  | { readonly type: 'succeeded'; readonly orderId: string; readonly payment: Payment; readonly live: boolean }
  | { readonly type: 'changed'; readonly orderId: string; readonly live: boolean }
  | {
      readonly type: 'refund_failed';
      /** Id of the refund, if it has its own. */
      readonly refundId?: string;
      /** The id that we gave to the refund of an order. If absent, `refundId` is that id. */
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

/**
 * The message format of a provider. All providers sign in the same way: `t=<unix seconds>,v1=<hex of HMAC-SHA-256 over
 * "<t>.<body>">`.
 */
export interface PaymentWebhook {
  /** Name of the signature header, in lower case. */
  readonly header: string;
  /** Reads a body with a valid signature. Never throws. */
  read(body: string): PaymentReport;
}

/** A provider that is ready for calls, and its webhook. */
export interface Payments {
  readonly provider: PaymentProvider;
  /**
   * Null if the provider reports in our own format (docs/api.md), or if a program translates its reports into that
   * format.
   */
  readonly webhook: PaymentWebhook | null;
}
