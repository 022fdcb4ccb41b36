import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { plainError } from '../../core/field-errors.js';
import type { CanaryCounts } from '../../core/ports/rules.js';
import { percentileOf } from '../degrade/degrade.js';
import { ENDPOINTS } from '../layer.js';
import { reasonsOf, ruleSet, storedRules, type Fitness, type RuleReason, type RuleSet } from './rule-set.js';

/** How new rules are tried by a share of users. */
export const canaryTerms = z.strictObject({
  /** Share of users whom the new rules judge, in percent. */
  percent: z.number().gt(0).max(50),
  minutes: z.int().min(1).max(1440).default(10),
  /** The most percentage points by which the share of refused requests may exceed that of the other users. */
  maxRefusedPercent: z.number().min(0).max(100).default(5),
});
export type CanaryTerms = z.infer<typeof canaryTerms>;

/** New rules that a share of users tries, stored in the document of the rules in force. */
const canary = canaryTerms.extend({
  /** The version that began the canary. A switch during the canary makes a newer version. */
  since: z.int().min(1),
  rules: ruleSet,
});
export type Canary = z.infer<typeof canary>;

const document = ruleSet.extend({ canary: canary.nullable().default(null) });

/** Rules in force, and the canary beside them. Null: no canary runs. */
export interface RulesInForce {
  readonly rules: RuleSet;
  readonly canary: Canary | null;
}

/** Reads a stored document. @param unfit all well-formed rules can be used if omitted */
export function parseStored(
  json: unknown,
  unfit: Fitness = () => [],
): RulesInForce | { readonly reasons: readonly RuleReason[] } {
  const read = document.safeParse(json, { error: plainError });
  if (!read.success) return { reasons: reasonsOf(read.error) };
  const { canary, ...rules } = read.data;
  const ofCanary = canary === null ? [] : unfit(canary.rules);
  const reasons = [...unfit(rules), ...ofCanary.map((one) => ({ ...one, path: `canary.rules.${one.path}` }))];
  return reasons.length > 0 ? { reasons } : { rules, canary };
}

/** Returns the document to store. Without a canary it is the same as ever. */
export const toStore = ({ rules, canary }: RulesInForce): object =>
  canary === null
    ? storedRules(rules)
    : { ...storedRules(rules), canary: { ...canary, rules: storedRules(canary.rules) } };

/**
 * Whether the canary judges this user, in every process the same. Each canary picks other users, and a switch for a
 * share of users does not pick the same.
 */
export const judges = ({ since, percent }: Canary, userId: string): boolean =>
  percentileOf(`canary ${since} ${userId}`) < percent;

/** Returns the changes that a share of users cannot try, because these parts do not judge one user. */
export function untriable(before: RuleSet, after: RuleSet): RuleReason[] {
  const [old, changed] = [partsForAll(before), partsForAll(after)];
  return Object.keys(old)
    .filter((path) => !isDeepStrictEqual(old[path], changed[path]))
    .map((path) => ({ path, message: 'applies to all users: change it without a canary' }));
}

/** The parts of the rules that judge a request without its user, or all users together. A part without effect is null. */
function partsForAll({ lists, limits, breaker, degrade, sign, queue, orders }: RuleSet): Record<string, unknown> {
  const list = (part: { readonly deny: readonly string[] }) => (part.deny.length > 0 ? [lists.mode, part] : null);
  const limit = (part: object | null) => part && [limits.mode, part];
  const { replyTimeoutMs, retryEveryMs, processes } = limits;
  return {
    'lists.addresses': list(lists.addresses),
    'lists.agents': list(lists.agents),
    ...Object.fromEntries(
      ENDPOINTS.flatMap((endpoint) => [
        [`limits.${endpoint}.ip`, limit(limits[endpoint].ip)],
        [`limits.${endpoint}.global`, limit(limits[endpoint].global)],
      ]),
    ),
    'limits.leaky': limit(limits.leaky),
    ...{ 'limits.replyTimeoutMs': replyTimeoutMs, 'limits.retryEveryMs': retryEveryMs, 'limits.processes': processes },
    breaker,
    'degrade.mode': degrade.mode === 'off', // a request without a user asks first whether it is off
    'degrade.switches.sale': degrade.switches.sale.level === 'L0' ? null : [degrade.mode, degrade.switches.sale],
    'degrade.asked': degrade.asked,
    'degrade.cache': degrade.cache,
    sign,
    queue,
    'orders.cancelsMax': [orders.mode, orders.sales, orders.cancelsMax],
    'orders.declines': orders.declines,
  };
}

/** The least number of answers on each side before a canary is judged. Fewer say too little about a share. */
const JUDGED_MIN = 200;
/** Before its time is over, a canary ends only for a difference of this many standard errors: few answers vary by chance. */
const SURE_ERRORS = 3;

/** The verdict on a canary: it continues, or the reason why it ends. */
export type CanaryVerdict = 'continues' | 'passed' | 'refused_more' | 'too_few_answers';

/** Judges a canary by the answers to its users and to the others. */
export function judgeCanary(
  { minutes, maxRefusedPercent }: CanaryTerms,
  { others, tried }: Pick<CanaryCounts, 'others' | 'tried'>,
  ageMs: number,
): CanaryVerdict {
  const isOver = ageMs >= minutes * 60_000;
  const [total, triedTotal] = [others.accepted + others.refused, tried.accepted + tried.refused];
  if (Math.min(total, triedTotal) < JUDGED_MIN) return isOver ? 'too_few_answers' : 'continues';
  const [share, triedShare] = [others.refused / total, tried.refused / triedTotal];
  const error = Math.sqrt((share * (1 - share)) / total + (triedShare * (1 - triedShare)) / triedTotal);
  const excess = triedShare - share - maxRefusedPercent / 100;
  if (excess > (isOver ? 0 : SURE_ERRORS * error)) return 'refused_more';
  return isOver ? 'passed' : 'continues';
}

/** Adds up the counts that processes have reported of one canary. */
export const addCounts = (since: number, reports: readonly (CanaryCounts | null)[]): CanaryCounts =>
  reports.reduce<CanaryCounts>((sum, counts) => {
    if (counts?.since !== since) return sum;
    const add = (side: 'others' | 'tried') => ({
      accepted: sum[side].accepted + counts[side].accepted,
      refused: sum[side].refused + counts[side].refused,
    });
    return { since, others: add('others'), tried: add('tried') };
  }, noCounts(since));

export const noCounts = (since: number): CanaryCounts => ({
  since,
  others: { accepted: 0, refused: 0 },
  tried: { accepted: 0, refused: 0 },
});
