import type { z } from 'zod';
import { breakerRules, type BreakerRules } from '../../../../src/admission/breaker/breaker-rules.js';

/** Returns rules that switch the layer on, with the given changes. */
export const rulesOf = (parts: z.input<typeof breakerRules> = {}): BreakerRules =>
  breakerRules.parse({ mode: 'on', ...parts });
