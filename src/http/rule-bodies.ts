import type { RuleReason } from '../admission/rules/rule-set.js';
import type { RuleChange } from '../core/ports/rules.js';

/** One change of the rules as admins read it. */
export const ruleChangeBody = ({ version, actor, atMs }: RuleChange): object => ({
  ...{ version, actor, at: new Date(atMs).toISOString() },
});

/** What a check of rules says. */
export const checkedRulesBody = (reasons: readonly RuleReason[]): object => ({
  valid: reasons.length === 0,
  errors: reasons.map(({ path, message }) => ({ field: path, message })),
});
