import type { z } from 'zod';
import { degradeRules, type DegradeRules } from '../../../../src/admission/degrade/degrade.js';

/** Returns rules that switch the layer on, with the given changes. */
export const rulesOf = (parts: z.input<typeof degradeRules> = {}): DegradeRules =>
  degradeRules.parse({ mode: 'on', ...parts });
