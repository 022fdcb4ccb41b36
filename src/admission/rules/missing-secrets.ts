import type { RuleReason, RuleSet } from './rule-set.js';

/** The keys that a process has secrets for, by their ids. */
export interface KnownKeys {
  readonly sign: { has(keyId: string): boolean };
  readonly seal: { readonly size: number };
}

/** What rules need a secret for that this process does not have. A layer that is off needs none. */
export function missingSecrets({ sign, queue }: RuleSet, known: KnownKeys): readonly RuleReason[] {
  const reasons: RuleReason[] = [];
  if (sign.mode !== 'off') {
    for (const [index, keyId] of sign.keys.entries()) {
      if (known.sign.has(keyId)) continue;
      reasons.push({ path: `sign.keys.${index}`, message: 'has no secret here: ENTRY_SIGN_KEYS must have it' });
    }
  }
  if (known.seal.size > 0) return reasons;
  if (sign.tokens.mode !== 'off') reasons.push({ path: 'sign.tokens.mode', message: NO_SEAL });
  if (queue.mode !== 'off') reasons.push({ path: 'queue.mode', message: NO_SEAL });
  return reasons;
}

const NO_SEAL = 'must be off here: ENTRY_SEAL_KEYS is not set';
