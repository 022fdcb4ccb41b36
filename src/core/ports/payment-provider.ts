import type { Payment } from './order-transitions.js';

/**
 * - `succeeded`: the money is there, as this payment; the same for every call with this key
 * - `declined`: it is not and will not come of this key
 * - `unknown`: no answer in time; the money may be there or not, so charge again with the same key
 */
export type ChargeOutcome =
  | { readonly outcome: 'succeeded'; readonly payment: Payment }
  | { readonly outcome: 'declined' }
  | { readonly outcome: 'unknown' };

/**
 * What became of a charge that was begun.
 * - `succeeded`, `declined`: as the charge itself would say
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

/** What an order costs. */
export interface Price {
  /** Integer cents, 0 or more. */
  readonly amountCents: number;
  /** ISO 4217. */
  readonly currency: string;
}

/** Who moves the money; `PAYMENT_PROVIDER` names the adapter. */
export interface PaymentProvider {
  /**
   * Takes the money for an order. Safe to repeat: one order and key are one payment.
   * @param price of the order, in the currency of its sale: never that of an account or a region
   * @param key chosen by the caller before the first try, unique for the order
   * @returns never rejects: what went wrong on the way is `unknown`
   */
  charge(orderId: string, price: Price, key: string): Promise<ChargeOutcome>;

  /**
   * Asks what became of a charge; moves no money.
   * @param amountCents, key of the charge
   * @returns never rejects: what went wrong on the way is `unknown`
   */
  lookUp(orderId: string, amountCents: number, key: string): Promise<FoundCharge>;

  /**
   * Gives the money of a payment back, whole. Safe to repeat: one payment and key are one refund.
   * @param amountCents what was paid, integer cents
   * @param key the same at every try
   * @returns never rejects: what went wrong on the way is `unknown`
   */
  refund(paymentId: string, amountCents: number, key: string): Promise<RefundOutcome>;
}
