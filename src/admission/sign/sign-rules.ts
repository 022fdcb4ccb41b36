import { z } from 'zod';
import { isId } from '../../core/ids.js';
import { mode } from '../mode.js';
import { saleScope } from '../sales.js';

/** What to do with a buyer while the server that remembers does not answer. */
const whenDown = z.enum(['refuse', 'allow']);

/** One-time purchase tokens. */
const tokenRules = z.strictObject({
  mode: mode.default('off'),
  sales: saleScope.default('all'),
  /** Tokens are handed out from so long before the sale opens. */
  leadMs: z.int().min(0).max(86_400_000).default(300_000),
  /** A token is good for so long; whoever lets it end may fetch it again. */
  lifeMs: z.int().min(1000).max(86_400_000).default(900_000),
  /** Tokens handed out, as a multiple of the stock: most buyers have one, most scripts come too late. */
  perUnit: z.number().min(1).max(1000).default(3),
  down: whenDown.default('refuse'),
});

/** Signed requests, and purchase tokens. Everything is off unless said otherwise. */
export const signRules = z
  .strictObject({
    mode: mode.default('off'),
    sales: saleScope.default('all'),
    /** Ids of the keys that are believed; their secrets are in the configuration. */
    keys: z.array(z.string().refine(isId, 'must be a key id')).max(64).default([]),
    /** How far the time of a request may be from ours, either way. */
    windowMs: z.int().min(1000).max(3_600_000).default(300_000),
    down: whenDown.default('refuse'),
    tokens: tokenRules.prefault({}),
  })
  .refine(({ mode, keys }) => mode !== 'on' || keys.length > 0, {
    error: 'must name a key: without one nobody can sign',
    path: ['keys'],
  });

export type SignRules = z.infer<typeof signRules>;
export type TokenRules = SignRules['tokens'];
