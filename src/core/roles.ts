/**
 * What operators may do; each role includes those before it. A viewer looks. An operator runs sales and repairs what got
 * stuck. An admin decides what is offered, about money, rules and people, and what cannot be undone.
 */
export const ROLES = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export const isRole = (word: string): word is Role => (ROLES as readonly string[]).includes(word);

/** Whether one of these names of a token is the role that is needed, or one that includes it. */
export const includesRole = (names: readonly string[], needed: Role): boolean =>
  names.some((name) => isRole(name) && ROLES.indexOf(name) >= ROLES.indexOf(needed));
