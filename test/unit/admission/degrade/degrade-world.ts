import type { z } from 'zod';
import { degradeRules, type DegradeRules } from '../../../../src/admission/degrade/degrade.js';

/** Rules that are on, with what a test needs otherwise. */
export const rulesOf = (parts: z.input<typeof degradeRules> = {}): DegradeRules =>
  degradeRules.parse({ mode: 'on', ...parts });
