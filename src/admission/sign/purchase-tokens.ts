import { assertNever, OperationalError } from '../../core/errors.js';
import type { PurchaseTokenStore, Redeemed } from '../../core/ports/admission-stores.js';
import type { Clock } from '../../core/ports/clock.js';
import { modeFor } from '../layer.js';
import { addressKey } from '../limits/address-key.js';
import type { AdmissionMetrics } from '../metrics.js';
import type { TokenRules } from './request-signatures.js';
import type { SealOf, Seals } from './seals.js';

/** The properties of a sale that determine its tokens. Times in Unix ms. */
export interface TokenSale {
  readonly saleId: string;
  readonly stock: number;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
}

/**
 * - `not_needed`: this sale requires no token
 * - `issued`: for the first time or again
 * - `not_open`, `closed`: too early, or too late
 * - `token_limit_reached`: the buyer has let the permitted number of tokens lapse
 * - `tokens_gone`, `rate_limited`: all tokens of the sale, or of this address, are in use
 */
export type TokenAnswer =
  | { readonly outcome: 'issued'; readonly token: string; /** Unix ms. */ readonly untilMs: number }
  | { readonly outcome: 'not_needed' | 'not_open' | 'closed' | 'token_limit_reached' }
  | {
      readonly outcome: 'tokens_gone' | 'rate_limited';
      /** A token will be free after this time. */ readonly retryAfterMs: number;
    };

/** `unavailable` means that it is unknown whether the token was redeemed before. */
export type TokenRefusal = 'forbidden' | 'unavailable';

export interface TokenPurchase {
  readonly saleId: string;
  readonly userId: string;
  readonly requestId: string;
  /** Address of the client. Empty if its connection is gone. */
  readonly address: string;
}

/** Spreads the retries of buyers who wait for a free token. */
const RETRY_JITTER_MS = 2000;

/** Why a purchase was refused because of its token: a label of the metric. */
type Flaw = 'no_token' | 'bad_token' | Exclude<Redeemed, 'redeemed' | 'redeemed_before'> | 'unavailable';

interface TokenParts {
  readonly rules: () => TokenRules;
  readonly seals: Seals;
  readonly store: PurchaseTokenStore;
  readonly clock: Clock;
  /** Returns a number from 0 up to 1. */
  readonly random?: () => number;
  readonly metrics: AdmissionMetrics;
}

/**
 * One-time tokens: shortly before a sale opens, a signed-in buyer fetches a token, and shows it with the purchase. Each
 * buyer has one, and valid tokens are limited. Only a valid seal costs a call to Redis; an invented one costs an HMAC,
 * a missing one nothing. A purchase passes `begin`, `open` and `redeem` in turn.
 */
export class PurchaseTokens {
  readonly #parts: TokenParts;

  constructor(parts: TokenParts) {
    this.#parts = parts;
  }

  /** Whether buyers of this sale should fetch a token. True even in a dry run, so that tokens can be tested. */
  areIssued(saleId: string): boolean {
    return modeFor(this.#parts.rules(), saleId) !== 'off';
  }

  /**
   * @param address of the client, or empty if unknown
   * @throws OperationalError redis
   */
  async issue(
    { saleId, stock, opensAtMs, closesAtMs }: TokenSale,
    { userId, address }: { readonly userId: string; readonly address: string },
  ): Promise<TokenAnswer> {
    const rules = this.#parts.rules();
    if (modeFor(rules, saleId) === 'off') return { outcome: 'not_needed' };
    const { leadMs, lifeMs, perUnit, perBuyer, perAddress } = rules;
    const times = { fromMs: opensAtMs - leadMs, untilMs: closesAtMs, opensAtMs, lifeMs };
    const tokensMax = Math.ceil(stock * perUnit);
    const buyer = { userId, address: keyOf(address) };
    const { outcome, atMs } = await this.#parts.store.issue(
      { saleId, ...times, tokensMax, perBuyer, perAddress },
      buyer,
    );
    switch (outcome) {
      case 'issued':
      case 'issued_before':
        return { outcome: 'issued', token: this.#parts.seals.seal(sealOf(saleId, userId), [atMs]), untilMs: atMs };
      case 'too_early':
        return { outcome: 'not_open' };
      case 'too_late':
        return { outcome: 'closed' };
      case 'buyer_limit':
        return { outcome: 'token_limit_reached' };
      case 'address_limit':
        return { outcome: 'rate_limited', retryAfterMs: this.#untilFree(atMs) };
      case 'none_left':
        return { outcome: 'tokens_gone', retryAfterMs: this.#untilFree(atMs) };
      default:
        return assertNever(outcome);
    }
  }

  #untilFree(atMs: number): number {
    return (
      Math.max(1, atMs - this.#parts.clock.nowMs()) +
      Math.floor((this.#parts.random ?? Math.random)() * RETRY_JITTER_MS)
    );
  }

  /**
   * Whether a purchase shows a token at all. The buyer may be unknown.
   * @param token the header `Seckill-Purchase-Token`
   * @returns null to proceed
   */
  begin(saleId: string, token: string | string[] | undefined): 'forbidden' | null {
    if (token !== undefined) return null;
    const mode = modeFor(this.#parts.rules(), saleId);
    if (mode === 'off') return null;
    this.#parts.metrics.refused('token', 'no_token', mode);
    return mode === 'on' ? 'forbidden' : null;
  }

  /** Whether the token is ours and this buyer's. @returns its end for `redeem`, Unix ms; null if no token is needed */
  open(saleId: string, userId: string, token: string | string[] | undefined): number | 'forbidden' | null {
    if (token === undefined) return null;
    const mode = modeFor(this.#parts.rules(), saleId);
    if (mode === 'off') return null;
    const fields = this.#parts.seals.open(sealOf(saleId, userId), String(token));
    if (fields !== null) return Number(fields[0]);
    return this.#refuse('bad_token', mode) === null ? null : 'forbidden';
  }

  /** Binds the token to this purchase. Never rejects for a fault of Redis. @returns null to proceed */
  async redeem({ address, ...purchase }: TokenPurchase, endsAtMs: number): Promise<TokenRefusal | null> {
    const isGood = endsAtMs > this.#parts.clock.nowMs();
    const flaw = await this.#redeem({ ...purchase, address: keyOf(address) }, isGood);
    const { mode } = this.#parts.rules();
    return flaw === null || mode === 'off' ? null : this.#refuse(flaw, mode);
  }

  async #redeem(purchase: Parameters<PurchaseTokenStore['redeem']>[0], isGood: boolean): Promise<Flaw | null> {
    try {
      const redeemed = await this.#parts.store.redeem(purchase, isGood);
      return redeemed === 'redeemed' || redeemed === 'redeemed_before' ? null : redeemed;
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      return isGood && this.#parts.rules().down === 'allow' ? null : 'unavailable';
    }
  }

  #refuse(flaw: Flaw, mode: 'dry_run' | 'on'): TokenRefusal | null {
    this.#parts.metrics.refused('token', flaw, mode);
    if (mode === 'dry_run') return null;
    return flaw === 'unavailable' ? flaw : 'forbidden';
  }
}

const keyOf = (address: string): string | null => (address === '' ? null : addressKey(address));
const sealOf = (saleId: string, userId: string): SealOf => ({ kind: 'purchase-token', saleId, userId });
