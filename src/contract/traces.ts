import { z } from 'zod';
import { id, text, time, userId, type BodyOf } from './fields.js';

/**
 * The state of the order of a purchase, or without an order:
 * - `pending`: units are held, and a worker or the re-drive will record it
 * - `parked`: units are held until an operator replays or discards its dead letter
 * - `stray`: units are held, but no worker will record it; reconcile reports and, if possible, repairs it
 * - `unrecorded`: Redis knows an order that MySQL does not have
 * - `repairing`: Redis may have lost it, and its sale waits for a repair
 * - `unknown`: only a dead letter or a repair job names it
 */
const STANDINGS = [
  'pending',
  'parked',
  'stray',
  'unrecorded',
  'repairing',
  'unknown',
  'pending_payment',
  'paid',
  'cancelled',
  'expired',
  'failed',
  'refunding',
  'refunded',
  'returned',
  'disputed',
] as const;

/** The stages of every purchase, in order. */
export const STAGES = ['half', 'deduct', 'commit', 'delivery', 'row', 'payment', 'notification'] as const;

/**
 * - `waiting`: next, or under way
 * - `failed`: did not end as the purchase intended
 * - `not_reached`: the purchase ended before, or nothing is known to have led here yet
 * - `unknown`: the stores do not show it
 */
const STAGE_STATES = ['done', 'waiting', 'failed', 'not_reached', 'unknown'] as const;

const stage = z.object({
  stage: z.enum(STAGES),
  state: z.enum(STAGE_STATES),
  at: time.nullable(),
  dueAt: time.nullable(),
  text,
});
const step = z.object({ at: time.nullable(), source: z.enum(['redis', 'mysql', 'broker']), what: text, detail: text });
const trace = z
  .object({
    userId,
    saleId: text,
    requestId: id,
    traceId: text.nullable(),
    state: z.enum(STANDINGS),
    sentence: text,
    nextAt: time.nullable().meta({ description: 'when the next waiting stage is due' }),
    timeline: z.array(stage),
    steps: z.array(step),
  })
  .meta({ id: 'Trace' });
export const foundTraces = z.object({ purchases: z.array(trace), more: z.boolean() });

export type Stage = BodyOf<typeof stage>;
export type TraceStep = BodyOf<typeof step>;
export type Trace = BodyOf<typeof trace>;
