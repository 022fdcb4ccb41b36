import type { Metadata } from './metadata.js';

/** States of a purchase, as the column `state` stores them. The units count as sold in the first two states. */
const PURCHASE_STATES = ['pending_payment', 'paid', 'cancelled', 'expired', 'failed'] as const;
export type PurchaseState = (typeof PURCHASE_STATES)[number];

/**
 * States after payment, in the column `after_paid` (decision 61).
 * - `refunding`: a refund was ordered, and the provider has not yet answered
 * - `refunded`: all or part of the money went back. The units count as sold
 * - `returned`: all the money went back, and the units are for sale again
 * - `disputed`: the buyer's bank wants the money back
 */
const MONEY_STATES = ['refunding', 'refunded', 'returned', 'disputed'] as const;
export type MoneyState = (typeof MONEY_STATES)[number];

export const ORDER_STATES = [...PURCHASE_STATES, ...MONEY_STATES] as const;
export type OrderState = PurchaseState | MoneyState;

/**
 * All moves of an order. A refused refund and a won dispute lead back to `paid`. A `refunded` order may be refunded
 * further until no money is left.
 */
export const ORDER_TRANSITIONS: Record<OrderState, readonly OrderState[]> = {
  pending_payment: ['paid', 'cancelled', 'expired'],
  paid: ['refunding', 'refunded', 'disputed'],
  cancelled: [],
  expired: [],
  failed: [],
  refunding: ['paid', 'refunded', 'returned'],
  refunded: ['paid', 'refunding', 'disputed'],
  returned: [],
  disputed: ['paid', 'refunded'],
};

export const mayMove = (from: OrderState, to: OrderState): boolean => ORDER_TRANSITIONS[from].includes(to);
/** Returns the stored states from which a purchase may move to `to`, for a conditional UPDATE. */
export const statesBefore = (to: PurchaseState): PurchaseState[] => PURCHASE_STATES.filter((from) => mayMove(from, to));

/** Returns whether the order still needs its payment and may still be cancelled or expire. */
export const isUnpaid = (state: OrderState): boolean => mayMove(state, 'expired');

/** Id of the payment of an order that costs nothing. */
export const freePaymentId = (orderId: string): string => `free-${orderId}`;

/** Returns whether the order was paid, even if the money has gone back since. */
export const wasPaid = (state: OrderState): boolean => state === 'paid' || isMoneyState(state);

/** A paid order is stored as `paid`, a returned one as `cancelled`, with the rest in `after_paid`. */
export const stateOf = (stored: PurchaseState, afterPaid: MoneyState | null): OrderState => afterPaid ?? stored;
/** The column `state` alone tells whether the units count as sold. */
export const storedAs = (state: OrderState): readonly [PurchaseState, MoneyState | null] => {
  if (!isMoneyState(state)) return [state, null];
  return [state === 'returned' ? 'cancelled' : 'paid', state];
};
const isMoneyState = (state: OrderState): state is MoneyState => MONEY_STATES.some((one) => one === state);

/** Returns whether the units of an order in this state count as sold. */
export const isLive = (state: OrderState): boolean => {
  const [stored] = storedAs(state);
  return stored === 'pending_payment' || stored === 'paid';
};

/**
 * Why a request ended `failed`.
 * - `oversold_guard`: the last guard in MySQL refused; it never had units, so none go back
 * - `limit_reached`: the buyer has another live order
 * - `discarded`: an operator discarded its message, which could not be handled; its units go back
 * - `units_lost`: Redis lost data after the buyer was accepted, and others got the units before the batch was recorded
 * - `compensation_failed`: its message was lost, and no attempt could create its row; its units go back
 * - `refused_by_database`: MySQL refuses a value of this purchase, but not the others; its units go back
 */
export const FAILURE_REASONS = [
  'oversold_guard',
  'limit_reached',
  'discarded',
  'units_lost',
  'compensation_failed',
  'refused_by_database',
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** The final record of a request, unique by (userId, saleId, requestId). Times in Unix ms. */
export interface Order {
  readonly orderId: string;
  readonly userId: string;
  readonly saleId: string;
  readonly requestId: string;
  readonly batchId: string;
  readonly quantity: number;
  readonly amountCents: number;
  readonly state: OrderState;
  /** Set only if the state is `failed`, and then always. */
  readonly reason: FailureReason | null;
  readonly createdAtMs: number;
  /** Null for a failed order. */
  readonly expiresAtMs: number | null;
  readonly paidAtMs: number | null;
  /** The part of the amount that went back to the buyer. */
  readonly refundedCents: number;
}

/** The ISO 4217 code for no currency. Used for an order that has no sale, which only manual changes can create. */
export const NO_CURRENCY = 'XXX';

/** An order as shown to people. */
export interface ShownOrder extends Order {
  readonly currency: string;
  readonly metadata: Metadata | null;
}
