import { z } from 'zod';
import { METADATA_NAME } from '../core/metadata.js';
import { FAILURE_REASONS, ORDER_STATES } from '../core/order.js';
import { ORDER_REFUND_STATES } from '../core/ports/order-refunds.js';
import { REFUND_STATES } from '../core/ports/refund-repository.js';
import { matching } from '../core/field-errors.js';
import { ORDER_EVENT_TYPES } from '../core/order-event.js';
import { amount, count, currency, id, orderId, rowId, saleId, text, time, type BodyOf } from './fields.js';

/** The caller's note on the purchase. */
export const metadataSchema = z.record(matching('a name', METADATA_NAME), text);

const orderFields = {
  orderId,
  saleId,
  requestId: id,
  quantity: count,
  amountCents: amount,
  currency: currency.meta({ description: 'ISO 4217 code of the amount' }),
  state: z.enum(ORDER_STATES),
  reason: z.enum(FAILURE_REASONS).nullable(),
  createdAt: time,
  expiresAt: time.nullable(),
  paidAt: time.nullable(),
  refundedCents: amount.meta({ description: 'the part of the amount that went back to the buyer' }),
  metadata: metadataSchema.nullable().meta({ description: 'as sent with the purchase' }),
};
export const orderSchema = z.object(orderFields).meta({ id: 'Order' });
export const orderPageSchema = z
  .object({
    ...orderFields,
    refunds: z
      .array(z.object({ amountCents: amount, state: z.enum(REFUND_STATES), reason: text }))
      .min(1)
      .optional(),
  })
  .meta({ id: 'OrderWithRefunds' });

export const foundOrder = orderSchema
  .extend({
    userId: text,
    batchId: text,
    sku: text,
    title: text,
    unitPriceCents: amount,
    paymentId: text.nullable().meta({ description: 'of the payment that paid the order' }),
  })
  .meta({ id: 'FoundOrder' });
export const ordersOfBuyer = z.object({ orders: z.array(orderSchema), next: text.nullable() });
export const foundOrders = z.object({ orders: z.array(foundOrder), next: text.nullable() });
/** The bank asks the buyer first: give `clientSecret` to the provider's library, then pay again with the same key. */
export const actionNeeded = z.object({ outcome: z.literal('action_needed'), orderId: text, clientSecret: text });

const notification = z
  .object({
    notificationId: rowId,
    type: z.enum(ORDER_EVENT_TYPES).meta({ description: 'what happened to the order' }),
    orderId,
    saleId,
    at: time,
    isRead: z.boolean(),
  })
  .meta({ id: 'Notification' });
export const notificationPage = z.object({ notifications: z.array(notification), next: rowId.nullable() });
export const readNotifications = z.object({ read: count.meta({ description: 'how many of them were unread' }) });
export type Notification = BodyOf<typeof notification>;

const orderRefund = z
  .object({
    refundId: text,
    orderId: text,
    paymentId: text,
    key: text.meta({ description: 'the Idempotency-Key of the request, or an id of its own' }),
    amountCents: amount,
    restock: z.boolean(),
    reason: text,
    actor: text,
    state: z.enum(ORDER_REFUND_STATES),
    attempts: count,
    lastError: text.nullable(),
    followedBy: text.nullable().meta({ description: 'id of the refund that tries a failed refund again' }),
    createdAt: time,
  })
  .meta({ id: 'OrderRefund' });
export const orderRefunds = z.object({ refunds: z.array(orderRefund) });
export const orderedRefund = z.object({ outcome: z.enum(['refunding', 'refunded']), refund: orderRefund.nullable() });
export const voidStep = z.object({
  outcome: z.literal('done'),
  cancelled: count,
  refunding: count,
  refundCents: amount.meta({ description: 'sum of the refunds, in the currency of the sale' }),
  next: text.nullable().meta({ description: 'pass it as `after`; null: no order is left' }),
});

export type OrderRefund = BodyOf<typeof orderRefund>;
export type VoidStep = BodyOf<typeof voidStep>;
export type Order = BodyOf<typeof orderSchema>;
export type OrderWithRefunds = BodyOf<typeof orderPageSchema>;
export type OrdersOfBuyer = BodyOf<typeof ordersOfBuyer>;
export type FoundOrder = BodyOf<typeof foundOrder>;
export type ActionNeeded = BodyOf<typeof actionNeeded>;
