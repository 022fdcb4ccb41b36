import { z } from 'zod';
import { SALE_STATES, STORED_SALE_STATES } from '../core/sale.js';
import { SHOWN_STATES, SHOWN_STOCKS } from '../sales/get-sale.js';
import { PLAN_STATUSES } from '../sales/schedule/plan-sales.js';
import { amount, count, currency, saleId, text, time, type BodyOf } from './fields.js';

const saleFields = {
  saleId,
  sku: text,
  title: text,
  priceCents: amount,
  currency: currency.meta({ description: 'ISO 4217 code of the price and of all orders' }),
  limitPerBuyer: count,
  opensAt: time,
  closesAt: time,
  paymentWindow: text
    .nullable()
    .meta({ description: 'time that a buyer has to pay, such as 10m. null: the default of the shop' }),
};

/** Proofs that a sale may require for a purchase, in addition to a token. */
const PROOFS = ['signature', 'purchase_token', 'queue_pass'] as const;
export type Proof = (typeof PROOFS)[number];

export const salePage = z
  .object({
    ...saleFields,
    state: z.enum(SHOWN_STATES),
    stock: z.enum(SHOWN_STOCKS),
    asksFor: z
      .array(z.enum(PROOFS))
      .meta({ description: 'what a purchase must include: a signature, a purchase token, a queue pass' }),
    serverTime: time.meta({
      description: 'when the server made this response: now with `fresh`, and up to four seconds ago without it',
    }),
    pollAfterMs: count.meta({
      description: 'how long a page should wait before it reads the sale again; add up to half of it at random',
    }),
  })
  .meta({ id: 'SalePage' });

export const saleSchema = z
  .object({
    ...saleFields,
    coupon: text
      .nullable()
      .optional()
      .meta({ description: 'terms of the coupons for its paid orders, such as 10% 30d' }),
    warmBefore: text.nullable().meta({ description: 'null: an operator warms, opens and closes the sale' }),
    stock: count,
    sold: count,
    buckets: count,
    epoch: count,
    state: z.enum(SALE_STATES),
    retiredAt: time.nullable(),
  })
  .meta({ id: 'Sale' });

export const movedSale = saleSchema
  .extend({
    inRepair: z.boolean().meta({
      description: 'true: its stock is being rebuilt, and nobody can buy. After the repair, the sale is in this state',
    }),
  })
  .meta({ id: 'MovedSale' });

export const plannedSale = z
  .object({
    sale: saleSchema,
    status: z.enum(PLAN_STATUSES),
    missing: z.array(text),
    warmsAt: time.nullable(),
  })
  .meta({ id: 'PlannedSale' });

export const endedSale = z.object({ outcome: z.enum(['deleted', 'closed']), sale: saleSchema });
export const reshardedSale = z.object({ buckets: count, epoch: count, unitsLeft: count, lockedMs: z.number() });
export const repairedSale = z.object({
  outcome: z.enum(['repaired', 'not_needed']),
  epoch: count.optional(),
  unitsLeft: count.optional(),
  rows: count.optional().meta({ description: 'purchases with an order in MySQL' }),
  held: count.optional().meta({ description: 'purchases still waiting for their order' }),
  ordersLost: count.optional().meta({ description: 'orders that MySQL has lost; their units stay held' }),
  tookMs: z.number().min(0).optional(),
});

const saleSecond = z.object({
  atMs: count,
  won: count.nullable(),
  landed: count,
  refused: z.record(text, count).nullable(),
});
export const saleSeconds = z
  .object({ saleId, fromMs: count, toMs: count, seconds: z.array(saleSecond) })
  .meta({ id: 'SaleSeconds' });

/** A field is null if the bucket is not loaded, or if its server does not answer (`error` says why). */
const bucket = z
  .object({
    bucket: count,
    state: z.enum(STORED_SALE_STATES).nullable(),
    epoch: count.nullable(),
    sameServer: z
      .boolean()
      .nullable()
      .meta({ description: 'false if its server was restarted or replaced: the bucket needs a repair' }),
    unitsLeft: z.int().nullable(),
    pending: count.nullable().meta({ description: 'batches not yet marked as recorded' }),
    pendingOldestMs: z.number().min(0).nullable(),
    error: text.nullable(),
  })
  .meta({ id: 'Bucket' });
export const bucketsOfSale = z.object({ saleId, buckets: z.array(bucket) });

export type SalePage = BodyOf<typeof salePage>;
export type Sale = BodyOf<typeof saleSchema>;
export type MovedSale = BodyOf<typeof movedSale>;
export type PlannedSale = BodyOf<typeof plannedSale>;
export type SaleSecond = BodyOf<typeof saleSecond>;
export type SaleSeconds = BodyOf<typeof saleSeconds>;
export type Bucket = BodyOf<typeof bucket>;
