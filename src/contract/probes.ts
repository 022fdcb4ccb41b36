import { z } from 'zod';
import { text, type BodyOf } from './fields.js';

export const alive = z.object({ status: z.literal('alive') });
export const isReady = z.object({ ready: z.boolean() }).meta({ id: 'IsReady' });
export const readiness = z
  .object({ ready: z.boolean(), dependencies: z.array(z.object({ name: text, ok: z.boolean(), detail: text })) })
  .meta({ id: 'Ready' });

export type Readiness = BodyOf<typeof readiness>;
