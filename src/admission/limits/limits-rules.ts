import { z } from 'zod';
import { mode } from '../mode.js';

/** A day; beyond it a count of visits is no protection any more. */
const WINDOW_MAX_MS = 86_400_000;
/** Whoever may come more often than that is limited in vain. */
const WINDOW_LIMIT_MAX = 1_000_000;
const RATE_MAX = 1_000_000;

const bucket = z.strictObject({
  ratePerSecond: z.int().min(1).max(RATE_MAX),
  burst: z.int().min(1).max(RATE_MAX),
});

const window = z.strictObject({
  limit: z.int().min(1).max(WINDOW_LIMIT_MAX),
  /** A window has ten slices of whole ms. */
  windowMs: z.int().min(100).max(WINDOW_MAX_MS).multipleOf(10),
});

const endpointLimits = z.strictObject({
  global: bucket.nullable().default(null),
  user: window.nullable().default(null),
  ip: window.nullable().default(null),
  /** Users, and addresses, of one generation; 100,000 take 7 to 13 MB of Redis, and there are two generations. */
  subjectsMax: z.int().min(100).max(1_000_000).default(100_000),
});

const leaky = z.strictObject({
  ratePerSecond: z.int().min(1).max(RATE_MAX),
  /** Less than an api that is stopped has for what is under way. */
  waitMaxMs: z.int().min(0).max(5000),
});

/** How fast, in all, by each user and from each address; and what reaches the batcher of one process. */
export const limitsRules = z.strictObject({
  mode: mode.default('off'),
  purchase: endpointLimits.prefault({}),
  status: endpointLimits.prefault({}),
  sale: endpointLimits.prefault({}),
  order: endpointLimits.prefault({}),
  /** Smooths the purchases of each process; null: they go on as they come. */
  leaky: leaky.nullable().default(null),
  /** Redis has this long to answer; after it the process counts by itself. A healthy one needs a few ms. */
  replyTimeoutMs: z.int().min(5).max(5000).default(100),
  /** While Redis is away it is asked again this often. */
  retryEveryMs: z.int().min(50).max(60_000).default(500),
  /** Api processes that share the traffic while Redis is away; 0: not known, each then allows the whole. */
  processes: z.int().min(0).max(1000).default(0),
});
export type LimitsRules = z.infer<typeof limitsRules>;
