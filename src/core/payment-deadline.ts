import { isId, isOrderId, isSaleId } from './ids.js';
import { isCount, openBody, undecodable as bad, type Undecodable } from './message-body.js';

const PAYMENT_DEADLINE_VERSION = 1;

/** Maximum number of orders in a message: more than any batch has, and far below the broker's size limit. */
export const ORDERS_PER_MESSAGE_MAX = 10_000;

export interface PaymentDeadline {
  /** Names the message: the batch, or the first of several recorded within the same second. */
  readonly batchId: string;
  readonly saleId: string;
  /** When the last of these orders may expire, Unix ms on the clock of MySQL. */
  readonly deadlineAtMs: number;
  /** Ids of 1 to ORDERS_PER_MESSAGE_MAX orders. */
  readonly orders: readonly string[];
}

export type DecodedPaymentDeadline = { readonly outcome: 'decoded'; readonly deadline: PaymentDeadline } | Undecodable;

export function encodePaymentDeadline({ batchId, saleId, deadlineAtMs, orders }: PaymentDeadline): string {
  return JSON.stringify({ v: PAYMENT_DEADLINE_VERSION, batchId, saleId, deadlineAt: deadlineAtMs, orders });
}

/** Reads a message body and checks everything in it. Returns a reason for a bad body; never throws. */
export function decodePaymentDeadline(body: string): DecodedPaymentDeadline {
  const opened = openBody(body, PAYMENT_DEADLINE_VERSION);
  if (opened.outcome !== 'opened') return opened;
  const { batchId, saleId, deadlineAt, orders } = opened.fields;
  if (!isId(batchId)) return bad('batchId is not an id');
  if (!isSaleId(saleId)) return bad('saleId is not a sale id');
  if (!isCount(deadlineAt)) return bad('deadlineAt is not a time in ms');
  if (!areOrderIds(orders)) return bad('orders is not a non-empty list of order ids');
  return { outcome: 'decoded', deadline: { batchId, saleId, deadlineAtMs: deadlineAt, orders } };
}

/** Returns whether the value is a list of 1 to ORDERS_PER_MESSAGE_MAX distinct order ids. */
export function areOrderIds(value: unknown): value is string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > ORDERS_PER_MESSAGE_MAX) return false;
  return value.every(isOrderId) && new Set(value).size === value.length;
}
