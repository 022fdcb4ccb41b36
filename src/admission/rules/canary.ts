import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { plainError } from '../../core/field-errors.js';
import type { CanaryCounts, StoredInForce } from '../../core/ports/rules.js';
import { percentileOf, type Level } from '../degrade/degrade.js';
import { ENDPOINTS } from '../layer.js';
import { parseRules, reasonsOf, ruleSet, type Fitness, type RuleReason, type RuleSet } from './rule-set.js';

/** How a share of users tries new rules. */
export const canaryTerms = z.strictObject({
  /** Share of users, in percent. */
  percent: z.number().gt(0).max(50),
  minutes: z.int().min(1).max(1440).default(10),
  /** Maximum number of percentage points by which its share of refused purchases may exceed that of the other users. */
  maxRefusedPercent: z.number().min(0).max(100).default(5),
});
export type CanaryTerms = z.infer<typeof canaryTerms>;

/** New rules that a share of users tries, stored beside the rules in force. */
const canary = canaryTerms.extend({
  /** The version that began the canary. A switch during the canary makes a newer version. */
  since: z.int().min(1),
  rules: ruleSet,
});
export type Canary = z.infer<typeof canary>;

/** Rules in force, and the canary beside them. Null: no canary runs. */
export interface RulesInForce {
  readonly rules: RuleSet;
  readonly canary: Canary | null;
}

/** Secrets are checked only for the rules in force, because no canary changes the parts that need secrets. */
export function parseCanary(json: unknown): Pick<RulesInForce, 'canary'> | { readonly reasons: readonly RuleReason[] } {
  const read = canary.nullable().safeParse(json, { error: plainError });
  if (read.success) return { canary: read.data };
  return { reasons: reasonsOf(read.error).map((one) => ({ ...one, path: `canary.${one.path}` })) };
}

/** @param unfit if omitted, all well-formed rules can be used */
export function parseStored(
  { rules, canary }: Omit<StoredInForce, 'version'>,
  unfit?: Fitness,
): RulesInForce | { readonly reasons: readonly RuleReason[] } {
  const [inForce, tried] = [parseRules(rules, unfit), parseCanary(canary)];
  if ('reasons' in inForce) return inForce;
  return 'reasons' in tried ? tried : { ...inForce, ...tried };
}

/**
 * Every process gives the same answer. Each canary, and each switch for a share of users, picks different ones.
 * Allocates nothing, because every request calls it.
 */
export const judges = ({ since, percent }: Pick<Canary, 'since' | 'percent'>, userId: string): boolean =>
  percentileOf(userId, since) < percent;

/** Returns the changes whose effect does not show in the purchases of a share of users. */
export function untriable(before: RuleSet, after: RuleSet): RuleReason[] {
  const [old, changed] = [untriedParts(before), untriedParts(after)];
  return Object.keys(old)
    .filter((path) => !isDeepStrictEqual(old[path], changed[path]))
    .map((path) => ({ path, message: 'cannot be tried on a share of users: change it without a canary' }));
}

/** Parts that judge requests without users, all users together, or other requests than purchases. Null: no effect. */
function untriedParts({ lists, limits, breaker, degrade, sign, queue, orders }: RuleSet): Record<string, unknown> {
  const list = (part: { readonly deny: readonly string[] }) => (part.deny.length > 0 ? [lists.mode, part] : null);
  const limit = (part: object | null) => part && [limits.mode, part];
  const level = (part: { readonly level: Level }) => (part.level === 'L0' ? null : [degrade.mode, part]);
  const { replyTimeoutMs, retryEveryMs, processes } = limits;
  return {
    'lists.addresses': list(lists.addresses),
    'lists.agents': list(lists.agents),
    ...Object.fromEntries(
      ENDPOINTS.flatMap((endpoint) => [
        [`limits.${endpoint}.ip`, limit(limits[endpoint].ip)],
        [`limits.${endpoint}.global`, limit(limits[endpoint].global)],
        ...(endpoint === 'purchase'
          ? []
          : [
              [`limits.${endpoint}.user`, limit(limits[endpoint].user)],
              [`degrade.switches.${endpoint}`, level(degrade.switches[endpoint])],
            ]),
      ]),
    ),
    'limits.leaky': limit(limits.leaky),
    ...{ 'limits.replyTimeoutMs': replyTimeoutMs, 'limits.retryEveryMs': retryEveryMs, 'limits.processes': processes },
    breaker,
    'degrade.mode': degrade.mode === 'off', // a request without a user first asks whether the layer is off
    'degrade.asked': degrade.asked,
    'degrade.cache': degrade.cache,
    sign,
    queue,
    'orders.cancelsMax': [orders.mode, orders.sales, orders.cancelsMax],
    'orders.declines': orders.declines,
  };
}

/** Minimum number of purchases on each side before a canary is judged. Fewer say too little about a share. */
const JUDGED_MIN = 200;
/** A canary ends early only for a difference of this many standard errors, because few answers vary by chance. */
const SURE_ERRORS = 3;

/** The verdict on a canary: it continues, or the reason why it ends. */
export type CanaryVerdict = 'continues' | 'passed' | 'refused_more' | 'too_few_answers';

/** Judges a canary by the answers to purchases of its users and of the others. */
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

/** Counts from 0, which the caller may raise. */
export const noCounts = (since: number) => ({
  since,
  others: { accepted: 0, refused: 0 },
  tried: { accepted: 0, refused: 0 },
});
