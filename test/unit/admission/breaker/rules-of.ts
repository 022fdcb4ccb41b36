import type { z } from 'zod';
import { breakerRules, type BreakerRules } from '../../../../src/admission/breaker/breaker-rules.js';

/** Rules that are on, with what a test needs otherwise. */
export const rulesOf = (parts: z.input<typeof breakerRules> = {}): BreakerRules =>
  breakerRules.parse({ mode: 'on', ...parts });
