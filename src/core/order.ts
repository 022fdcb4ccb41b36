import type { Metadata } from './metadata.js';

export const ORDER_STATES = ['pending_payment', 'paid', 'cancelled', 'expired', 'failed'] as const;
export type OrderState = (typeof ORDER_STATES)[number];

/** All moves of an order. An order is written as `failed` and never leaves that state. */
export const ORDER_TRANSITIONS: Record<OrderState, readonly OrderState[]> = {
  pending_payment: ['paid', 'cancelled', 'expired'],
  paid: [],
  cancelled: [],
  expired: [],
  failed: [],
};

export const mayMove = (from: OrderState, to: OrderState): boolean => ORDER_TRANSITIONS[from].includes(to);
/** Returns the states that may move to `to`, for a conditional UPDATE. */
export const statesBefore = (to: OrderState): OrderState[] => ORDER_STATES.filter((from) => mayMove(from, to));

/** Says whether the units of an order in this state count as sold. */
export const isLive = (state: OrderState): boolean => state === 'pending_payment' || state === 'paid';

/**
 * Reasons why a request ended `failed`.
 * - `oversold_guard`: the last guard in MySQL refused; no unit ever existed for it, so no unit goes back
 * - `limit_reached`: the buyer has another live order
 * - `discarded`: its message could not be handled, and an operator gave it up; its units go back
 * - `units_lost`: Redis lost data after the buyer was accepted, and the units had gone to others before their batch was
 *   recorded
 * - `compensation_failed`: its message was lost, and no attempt could create its row; its units go back
 * - `refused_by_database`: MySQL does not accept a value of it, but accepts the other purchases; its units go back
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

/** The terminal record of a request, unique by (userId, saleId, requestId). Times in Unix ms. */
export interface Order {
  readonly orderId: string;
  readonly userId: string;
  readonly saleId: string;
  readonly requestId: string;
  readonly batchId: string;
  readonly quantity: number;
  readonly amountCents: number;
  readonly state: OrderState;
  /** Set if and only if the state is `failed`. */
  readonly reason: FailureReason | null;
  readonly createdAtMs: number;
  /** When an unpaid order expires. Null for a failed order. */
  readonly expiresAtMs: number | null;
  readonly paidAtMs: number | null;
}

/** ISO 4217 code for no currency: used for an order without its sale, which only manual changes can create. */
export const NO_CURRENCY = 'XXX';

/** An order as shown to people. */
export interface ShownOrder extends Order {
  /** The currency of its sale. */
  readonly currency: string;
  readonly metadata: Metadata | null;
}
