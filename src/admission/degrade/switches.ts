import { z } from 'zod';
import { ENDPOINTS, type Endpoint } from '../endpoint.js';
import { degradeRules, type DegradeRules } from './degrade-rules.js';
import { LEVELS, type Level } from './level.js';

const switchChange = z
  .strictObject({
    endpoint: z.enum(ENDPOINTS),
    level: z.enum(LEVELS),
    percent: z.number().min(0).max(100).default(100),
  })
  .refine(({ endpoint, level }) => endpoint !== 'purchase' || level === 'L0' || level === 'L4', {
    error: 'a purchase knows L0 and L4 only',
    path: ['level'],
  });

/** What an operator wants of one endpoint. */
export type SwitchChange = z.infer<typeof switchChange>;

export type ReadChange =
  | { readonly read: 'change'; readonly change: SwitchChange }
  | { readonly read: 'refused'; readonly errors: readonly { readonly field: string; readonly message: string }[] };

/** Checks what came in a body: `{ endpoint, level, percent? }`. */
export function readSwitchChange(input: unknown): ReadChange {
  const parsed = switchChange.safeParse(input);
  if (parsed.success) return { read: 'change', change: parsed.data };
  const errors = parsed.error.issues.map(({ path, message }) => ({ field: path.join('.'), message }));
  return { read: 'refused', errors };
}

/** The same for the words of a command line: `seckill switch <endpoint> <level> [--percent n]`. */
export function readSwitchArguments(endpoint: string, level: string, percent?: string): ReadChange {
  if (percent === undefined) return readSwitchChange({ endpoint, level });
  return readSwitchChange({ endpoint, level, percent: percent.trim() === '' ? NaN : Number(percent) });
}

/**
 * The rule set with this switch set and everything else as it was. Whoever sets a switch wants it in force, so a layer
 * that is off goes on; in a dry run it stays. What others had set before it went off does not come back with it.
 */
export function withSwitch<R extends { readonly degrade: DegradeRules }>(rules: R, change: SwitchChange): R {
  const { mode, switches } = rules.degrade;
  const { endpoint, level, percent } = change;
  const wakes = mode === 'off' && level !== 'L0';
  const degrade = degradeRules.parse({
    ...rules.degrade,
    mode: wakes ? 'on' : mode,
    switches: { ...(wakes ? {} : switches), [endpoint]: { level, percent } },
  });
  return { ...rules, degrade };
}

export interface SwitchRow {
  readonly endpoint: Endpoint;
  readonly level: Level;
  readonly percent: number;
  /** False while the layer is off or only counts. */
  readonly inForce: boolean;
}

/** How all switches stand, for people. */
export function switchRows({ mode, switches }: DegradeRules): SwitchRow[] {
  return ENDPOINTS.map((endpoint) => ({ endpoint, ...switches[endpoint], inForce: mode === 'on' }));
}
