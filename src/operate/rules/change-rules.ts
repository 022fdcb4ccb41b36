import type { RuleSet } from '../../admission/rules/rule-set.js';
import type { RuleAdmin, Unfit } from './rule-admin.js';

/** If another operator publishes rules at the same moment, the change is made in those rules. */
const TRIES = 5;

/** An accepted change. `seenAtOnce` as for `RuleAdmin.publish`. `unchanged`: the newest rules were already like this */
export interface Accepted {
  readonly version: number;
  readonly seenAtOnce: boolean;
  readonly unchanged: boolean;
}

/** For the sentence about it. */
export const already = ({ unchanged }: Accepted): string => (unchanged ? 'already ' : '');

/** `version_conflict`: others kept publishing; nothing was changed */
type RulesChanged =
  | (Accepted & { readonly outcome: 'changed'; readonly rules: RuleSet })
  | { readonly outcome: 'version_conflict'; readonly version: number }
  | Unfit;

/** Publishes one change of the newest rules, and of their canary. @throws OperationalError mysql; it may be stored */
export async function changeRules(
  admin: RuleAdmin,
  change: (rules: RuleSet) => RuleSet,
  actor: string,
): Promise<RulesChanged> {
  let version = 0;
  for (let tried = 0; tried < TRIES; tried++) {
    const read = await admin.read();
    if ('outcome' in read) return read;
    const rules = change(read.rules);
    const canary = read.canary && { ...read.canary, rules: change(read.canary.rules) };
    const answer = await admin.replace({ rules, canary }, read, actor);
    if (answer.outcome === 'invalid') return { outcome: 'rules_unfit', reasons: answer.reasons };
    version = answer.version;
    if (answer.outcome === 'published')
      return { ...answer, outcome: 'changed', unchanged: version === read.version, rules };
  }
  return { outcome: 'version_conflict', version };
}
