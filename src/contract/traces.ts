import { z } from 'zod';
import { STANDINGS } from '../operate/trace/standing-of.js';
import { TRACE_SOURCES } from '../operate/trace/steps-of.js';
import { STAGE_STATES, STAGES } from '../operate/trace/timeline-of.js';
import { id, text, time, userId, type BodyOf } from './fields.js';

const stage = z.object({
  stage: z.enum(STAGES),
  state: z.enum(STAGE_STATES),
  at: time.nullable(),
  dueAt: time.nullable(),
  text,
});
const step = z.object({ at: time.nullable(), source: z.enum(TRACE_SOURCES), what: text, detail: text });
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
