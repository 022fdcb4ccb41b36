import { z } from 'zod';
import { ORDER_EVENT_TYPES } from '../core/order-event.js';
import { count, rowId, text, time, type BodyOf } from './fields.js';

const events = z.array(z.enum(ORDER_EVENT_TYPES)).min(1).max(ORDER_EVENT_TYPES.length);
const url = text.min(1).meta({ description: 'https, at a public address' });
export const newWebhook = z.strictObject({ url, events }).meta({ id: 'NewWebhook' });
export const webhookChanges = z
  .strictObject({
    url: url.optional(),
    events: events.optional(),
    state: z.enum(['active', 'paused']).optional(),
    newSecret: z
      .literal(true)
      .optional()
      .meta({ description: 'replaces the secret; the previous one signs too for a day, in which this is refused' }),
  })
  .refine((body) => Object.keys(body).length > 0, { error: 'must change something' })
  .meta({ id: 'WebhookChanges' });

export const webhook = z
  .object({
    endpointId: rowId,
    url: text,
    events: z.array(z.enum(ORDER_EVENT_TYPES)),
    state: z
      .enum(['active', 'paused', 'failed'])
      .meta({ description: '`failed`: paused by the keeper, because nothing was delivered for a day' }),
    failingSince: time.nullable().meta({ description: 'null: the last attempt succeeded' }),
    lastError: text.nullable(),
    previousSecretUntil: time
      .nullable()
      .meta({ description: 'until then the previous secret signs too; null: only the secret signs' }),
    createdAt: time,
    secret: text.optional().meta({ description: 'signs the events; present only when it is new' }),
  })
  .meta({ id: 'Webhook' });
export const webhookList = z.object({ webhooks: z.array(webhook) });

export const DELIVERY_STATES = ['due', 'delivered', 'dropped'] as const;

const webhookDelivery = z
  .object({
    deliveryId: rowId,
    eventId: text.meta({ description: 'the header Webhook-Id, the same in every attempt' }),
    type: z.enum(ORDER_EVENT_TYPES),
    orderId: text,
    saleId: text,
    at: time,
    state: z
      .enum(DELIVERY_STATES)
      .meta({ description: '`dropped`: not delivered within a week, or its endpoint was removed' }),
    attempts: count,
    lastError: text.nullable(),
    nextTry: time.nullable().meta({ description: 'null unless it is due' }),
  })
  .meta({ id: 'WebhookDelivery' });
export const webhookDeliveryPage = z.object({ deliveries: z.array(webhookDelivery), next: rowId.nullable() });
export const webhookTest = z.object({
  outcome: z.enum(['delivered', 'rejected', 'failed']),
  detail: text.meta({ description: 'the status of the answer, or why there is no answer' }),
});
const RESENT_MAX = 200;
export const webhookResend = z
  .strictObject({ deliveryIds: z.array(rowId).min(1).max(RESENT_MAX) })
  .meta({ id: 'WebhookResend' });
export const resentWebhooks = z.object({ resent: count });

export type NewWebhook = BodyOf<typeof newWebhook>;
export type WebhookChanges = BodyOf<typeof webhookChanges>;
export type Webhook = BodyOf<typeof webhook>;
export type WebhookTest = BodyOf<typeof webhookTest>;
export type WebhookDelivery = BodyOf<typeof webhookDelivery>;
