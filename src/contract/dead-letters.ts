import { z } from 'zod';
import { FAILURE_REASONS, ORDER_STATES } from '../core/order.js';
import { DEAD_LETTER_REASONS, DEAD_LETTER_STATES } from '../core/ports/dead-letters.js';
import { count, id, orderId, text, time, userId, type BodyOf } from './fields.js';

const summaryFields = {
  /** The row number, in decimal; grows with time. */
  deadLetterId: text,
  messageId: text,
  group: text,
  originTopic: text,
  saleId: text.nullable(),
  batchId: text.nullable(),
  reason: z.enum(DEAD_LETTER_REASONS),
  detail: text,
  attempts: count,
  state: z.enum(DEAD_LETTER_STATES),
  parkedAt: time,
  /** Number of replays begun. */
  replays: count,
  replayStartedAt: time.nullable(),
  /** The result of the last replay or discard, for people. */
  note: text.nullable(),
};
export const deadLetterSummary = z.object(summaryFields).meta({ id: 'DeadLetter' });
const deadLetter = z
  .object({ ...summaryFields, batch: z.looseObject({}).nullable(), body: text })
  .meta({ id: 'DeadLetterWithBody' });

const purchaseOfBatch = z
  .object({
    userId,
    requestId: id,
    quantity: count,
    order: z
      .object({
        orderId,
        batchId: text,
        quantity: count,
        state: z.enum(ORDER_STATES),
        reason: z.enum(FAILURE_REASONS).nullable(),
      })
      .nullable()
      .meta({ description: 'its order in MySQL; null if there is none' }),
  })
  .meta({ id: 'PurchaseOfBatch' });
export const deadLetterWithOrders = deadLetter
  .extend({ orders: z.array(purchaseOfBatch).nullable() })
  .meta({ id: 'DeadLetterWithOrders' });

export const deadLetterPage = z.object({ deadLetters: z.array(deadLetterSummary), next: text.nullable() });
export const movedDeadLetter = z.object({
  outcome: z.enum(['replayed', 'already_recorded', 'unfinished', 'discarded', 'already_closed']),
  deadLetter,
});
export const bulkPreview = z.object({
  matching: count,
  most: count.meta({ description: 'how many of them one bulk run handles, oldest first' }),
  first: z.array(deadLetterSummary),
});

/** Event `progress`. */
export interface BulkProgress {
  readonly deadLetterId: string;
  readonly outcome: string;
  readonly note: string | null;
  readonly ok: boolean;
  readonly handled: number;
  readonly of: number;
}

/** Event `end`. */
export interface BulkEnd {
  readonly done: number;
  readonly failed: number;
  readonly left: number;
  readonly stopped: 'fault' | 'unfinished' | 'time_up' | 'drained' | null;
  readonly failures: readonly { readonly id: string; readonly why: string }[];
}

export type DeadLetter = BodyOf<typeof deadLetterSummary>;
export type DeadLetterWithBody = BodyOf<typeof deadLetter>;
export type DeadLetterWithOrders = BodyOf<typeof deadLetterWithOrders>;
export type PurchaseOfBatch = BodyOf<typeof purchaseOfBatch>;
export type MovedDeadLetter = BodyOf<typeof movedDeadLetter>;
export type BulkPreview = BodyOf<typeof bulkPreview>;
