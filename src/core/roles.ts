/**
 * Each role includes those before it. A viewer reads. An operator runs sales and repairs stuck work. An admin decides
 * about offers, money, rules, people and irreversible actions.
 */
export const ROLES = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export const isRole = (word: string): word is Role => (ROLES as readonly string[]).includes(word);

/** Returns whether any of these names from a token is the needed role, or a role that includes it. */
export const includesRole = (names: readonly string[], needed: Role): boolean =>
  names.some((name) => isRole(name) && ROLES.indexOf(name) >= ROLES.indexOf(needed));
