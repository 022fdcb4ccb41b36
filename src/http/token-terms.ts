import type { Issuer } from '../core/config/issuers.js';
import { isRole } from '../core/roles.js';
import type { Claims, TokenTerms } from './token-keys.js';

// The conditions on the tokens of an issuer, and how to read their roles.

const NO_ROLES: readonly string[] = [];
/** Maximum number of roles in our own tokens. */
const ROLES_MAX = 32;

/**
 * Returns the terms of tokens signed with our own key, which may give any role.
 * @param issuer, audience empty if any is accepted
 */
export const ownTerms = ({ issuer, audience }: { readonly issuer: string; readonly audience: string }): TokenTerms => ({
  issuer: issuer === '' ? null : issuer,
  audiences: audience === '' ? null : [audience],
  subjectPrefix: '',
  rolesOf({ roles }) {
    if (roles === undefined) return NO_ROLES;
    return areTexts(roles) && roles.length <= ROLES_MAX ? roles : null;
  },
});

/**
 * Returns the terms of an identity provider. Only the table in its configuration turns the provider's names into our
 * roles: a group that happens to be called `admin` makes no user an admin here. Names that are not in the table are
 * kept, for admission rules that use them.
 */
export const issuerTerms = ({ issuer, audience, rolesClaim, roles, subjectPrefix = '' }: Issuer): TokenTerms => {
  const roleOf = new Map(Object.entries(roles));
  return {
    issuer,
    audiences: audience,
    subjectPrefix,
    rolesOf(claims) {
      const names = claimAt(claims, rolesClaim);
      if (names === undefined || names === null) return NO_ROLES;
      const list = typeof names === 'string' ? names.split(' ').filter(Boolean) : names;
      if (!areTexts(list)) return null;
      return list.flatMap((name) => roleOf.get(name) ?? (isRole(name) ? [] : name));
    },
  };
};

const areTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');

/** Returns a claim by its name, with or without dots (`https://shop.example/roles`), or by a path (`realm.roles`). */
function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Claims)[part];
  }
  return value;
}
