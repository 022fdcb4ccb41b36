import { z } from 'zod';
import { CLASSES } from '../admission/queue/queue-rules.js';
import { ORDER_STATES } from '../core/order.js';
import { count, id, orderId, saleId, text, time, type BodyOf } from './fields.js';

export const purchaseSchema = z
  .object({
    requestId: id,
    saleId: saleId.optional(),
    status: z.enum(['pending', 'ordered', 'failed']),
    orderId: orderId.optional(),
    orderState: z.enum(ORDER_STATES).optional(),
    reason: text.optional(),
  })
  .meta({ id: 'Purchase' });

/** A place in the waiting room of a sale. */
export const place = z.union([
  z.object({
    status: z.literal('waiting'),
    ticket: text,
    priority: z.enum(CLASSES),
    position: count.nullable(),
    estimateMs: count.nullable(),
    pollAfterMs: count,
  }),
  z.object({ status: z.literal('admitted'), pass: text, passEndsAt: time }),
  z.object({ status: z.literal('no_queue') }),
]);
export const purchaseToken = z.object({ token: text.nullable(), endsAt: time.nullable() });

/** A reduced answer under overload: some fields of the full answer, and how far it was reduced. */
export const degradedSchema = z
  .looseObject({
    degraded: z
      .enum(['L1', 'L2', 'L3'])
      .meta({ description: 'L1: an old response, L2: its essential fields, L3: empty' }),
    ageMs: count.optional().meta({ description: 'age of the data, ms; absent if fresh or empty' }),
  })
  .meta({ id: 'Degraded' });

export type Purchase = BodyOf<typeof purchaseSchema>;
export type Place = BodyOf<typeof place>;
export type PurchaseToken = BodyOf<typeof purchaseToken>;
export type Degraded = BodyOf<typeof degradedSchema>;
