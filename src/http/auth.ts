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

/** The caller, as the token names them. */
export interface Principal {
  readonly userId: string;
  readonly roles: readonly string[];
  /** The end of the token as it says itself, Unix ms. */
  readonly expiresAtMs: number;
}

/**
 * Why a request names no caller. `keys_unavailable`: the keys of the issuer were never read, so nothing is known about the
 * token. `app_failed`: the app around us could not say who calls. Each other word is about the token.
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
  | 'app_failed';

export interface Authenticator {
  /**
   * Reads the value of the Authorization header. Never throws. There is something to wait for only where an issuer must be
   * asked for a key that is not known yet.
   */
  authenticate(authorization: string | undefined): Principal | Denial | Promise<Principal | Denial>;
}

/** Says who sent a request. */
export interface RequestAuthenticator {
  /** Callers may be known without a header `Authorization`. Left out: a request without one is refused at once. */
  readonly readsMoreThanHeader?: boolean;
  /** Never throws. */
  authenticate(
    authorization: string | undefined,
    req: IncomingMessage,
  ): Principal | Denial | Promise<Principal | Denial>;
}

/** Whom an app names as the caller. */
export interface Caller {
  /** 1 to 128 visible ASCII characters. */
  readonly userId: string;
  /** What the rules of admission may ask for, such as `vip`. */
  readonly roles?: readonly string[];
}

const LOG_EVERY_MS = 60_000;

/**
 * Asks an app who its callers are. What it throws or rejects with is answered 503, and a caller without a good user id 401. Both are
 * logged once a minute: a client may send what makes an app fail again and again.
 */
export function authenticatorOf(
  identify: (req: IncomingMessage) => Caller | null | Promise<Caller | null>,
  ports: { readonly clock: Pick<Clock, 'monotonicMs'>; readonly log: Pick<Log, 'error'> },
): RequestAuthenticator {
  const logBad = bugLog('authenticate of the app named a caller without a good userId', ports, LOG_EVERY_MS);
  const logFailed = bugLog('authenticate of the app failed', ports, LOG_EVERY_MS);
  const principalOf = (caller: Caller | null): Principal | Denial => {
    if (caller === null) return 'missing';
    const { userId, roles = [] } = caller;
    if (isUserId(userId)) return { userId, roles, expiresAtMs: Infinity };
    logBad(new Error('userId must be 1 to 128 visible ASCII characters'));
    return 'bad_subject';
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
  /** Verified tokens kept in memory; 0 keeps none. */
  readonly cacheMax: number;
  /** From `iat`, or from now where a token has none, to `exp`, in ms. */
  readonly lifeMaxMs: number;
  /** How far the clock of an issuer may be from ours, in ms. */
  readonly toleranceMs: number;
  readonly isRevoked: (token: RevocableToken) => boolean;
  /** Unix time in ms. */
  readonly nowMs?: () => number;
}

interface Verified extends RevocableToken {
  readonly caller: Principal;
  /** With the tolerance. */
  readonly goodUntilMs: number;
}

/**
 * Reads bearer tokens. Only good tokens are remembered, and never beyond their `exp`: a flood of forged ones must not
 * push out those of honest buyers.
 */
export function createAuthenticator(
  keys: { readonly own: OwnKeys; readonly issuers: readonly IssuerKeys[] },
  options: AuthOptions,
): Authenticator {
  const finder = new KeyFinder(keys.own, keys.issuers);
  const nowMs = options.nowMs ?? Date.now;
  const known = options.cacheMax > 0 ? new VerifiedTokens(options.cacheMax) : null;
  for (const issuer of keys.issuers) issuer.onChange(() => known?.clear()); // a key that was withdrawn has signed some

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

/** Longer than most tokens; bounds what the cache can hold. */
const KEPT_LENGTH_MAX = 4096;

/**
 * Tokens that were good more than once. In a rush nearly every token is new, and to write each one into a full LRU
 * costs 2 µs, half of what its verification costs. So the first sight leaves only a mark, one of 65,536 that later
 * tokens overwrite, and a token without its mark is not even looked up.
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

/** 32 bits from the end of the signature, which is as good as random. */
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

/** A token without `exp` is good for ever once it leaks, so it is no token here. */
function verifiedOf(
  claims: Claims,
  terms: TokenTerms,
  { lifeMaxMs, toleranceMs }: Pick<AuthOptions, 'lifeMaxMs' | 'toleranceMs'>,
  nowMs: number,
): Verified | Denial {
  const { iss, aud, sub, exp, nbf, iat, jti } = claims;
  if (terms.issuer !== null && iss !== terms.issuer) return 'wrong_issuer';
  if (terms.audiences !== null && !isFor(aud, terms.audiences)) return 'wrong_audience';
  if (!isUserId(sub)) return 'bad_subject';
  const userId = terms.subjectPrefix + sub;
  if (!isUserId(userId)) return 'bad_subject'; // too long with its prefix
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

/** A time that a token need not have. */
const hasCome = (seconds: unknown, nowMs: number): boolean =>
  seconds === undefined || (typeof seconds === 'number' && nowMs >= seconds * 1000);
