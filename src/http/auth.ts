import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { RevocableToken } from '../admission/revocations.js';
import { isUserId } from '../core/ids.js';
import { bugLog } from '../core/job.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import {
  KeyFinder,
  TOKEN_LENGTH_MAX,
  type Claims,
  type IssuerKeys,
  type NoKey,
  type OwnKeys,
  type TokenTerms,
} from './token-keys.js';

/** The caller that the token names. */
export interface Principal {
  readonly userId: string;
  readonly roles: readonly string[];
  /** When the token expires, Unix ms. */
  readonly expiresAtMs: number;
}

/**
 * Why the caller of a request is unknown. `keys_unavailable`: the keys of the issuer have never been read, so nothing
 * is known about the token. `app_failed`: the host app could not identify the caller. `not_signed_in`: the host app
 * does not know the caller. All other words describe the token.
 */
export type Denial =
  | NoKey
  | 'missing'
  | 'too_long'
  | 'bad_signature'
  | 'wrong_audience'
  | 'bad_subject'
  | 'bad_roles'
  | 'no_expiry'
  | 'expired'
  | 'not_yet_valid'
  | 'lives_too_long'
  | 'revoked'
  | 'keys_unavailable'
  | 'app_failed'
  | 'not_signed_in';

export interface Authenticator {
  /**
   * Reads the value of the Authorization header. Never throws. Returns a promise only if the issuer must be asked for
   * an unknown key.
   */
  authenticate(authorization: string | undefined): Principal | Denial | Promise<Principal | Denial>;
}

/** Identifies the sender of a request. */
export interface RequestAuthenticator {
  /** Whether a caller may be known without an `Authorization` header. Default: such a request is refused at once. */
  readonly readsMoreThanHeader?: boolean;
  /** Never throws. */
  authenticate(
    authorization: string | undefined,
    req: IncomingMessage,
  ): Principal | Denial | Promise<Principal | Denial>;
}

/** A caller as the host app names it. */
export interface Caller {
  /** 1 to 128 visible ASCII characters. */
  readonly userId: string;
  /** Roles that the admission rules can require, such as `vip`. */
  readonly roles?: readonly string[];
}

const LOG_EVERY_MS = 60_000;

/**
 * Asks a host app for its callers. Answers 503 if the app throws or rejects, and 401 if a caller has no valid user id.
 * Logs either at most once a minute, because a client may repeat a request that makes the app fail.
 */
export function authenticatorOf(
  identify: (req: IncomingMessage) => Caller | null | Promise<Caller | null>,
  ports: { readonly clock: Clock; readonly log: Log },
): RequestAuthenticator {
  const logBad = bugLog('the authenticate function of the app returned an invalid userId', ports, LOG_EVERY_MS);
  const logFailed = bugLog('the authenticate function of the app failed', ports, LOG_EVERY_MS);
  const principalOf = (caller: Caller | null): Principal | Denial => {
    if (caller === null) return 'not_signed_in';
    const { userId, roles = [] } = caller;
    if (isUserId(userId)) return { userId, roles, expiresAtMs: Infinity };
    logBad(new Error('userId must be 1 to 128 visible ASCII characters'));
    return 'not_signed_in';
  };
  const failed = (error: unknown): Denial => {
    logFailed(error);
    return 'app_failed';
  };
  return {
    readsMoreThanHeader: true,
    authenticate(_, req) {
      try {
        const caller = identify(req);
        return caller instanceof Promise ? caller.then(principalOf).catch(failed) : principalOf(caller);
      } catch (error) {
        return failed(error);
      }
    },
  };
}

export interface AuthOptions {
  /** Maximum number of verified tokens kept in memory. 0 disables the cache. */
  readonly cacheMax: number;
  /** Maximum time from `iat` to `exp`, in ms. For a token without `iat`, the time from now to `exp`. */
  readonly lifeMaxMs: number;
  /** The largest accepted difference between the clock of an issuer and ours, in ms. */
  readonly toleranceMs: number;
  readonly isRevoked: (token: RevocableToken) => boolean;
  /** Unix time in ms. */
  readonly nowMs?: () => number;
}

interface Verified extends RevocableToken {
  readonly caller: Principal;
  /** Includes the tolerance. */
  readonly goodUntilMs: number;
}

/**
 * Reads bearer tokens. Caches only good tokens, and never beyond their `exp`, because a flood of forged tokens must not
 * push out the tokens of honest buyers.
 */
