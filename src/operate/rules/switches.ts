import { z } from 'zod';
import { fieldErrors, plainError, type FieldError } from '../../core/field-errors.js';
import type { Switch, Switches } from '../../contract/rules.js';
import { ENDPOINTS } from '../../admission/layer.js';
import { degradeRules, type DegradeRules, LEVELS } from '../../admission/degrade/degrade.js';
import { changeRules, type Accepted } from './change-rules.js';
import type { RuleAdmin, Unfit } from './rule-admin.js';

const switchChange = z
  .strictObject({
    endpoint: z.enum(ENDPOINTS),
    level: z.enum(LEVELS),
    percent: z.number().min(0).max(100).default(100),
  })
  .refine(({ endpoint, level }) => endpoint !== 'purchase' || level === 'L0' || level === 'L4', {
    error: 'must be L0 or L4 for a purchase',
    path: ['level'],
  });

export type SwitchChange = z.infer<typeof switchChange>;

export type ReadChange =
  | { readonly read: 'change'; readonly change: SwitchChange }
  | { readonly read: 'refused'; readonly errors: readonly FieldError[] };

/** Checks a body: `{ endpoint, level, percent? }`. */
export function readSwitchChange(input: unknown): ReadChange {
  const parsed = switchChange.safeParse(input, { error: plainError });
  if (parsed.success) return { read: 'change', change: parsed.data };
  return { read: 'refused', errors: fieldErrors(parsed.error) };
}

/** Checks the arguments of a command line: `seckill switch <endpoint> <level> [--percent n]`. */
export function readSwitchArguments(endpoint: string, level: string, percent?: string): ReadChange {
  if (percent === undefined) return readSwitchChange({ endpoint, level });
  return readSwitchChange({ endpoint, level, percent: percent.trim() === '' ? NaN : Number(percent) });
}

/** Sets a switch. If the layer is off, switches it on and drops its old switches. Keeps a dry run. */
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

export function switchRows({ mode, switches }: DegradeRules): Switch[] {
  return ENDPOINTS.map((endpoint) => ({ endpoint, ...switches[endpoint], inForce: mode === 'on' }));
}

export type FoundSwitches = Switches & { readonly outcome: 'found' };

/** `version_conflict`: others kept publishing; nothing was changed */
export type SwitchAnswer =
  | (Accepted & { readonly outcome: 'switched'; readonly row: Switch })
  | { readonly outcome: 'version_conflict'; readonly version: number }
  | Unfit;

/** Each change is a new, audited version of the rules. */
export class SwitchAdmin {
  readonly #admin: RuleAdmin;

  constructor(admin: RuleAdmin) {
    this.#admin = admin;
  }

  /** @throws OperationalError mysql */
  async show(): Promise<FoundSwitches | Unfit> {
    const read = await this.#admin.read();
    if ('outcome' in read) return read;
    const { version, rules } = read;
    return { outcome: 'found', version, mode: rules.degrade.mode, switches: switchRows(rules.degrade) };
  }

  /** @throws OperationalError mysql; the switch may be set: ask `show` */
  async set(change: SwitchChange, actor: string): Promise<SwitchAnswer> {
    const answer = await changeRules(this.#admin, (rules) => withSwitch(rules, change), actor);
    if (answer.outcome !== 'changed') return answer;
    const { rules, ...accepted } = answer;
    const row = switchRows(rules.degrade).find(({ endpoint }) => endpoint === change.endpoint) as Switch;
    return { ...accepted, outcome: 'switched', row };
  }
}
