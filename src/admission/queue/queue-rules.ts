import { z } from 'zod';
import { mode } from '../mode.js';
import { saleScope } from '../sales.js';

/** The waiting room in front of a sale. Off unless said otherwise. */
export const queueRules = z.strictObject({
  mode: mode.default('off'),
  sales: saleScope.default('all'),
  /** Who comes first inside a class: who came first, or, of those who wait when the sale opens, whom the lot names. */
  order: z.enum(['arrival', 'lot']).default('arrival'),
  /** Buyers let in each second, by all processes together; 0 lets nobody in for now. */
  admitPerSecond: z.number().min(0).max(100_000).default(100),
  /** Api processes: each has a room of its own and lets its share in. */
  processes: z.int().min(1).max(1000).default(1),
  /** Tickets in one process; one more buyer hears overloaded. */
  ticketsMax: z.int().min(1).max(1_000_000).default(200_000),
  /** A ticket ends when its buyer has not shown it for so long. */
  idleMs: z.int().min(1000).max(3_600_000).default(60_000),
  /** Who was let in may buy for so long. */
  passMs: z.int().min(1000).max(3_600_000).default(120_000),
  /** How often buyers are told to ask. */
  pollMs: z.int().min(100).max(60_000).default(2000),
});

export type QueueRules = z.infer<typeof queueRules>;