export function createAuthenticator(
  keys: { readonly own: OwnKeys; readonly issuers: readonly IssuerKeys[] },
  options: AuthOptions,
): Authenticator {
  const finder = new KeyFinder(keys.own, keys.issuers);
  const nowMs = options.nowMs ?? Date.now;
  const known = options.cacheMax > 0 ? new VerifiedTokens(options.cacheMax) : null;
  for (const issuer of keys.issuers) issuer.onChange(() => known?.clear()); // a withdrawn key may have signed them

  const verify = (token: string): Principal | Denial | IssuerKeys => {
    const found = finder.find(token);
    if (typeof found === 'string' || 'refresh' in found) return found;
    for (const key of found) {
      const claims = key.read(token);
      if (claims === null) continue;
      const verified = verifiedOf(claims, key.terms, options, nowMs());
      if (typeof verified === 'string') return verified;
      if (options.isRevoked(verified)) return 'revoked';
      if (token.length <= KEPT_LENGTH_MAX) known?.keep(token, verified);
      return verified.caller;
    }
    return 'bad_signature';
  };
  const withoutKey = ({ isKnown }: IssuerKeys): Denial => (isKnown ? 'unknown_key' : 'keys_unavailable');
  const verifyAfter = async (refreshed: Promise<void>, token: string): Promise<Principal | Denial> => {
    await refreshed;
    const verdict = verify(token);
    return typeof verdict === 'object' && 'refresh' in verdict ? withoutKey(verdict) : verdict;
  };

  return {
    authenticate(authorization) {
      const token = bearerOf(authorization);
      if (token === null) return 'missing';
      if (token.length > TOKEN_LENGTH_MAX) return 'too_long';
      const hit = known?.get(token);
      if (hit) {
        if (hit.goodUntilMs <= nowMs()) return 'expired';
        return options.isRevoked(hit) ? 'revoked' : hit.caller;
      }
      const verdict = verify(token);
      if (typeof verdict === 'string' || !('refresh' in verdict)) return verdict;
      const refreshed = verdict.refresh();
      return refreshed === null ? withoutKey(verdict) : verifyAfter(refreshed, token);
    },
  };
}

/** Longer than most tokens. Limits the memory of the cache. */
const KEPT_LENGTH_MAX = 4096;

/**
 * Caches each token at its second use. In a rush nearly every token is new, and writing a token into a full LRU cache
 * costs 2 µs, half as much as verifying it. So the first use of a token only leaves a mark in a table of 65,536
 * entries, which later tokens overwrite. A token without a mark is not looked up in the cache.
 */
class VerifiedTokens {
  readonly #tokens: LRUCache<string, Verified>;
  readonly #marks = new Uint16Array(1 << 16);

  constructor(max: number) {
    this.#tokens = new LRUCache({ max });
  }

  get(token: string): Verified | undefined {
    const hash = tailHash(token);
    return this.#marks[hash & 0xffff] === hash >>> 16 ? this.#tokens.get(token) : undefined;
  }

  keep(token: string, verified: Verified): void {
    const hash = tailHash(token);
    if (this.#marks[hash & 0xffff] === hash >>> 16) this.#tokens.set(token, verified);
    this.#marks[hash & 0xffff] = hash >>> 16;
  }

  clear(): void {
    this.#tokens.clear();
  }
}

/** Returns 32 bits from the end of the signature, which are as good as random. */
function tailHash(token: string): number {
  let hash = 0;
  for (let i = Math.max(0, token.length - 8); i < token.length; i++) hash = Math.imul(hash, 31) + token.charCodeAt(i);
  return Math.imul(hash, 0x9e3779b1) >>> 0;
}

function bearerOf(authorization: string | undefined): string | null {
  if (authorization === undefined) return null;
  if (authorization.startsWith('Bearer ') && authorization[7] !== ' ') return authorization.slice(7);
  return /^bearer +(.+)$/i.exec(authorization)?.[1] ?? null; // the scheme is case-insensitive (RFC 9110, 11.1)
}

/** Checks the claims. Refuses a token without `exp`, because it would stay good forever if it leaked. */
function verifiedOf(
  claims: Claims,
  terms: TokenTerms,
  { lifeMaxMs, toleranceMs }: AuthOptions,
  nowMs: number,
): Verified | Denial {
  const { iss, aud, sub, exp, nbf, iat, jti } = claims;
  if (terms.issuer !== null && iss !== terms.issuer) return 'wrong_issuer';
  if (terms.audiences !== null && !isFor(aud, terms.audiences)) return 'wrong_audience';
  if (!isUserId(sub)) return 'bad_subject';
  const userId = terms.subjectPrefix + sub;
  if (!isUserId(userId)) return 'bad_subject'; // too long, together with its prefix
  if (typeof exp !== 'number') return 'no_expiry';
  const goodUntilMs = exp * 1000 + toleranceMs;
  if (nowMs >= goodUntilMs) return 'expired';
  if (!hasCome(nbf, nowMs + toleranceMs) || !hasCome(iat, nowMs + toleranceMs)) return 'not_yet_valid';
  const issuedAtMs = typeof iat === 'number' ? iat * 1000 : null;
  if (exp * 1000 - (issuedAtMs ?? nowMs) > lifeMaxMs) return 'lives_too_long';
  const roles = terms.rolesOf(claims);
  if (roles === null) return 'bad_roles';
  const tokenId = typeof jti === 'string' ? jti : null;
  return { caller: { userId, roles, expiresAtMs: exp * 1000 }, goodUntilMs, userId, tokenId, issuedAtMs };
}

const isFor = (aud: unknown, audiences: readonly string[]): boolean =>
  Array.isArray(aud) ? aud.some((one) => audiences.includes(one as string)) : audiences.includes(aud as string);

/** Returns whether a time has come. A missing time has. */
const hasCome = (seconds: unknown, nowMs: number): boolean =>
  seconds === undefined || (typeof seconds === 'number' && nowMs >= seconds * 1000);
