import type { Metadata } from './metadata.js';

export const ORDER_STATES = ['pending_payment', 'paid', 'cancelled', 'expired', 'failed'] as const;
export type OrderState = (typeof ORDER_STATES)[number];

/** Every move an order may make. `failed` is written as such and never left. */
export const ORDER_TRANSITIONS: Record<OrderState, readonly OrderState[]> = {
  pending_payment: ['paid', 'cancelled', 'expired'],
  paid: [],
  cancelled: [],
  expired: [],
  failed: [],
};

export const mayMove = (from: OrderState, to: OrderState): boolean => ORDER_TRANSITIONS[from].includes(to);
/** The states that an order may leave for `to`; a conditional UPDATE names them. */
export const statesBefore = (to: OrderState): OrderState[] => ORDER_STATES.filter((from) => mayMove(from, to));

/** States whose units count as sold. */
export const isLive = (state: OrderState): boolean => state === 'pending_payment' || state === 'paid';

/**
 * Why a request ended `failed`.
 * - `oversold_guard`: the last guard in MySQL refused; no unit ever existed for it, so none goes back
 * - `limit_reached`: the buyer has another live order
 * - `discarded`: its message could not be handled, and an operator gave it up; its units go back
 * - `units_lost`: Redis lost data after the buyer was accepted, and the units had gone to others before their batch was recorded
 * - `compensation_failed`: its message was lost, and no attempt made a row of it; its units go back
 * - `refused_by_database`: MySQL does not take a value of it, while it takes those of the other purchases; its units go back
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
  /** Set exactly when state is `failed`. */
  readonly reason: FailureReason | null;
  readonly createdAtMs: number;
  /** When an unpaid order expires; null for a failed one. */
  readonly expiresAtMs: number | null;
  readonly paidAtMs: number | null;
}

/** ISO 4217 for no currency: of an order without its sale, which nobody can have but by hand. */
export const NO_CURRENCY = 'XXX';

/** An order as it is shown. */
export interface ShownOrder extends Order {
  /** That of its sale. */
  readonly currency: string;
  readonly metadata: Metadata | null;
}
