import { z } from 'zod';
import { mode, saleScope } from '../layer.js';

/** Priority classes. A smaller number is admitted first. */
export const CLASSES = ['P0', 'P1', 'P2'] as const;
export type PriorityClass = 0 | 1 | 2;

/** Returns the class for the claim `roles` of a token: `queue-p0`, `queue-p1`, or otherwise P2. */
export function classOf(roles: readonly string[]): PriorityClass {
  if (roles.includes('queue-p0')) return 0;
  return roles.includes('queue-p1') ? 1 : 2;
}

/** Reads the class in a ticket. */
export function readClass(text: string | undefined): PriorityClass | null {
  if (text === '0') return 0;
  if (text === '1') return 1;
  return text === '2' ? 2 : null;
}

export const queueRules = z.strictObject({
  mode: mode.default('off'),
  sales: saleScope.default('all'),
  /** Order within a class: by arrival, or by lot among the buyers who come before the sale opens. */
  order: z.enum(['arrival', 'lot']).default('arrival'),
  /** Number of buyers admitted per second, by all processes together. 0 admits none for now. */
  admitPerSecond: z.number().min(0).max(100_000).default(100),
  /** Not used by this release. An api of the previous release has its own room and admits this fraction of the rate. */
  processes: z.int().min(1).max(1000).default(1),
  /** Maximum number of buyers who wait for one sale. Any further buyer gets `overloaded`. */
  ticketsMax: z.int().min(1).max(1_000_000).default(200_000),
  /** A ticket ends without a poll for this long, ms. An admitted buyer keeps the turn at least this long. */
  idleMs: z.int().min(1000).max(3_600_000).default(60_000),
  /** How long an admitted buyer has to buy, ms. */
  passMs: z.int().min(1000).max(3_600_000).default(120_000),
  /** Shortest poll interval, ms. Buyers further back poll less often. */
  pollMs: z.int().min(100).max(60_000).default(2000),
});

export type QueueRules = z.infer<typeof queueRules>;
