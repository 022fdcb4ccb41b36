import type { Order } from '../../src/contract/orders.js';
import type { Success } from '../shared/ask.js';

export type OrderState = Order['state'];
const STATES: readonly OrderState[] = ['pending_payment', 'paid', 'cancelled', 'expired', 'failed'];

/** An order as the buyer sees it. Times are Unix ms of the server. */
export interface OrderView {
  readonly orderId: string;
  readonly saleId: string;
  readonly requestId: string;
  readonly quantity: number;
  readonly amountCents: number;
  readonly currency: string;
  readonly state: OrderState;
  /** Null: not known. */
  readonly createdAtMs: number | null;
  /** Until then it must be paid; null: of a failed one. */
  readonly expiresAtMs: number | null;
  /** Money that came and goes back. */
  readonly refundCents: number;
}

/**
 * Reads the body of an order. While the api is spared it gives less: then what is missing stays as it was.
 * @returns null: the body says nothing of the order
 */
export function readOrder(body: Success['body'], before: OrderView | null): OrderView | null {
  if (body === null) return null;
  const { orderId, saleId, requestId, quantity, amountCents, currency, state, createdAt, expiresAt, refunds } = body;
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
    refundCents: Array.isArray(refunds) ? sumOf(refunds) : 0,
  };
}

function timeOf(value: unknown): number | null {
  const ms = Date.parse(String(value));
  return Number.isNaN(ms) ? null : ms;
}

const sumOf = (refunds: readonly { readonly amountCents?: unknown }[]): number =>
  refunds.reduce((sum, { amountCents }) => sum + Number(amountCents ?? 0), 0);

/** The word of an event of the stream, as a state of the order; null: it says nothing of that. */
export function stateInEvent(word: string): OrderState | null {
  if (word === 'ordered') return 'pending_payment';
  return STATES.find((state) => state === word) ?? null;
}

/** Whether an order may still change. */
export const isOpen = (state: OrderState): boolean => state === 'pending_payment';
