import { OperationalError } from '../../core/errors.js';
import type { Clock } from '../../core/ports/clock.js';
import type { AdmissionMetrics } from '../../core/ports/admission-metrics.js';
import type { PurchaseTokenStore, Spent } from '../../core/ports/admission-stores.js';
import { covers } from '../layer.js';
import type { Seals, SealOf } from './seals.js';
import type { TokenRules } from './request-signatures.js';

export interface PurchaseTokensParts {
  readonly rules: () => TokenRules;
  readonly seals: Seals;
  readonly store: PurchaseTokenStore;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly metrics: Pick<AdmissionMetrics, 'refused'>;
}

/** What tokens depend on. Times in Unix ms. */
export interface TokenSale {
  readonly saleId: string;
  readonly stock: number;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
}

/**
 * - `not_needed`: this sale asks for none
 * - `handed`: here it is, for the first time or again
 * - `not_open`, `closed`: too early, too late
 * - `tokens_gone`: as many buyers have one as may have one
 */
export type TokenAnswer =
  | { readonly outcome: 'handed'; readonly token: string; /** Unix ms. */ readonly untilMs: number }
  | { readonly outcome: 'not_needed' | 'not_open' | 'closed' | 'tokens_gone' };

/** `unavailable`: nobody can say whether the token was spent. */
export type TokenRefusal = 'forbidden' | 'unavailable';

export interface TokenPurchase {
  readonly saleId: string;
  readonly userId: string;
  readonly requestId: string;
}

/** Why, for the counter. */
type Flaw = 'no_token' | 'bad_token' | Exclude<Spent, 'spent' | 'spent_before'> | 'unavailable';

/**
 * One-time purchase tokens: shortly before a sale opens a signed-in buyer fetches his, one each and only so many, and
 * his purchase shows it. Only a true seal costs a question to Redis, so a flood of invented tokens costs an HMAC each.
 */
export class PurchaseTokens {
  readonly #parts: PurchaseTokensParts;

  constructor(parts: PurchaseTokensParts) {
    this.#parts = parts;
  }

  /** @throws OperationalError redis */
  async hand({ saleId, stock, opensAtMs, closesAtMs }: TokenSale, userId: string): Promise<TokenAnswer> {
    const { mode, sales, leadMs, lifeMs, perUnit } = this.#parts.rules();
    if (mode === 'off' || !covers(sales, saleId)) return { outcome: 'not_needed' };
    const tokensMax = Math.ceil(stock * perUnit);
    const issue = { saleId, fromMs: opensAtMs - leadMs, untilMs: closesAtMs, tokensMax };
    const { outcome, nowMs } = await this.#parts.store.hand(issue, userId);
    if (outcome === 'too_early') return { outcome: 'not_open' };
    if (outcome === 'too_late') return { outcome: 'closed' };
    if (outcome === 'none_left') return { outcome: 'tokens_gone' };
    const untilMs = Math.max(nowMs, opensAtMs) + lifeMs; // the wait for the start does not use it up
    return { outcome: 'handed', token: this.#parts.seals.seal(tokenOf(saleId, userId), [untilMs]), untilMs };
  }

  /**
   * Asked for each purchase. Never rejects for a fault of Redis.
   * @param token the header `Seckill-Purchase-Token`
   * @returns null: let it in
   */
  check(
    purchase: TokenPurchase,
    token: string | string[] | undefined,
  ): TokenRefusal | null | Promise<TokenRefusal | null> {
    const { mode, sales } = this.#parts.rules();
    if (mode === 'off' || !covers(sales, purchase.saleId)) return null;
    if (token === undefined) return this.#refuse('no_token', mode);
    const fields = this.#parts.seals.open(tokenOf(purchase.saleId, purchase.userId), String(token));
    if (fields === null) return this.#refuse('bad_token', mode);
    const isGood = Number(fields[0]) > this.#parts.clock.nowMs();
    return this.#spend(purchase, isGood).then((flaw) => (flaw === null ? null : this.#refuse(flaw, mode)));
  }

  async #spend(purchase: TokenPurchase, isGood: boolean): Promise<Flaw | null> {
    try {
      const spent = await this.#parts.store.spend(purchase, isGood);
      return spent === 'spent' || spent === 'spent_before' ? null : spent;
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

const tokenOf = (saleId: string, userId: string): SealOf => ({ kind: 'purchase-token', saleId, userId });
