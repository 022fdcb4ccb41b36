import { z } from 'zod';
import { mode, saleScope } from '../layer.js';

/** Priority classes; a smaller number goes in before a larger one. */
export const CLASSES = ['P0', 'P1', 'P2'] as const;
export type PriorityClass = 0 | 1 | 2;

/** The class that the claim `roles` of a token gives: `queue-p0` and `queue-p1` go first, everybody else is P2. */
export function classOf(roles: readonly string[]): PriorityClass {
  if (roles.includes('queue-p0')) return 0;
  return roles.includes('queue-p1') ? 1 : 2;
}

/** As a ticket has it. */
export function readClass(text: string | undefined): PriorityClass | null {
  if (text === '0') return 0;
  if (text === '1') return 1;
  return text === '2' ? 2 : null;
}

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
