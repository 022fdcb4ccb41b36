import { parseRules, type RuleReason, type RuleSet } from '../../admission/rules/rule-set.js';
import type { RuleAdmin } from './rule-admin.js';

/** The most tries. If another operator publishes rules at the same moment, the change is made in those rules. */
const TRIES = 5;

/** The answer if this program cannot read the newest rules and so cannot change them. */
export interface Unfit {
  readonly outcome: 'rules_unfit';
  readonly reasons: readonly RuleReason[];
}

/**
 * - `changed`: stored; `seenAtOnce` as for `RuleAdmin.publish`
 * - `version_conflict`: other operators kept publishing; nothing was changed
 */
type RulesChanged =
  | { readonly outcome: 'changed'; readonly version: number; readonly seenAtOnce: boolean; readonly rules: RuleSet }
  | { readonly outcome: 'version_conflict'; readonly version: number }
  | Unfit;

/**
 * Publishes the newest rules with one change, audited as rules.
 * @throws OperationalError mysql; the rules may be stored all the same
 */
export async function changeRules(
  admin: RuleAdmin,
  change: (rules: RuleSet) => RuleSet,
  actor: string,
): Promise<RulesChanged> {
  let version = 0;
  for (let tried = 0; tried < TRIES; tried++) {
    const read = await readRules(admin);
    if ('outcome' in read) return read;
    const rules = change(read.rules);
    const answer = await admin.publish(rules, read.version, actor);
    if (answer.outcome === 'invalid') return { outcome: 'rules_unfit', reasons: answer.reasons };
    version = answer.version;
    if (answer.outcome === 'published') return { outcome: 'changed', version, seenAtOnce: answer.seenAtOnce, rules };
  }
  return { outcome: 'version_conflict', version };
}

/** @throws OperationalError mysql */
export async function readRules(
  admin: RuleAdmin,
): Promise<{ readonly version: number; readonly rules: RuleSet } | Unfit> {
  const { version, rules } = await admin.show();
  const parsed = parseRules(rules);
  return 'reasons' in parsed ? { outcome: 'rules_unfit', reasons: parsed.reasons } : { version, rules: parsed.rules };
}
