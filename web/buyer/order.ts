import type { Order } from '../../src/contract/orders.js';
import type { Success } from '../shared/ask.js';

export type OrderState = Order['state'];
const STATES: readonly OrderState[] = [
  ...(['pending_payment', 'paid', 'cancelled', 'expired', 'failed'] as const),
  ...(['refunding', 'refunded', 'returned', 'disputed'] as const),
];

/** An order as the buyer sees it. Times are Unix ms of the server. */
export interface OrderView {
  readonly orderId: string;
  readonly saleId: string;
  readonly requestId: string;
  readonly quantity: number;
  readonly amountCents: number;
  readonly currency: string;
  readonly state: OrderState;
  /** Null if unknown. */
  readonly createdAtMs: number | null;
  /** Deadline for the payment. Null for a failed order. */
  readonly expiresAtMs: number | null;
  /** Received money that goes back to the buyer. */
  readonly refundCents: number;
  /** The part of the amount that was returned after the order was paid. */
  readonly refundedCents: number;
}

/**
 * Reads the body of an order. A degraded API returns fewer fields, and missing fields stay as they were.
 * @returns null if the body says nothing about the order
 */
export function readOrder(body: Success['body'], before: OrderView | null): OrderView | null {
  if (body === null) return null;
  const {
    orderId,
    saleId,
    requestId,
    quantity,
    amountCents,
    currency,
    state,
    createdAt,
    expiresAt,
    refunds,
    refundedCents,
  } = body;
  const known = STATES.find((one) => one === state);
  if (known === undefined || typeof orderId !== 'string' || typeof amountCents !== 'number') return null;
  return {
    orderId,
    saleId: String(saleId),
    requestId: typeof requestId === 'string' ? requestId : (before?.requestId ?? ''),
    quantity: typeof quantity === 'number' ? quantity : (before?.quantity ?? 1),
    amountCents,
    currency: String(currency),
    state: known,
    createdAtMs: timeOf(createdAt) ?? before?.createdAtMs ?? null,
    expiresAtMs: timeOf(expiresAt),
    refundedCents: typeof refundedCents === 'number' ? refundedCents : (before?.refundedCents ?? 0),
    refundCents: Array.isArray(refunds) ? sumOf(refunds) : 0,
  };
}

function timeOf(value: unknown): number | null {
  const ms = Date.parse(String(value));
  return Number.isNaN(ms) ? null : ms;
}

const sumOf = (refunds: readonly { readonly amountCents?: unknown }[]): number =>
  refunds.reduce((sum, { amountCents }) => sum + Number(amountCents ?? 0), 0);

/**
 * Returns the state of the order that an event of the stream stands for, or null if the event does not concern the
 * state.
 */
export function stateInEvent(word: string): OrderState | null {
  if (word === 'ordered') return 'pending_payment';
  return STATES.find((state) => state === word) ?? null;
}

/** Returns whether the buyer keeps the units, even if money of a paid order went back. */
export const isBought = (state: OrderState): boolean =>
  state === 'paid' || state === 'refunding' || state === 'refunded' || state === 'disputed';

export const isOpen = (state: OrderState): boolean => state === 'pending_payment';
