import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { plainError } from '../../core/field-errors.js';
import { breakerRules } from '../breaker/breaker-rules.js';
import { degradeRules } from '../degrade/degrade.js';
import { limitsRules } from '../limits/limits.js';
import { listsRules } from '../lists/lists.js';
import type { LayerName } from '../layer.js';
import { orderRules } from '../orders/order-rules.js';
import { queueRules } from '../queue/queue-rules.js';
import { signRules } from '../sign/request-signatures.js';

/** The rules of every layer. An omitted layer is off, except `orders`. */
export const ruleSet = z.strictObject({
  lists: listsRules.prefault({}),
  limits: limitsRules.prefault({}),
  breaker: breakerRules.prefault({}),
  degrade: degradeRules.prefault({}),
  sign: signRules.prefault({}),
  queue: queueRules.prefault({}),
  orders: orderRules.prefault({}),
} satisfies Record<LayerName, z.ZodType>);
export type RuleSet = z.infer<typeof ruleSet>;

/** The rules before the first were published. */
export const DEFAULT_RULES: RuleSet = ruleSet.parse({});

/** Returns rules as stored. The previous release refuses `orders.declines`, so its defaults are left out. */
export function storedRules(rules: RuleSet): object {
  const { declines, ...orders } = rules.orders;
  return isDeepStrictEqual(declines, DEFAULT_RULES.orders.declines) ? { ...rules, orders } : rules;
}

/** A problem of rules and its place: `lists.addresses.deny.3`. */
export interface RuleReason {
  readonly path: string;
  readonly message: string;
}

export type ParsedRules = { readonly rules: RuleSet } | { readonly reasons: readonly RuleReason[] };

/** Returns why this process cannot use well-formed rules. Empty if it can. */
export type Fitness = (rules: RuleSet) => readonly RuleReason[];

/** Longer lists of mistakes are of no use. */
const REASONS_MAX = 20;
const WORD_MAX = 60;

/** Fills in every default, or returns the problems. @param unfit if omitted, all well-formed rules can be used */
export function parseRules(json: unknown, unfit: Fitness = () => []): ParsedRules {
  const read = ruleSet.safeParse(json, { error: plainError });
  if (read.success) {
    const reasons = unfit(read.data);
    return reasons.length > 0 ? { reasons: reasons.slice(0, REASONS_MAX) } : { rules: read.data };
  }
  return { reasons: reasonsOf(read.error) };
}

export function reasonsOf({ issues }: z.ZodError): readonly RuleReason[] {
  const reasons = issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ path: pathOf([...issue.path, key]), message: 'is not a known field' }))
      : [{ path: pathOf(issue.path), message: issue.message }],
  );
  return reasons.slice(0, REASONS_MAX);
}

/** Purchase tokens have their own mode inside a layer. `orders` is not a layer. */
export const isAnyOn = ({ orders: _orders, ...layers }: RuleSet): boolean =>
  [...Object.values(layers), layers.sign.tokens].some(({ mode }) => mode !== 'off');

/** Cuts the keys, since they come from the client. */
const pathOf = (path: readonly PropertyKey[]): string =>
  path.map((part) => String(part).slice(0, WORD_MAX)).join('.') || 'rules';

/** Ids of the keys for which this process has secrets. */
export interface KnownKeys {
  readonly sign: { has(keyId: string): boolean };
  readonly seal: { readonly size: number };
}

/** Returns the rules that need a secret which this process does not have. A layer that is off needs none. */
export function missingSecrets({ sign, queue }: RuleSet, known: KnownKeys): readonly RuleReason[] {
  const reasons: RuleReason[] = [];
  if (sign.mode !== 'off') {
    for (const [index, keyId] of sign.keys.entries()) {
      if (known.sign.has(keyId)) continue;
      reasons.push({ path: `sign.keys.${index}`, message: 'has no secret here: add it to ADMISSION_SIGN_KEYS' });
    }
  }
  if (known.seal.size > 0) return reasons;
  if (sign.tokens.mode !== 'off') reasons.push({ path: 'sign.tokens.mode', message: NO_SEAL });
  if (queue.mode !== 'off') reasons.push({ path: 'queue.mode', message: NO_SEAL });
  return reasons;
}

const NO_SEAL = 'must be off, because ADMISSION_SEAL_KEYS is not set';
