import { z } from 'zod';
import { mode, saleScope } from '../layer.js';

/** Priority classes; a smaller number goes in before a larger one. */
export const CLASSES = ['P0', 'P1', 'P2'] as const;
export type PriorityClass = 0 | 1 | 2;

/** The class that the claim `roles` of a token gives: `queue-p0`, `queue-p1`, or P2 for all others. */
export function classOf(roles: readonly string[]): PriorityClass {
  if (roles.includes('queue-p0')) return 0;
  return roles.includes('queue-p1') ? 1 : 2;
}

/** The class in a ticket. */
export function readClass(text: string | undefined): PriorityClass | null {
  if (text === '0') return 0;
  if (text === '1') return 1;
  return text === '2' ? 2 : null;
}

/** The waiting room in front of a sale. */
export const queueRules = z.strictObject({
  mode: mode.default('off'),
  sales: saleScope.default('all'),
  /** Order inside a class: by arrival, or by lot among those who come before the sale opens. */
  order: z.enum(['arrival', 'lot']).default('arrival'),
  /** Buyers admitted each second, by all processes together; 0 admits no buyer for now. */
  admitPerSecond: z.number().min(0).max(100_000).default(100),
  /** Api processes: each has a room of its own and admits its share. */
  processes: z.int().min(1).max(1000).default(1),
  /** Tickets in one process; one more buyer gets `overloaded`. */
  ticketsMax: z.int().min(1).max(1_000_000).default(200_000),
  /** A ticket ends when its buyer does not show it for so long. */
  idleMs: z.int().min(1000).max(3_600_000).default(60_000),
  /** A buyer who was admitted may buy for so long. */
  passMs: z.int().min(1000).max(3_600_000).default(120_000),
  /** How often buyers should ask. */
  pollMs: z.int().min(100).max(60_000).default(2000),
});

export type QueueRules = z.infer<typeof queueRules>;
