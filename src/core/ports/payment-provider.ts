import type { Payment } from './order-transitions.js';

/**
 * - `succeeded`: the money is there, as this payment; the same for every call with this key
 * - `declined`: it is not and will not come of this key
 * - `action_needed`: the bank asks its customer first; the page of the buyer does that with `clientSecret` and the library of the
 *   provider. No money has moved, and it may move at any time: charge again with the same key to hear
 * - `unknown`: no answer in time; the money may be there or not, so charge again with the same key
 */
export type ChargeOutcome =
  | { readonly outcome: 'succeeded'; readonly payment: Payment }
  | { readonly outcome: 'declined' }
  | { readonly outcome: 'action_needed'; readonly clientSecret: string }
  | { readonly outcome: 'unknown' };

/**
 * What became of a charge that was begun.
 * - `succeeded`, `declined`, `action_needed`: as the charge itself would say
 * - `not_found`: the provider has not heard of it; a call that is still on its way may arrive
 * - `unknown`: no answer, or it is not decided yet; ask again
 */
export type FoundCharge = ChargeOutcome | { readonly outcome: 'not_found' };

/**
 * - `refunded`: the money of this payment is on its way back, now or since an earlier call
 * - `refused`: the provider will not; `detail` is for a person
 * - `unknown`: no answer in time; ask again with the same key
 */
export type RefundOutcome =
  | { readonly outcome: 'refunded' | 'unknown' }
  | { readonly outcome: 'refused'; readonly detail: string };

/**
 * A call that has not answered by then is `unknown`. Providers answer within seconds; leases of those who ask, and the time
 * after which a keeper asks about a charge, are longer, so that nobody else asks meanwhile.
 */
export const PROVIDER_CALL_MAX_MS = 20_000;
/** By then a call has ended, one way or the other: somebody else may ask what became of it. */
export const PROVIDER_ASKED_AFTER_MS = PROVIDER_CALL_MAX_MS + 10_000;

/** What an order costs. */
export interface Price {
  /** A whole number of the smallest unit of the currency (cents of EUR, yen of JPY), 0 or more. */
  readonly amountCents: number;
  /** ISO 4217. */
  readonly currency: string;
}

/** Why a provider cannot charge a price, as the end of a sentence that begins with its name; null: it can. */
export type PriceFault = (price: Price) => string | null;

/** Who moves the money; `PAYMENT_PROVIDER` names the adapter. */
export interface PaymentProvider {
  /** Whether a charge needs a payment method; without one nothing is charged. */
  readonly needsMethod: boolean;

  /**
   * Takes the money for an order. Safe to repeat: one order and key are one payment.
   * @param price of the order, in the currency of its sale: never that of an account or a region
   * @param key chosen by the caller before the first try, unique for the order
   * @param method the name that the provider gave to the card of the buyer, in their browser; never the card itself
   * @returns never rejects: what went wrong on the way is `unknown`
   */
  charge(orderId: string, price: Price, key: string, method?: string): Promise<ChargeOutcome>;

  /**
   * Asks what became of a charge; moves no money.
   * @param price, key of the charge
   * @param giveUp nobody waits for this charge any more: one that is not decided is ended, where the provider can do that, and
   *   is `declined` then
   * @returns never rejects: what went wrong on the way is `unknown`
   */
  lookUp(orderId: string, price: Price, key: string, giveUp?: boolean): Promise<FoundCharge>;

  /**
   * Gives the money of a payment back, whole. Safe to repeat: one payment and key are one refund.
   * @param amountCents what was paid, in the smallest unit of its currency
   * @param key the same at every try
   * @returns never rejects: what went wrong on the way is `unknown`
   */
  refund(paymentId: string, amountCents: number, key: string): Promise<RefundOutcome>;
}

/** What a payment says of itself and cannot be recorded, unchecked: for a person. */
export const PAYMENT_CLAIMS = ['orderId', 'paymentId', 'amountCents', 'currency', 'live'] as const;
export type PaymentClaims = Readonly<Partial<Record<(typeof PAYMENT_CLAIMS)[number], unknown>>>;

/**
 * What a provider reports by webhook. `live`: it is about real money, and not the trial mode of the provider.
 * - `succeeded`: this payment was taken for this order
 * - `changed`: something became of a charge of this order, perhaps for good: the provider is asked what
 * - `refund_failed`: money that was on its way back did not arrive
 * - `refunded`: money of this payment was given back, by us or by somebody at the provider; `amountCents`: all that was
 * - `disputed`: the bank of a buyer wants money of this payment back. `isOver`: it does not any more, and the money is ours
 * - `other`: nothing that concerns us; a provider sends what it likes
 * - `unreadable`: it may be about money, but it cannot be recorded; `detail` is a sentence
 */
export type PaymentReport =
  | { readonly type: 'succeeded'; readonly orderId: string; readonly payment: Payment; readonly live: boolean }
  | { readonly type: 'changed'; readonly orderId: string; readonly live: boolean }
  | {
      readonly type: 'refund_failed';
      /** Of the refund, where it has an id of its own. */
      readonly refundId?: string;
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
      readonly live: boolean;
    }
  | { readonly type: 'other' }
  | { readonly type: 'unreadable'; readonly detail: string; readonly claims: PaymentClaims };

/** How the messages of a provider look. All are signed alike: `t=<unix seconds>,v1=<hex of HMAC-SHA-256 over "<t>.<body>">`. */
export interface PaymentWebhook {
  /** The header with the signature, in small letters. */
  readonly header: string;
  /** Reads a body whose signature is good. Never throws. */
  read(body: string): PaymentReport;
}

/** A provider that is ready to be asked, and what it reports by itself. */
export interface Payments {
  readonly provider: PaymentProvider;
  /** Null: it reports in the format of ours (docs/api.md), or a program translates for it. */
  readonly webhook: PaymentWebhook | null;
}
