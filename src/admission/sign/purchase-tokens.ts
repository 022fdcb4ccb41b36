import { OperationalError } from '../../core/errors.js';
import type { PurchaseTokenStore, Redeemed } from '../../core/ports/admission-stores.js';
import type { Clock } from '../../core/ports/clock.js';
import { covers } from '../layer.js';
import type { AdmissionMetrics } from '../metrics.js';
import type { TokenRules } from './request-signatures.js';
import type { SealOf, Seals } from './seals.js';

/** What the tokens of a sale depend on. Times in Unix ms. */
export interface TokenSale {
  readonly saleId: string;
  readonly stock: number;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
}

/**
 * - `not_needed`: this sale asks for none
 * - `handed`: the token, for the first time or again
 * - `not_open`, `closed`: too early, too late
 * - `tokens_gone`: as many buyers have one as may have one
 */
export type TokenAnswer =
  | { readonly outcome: 'handed'; readonly token: string; /** Unix ms. */ readonly untilMs: number }
  | { readonly outcome: 'not_needed' | 'not_open' | 'closed' | 'tokens_gone' };

/** `unavailable`: it is unknown whether the token was redeemed before. */
export type TokenRefusal = 'forbidden' | 'unavailable';

export interface TokenPurchase {
  readonly saleId: string;
  readonly userId: string;
  readonly requestId: string;
}

/** Why, for the metric. */
type Flaw = 'no_token' | 'bad_token' | Exclude<Redeemed, 'spent' | 'spent_before'> | 'unavailable';

/**
 * One-time purchase tokens: shortly before a sale opens a signed-in buyer fetches one, and their purchase shows it. Each
 * buyer has one, and there are only so many. Only a true seal costs a call to Redis, so an invented token costs an HMAC.
 */
export class PurchaseTokens {
  readonly #rules: () => TokenRules;
  readonly #seals: Seals;
  readonly #store: PurchaseTokenStore;
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #metrics: Pick<AdmissionMetrics, 'refused'>;

  constructor({
    rules,
    seals,
    store,
    clock,
    metrics,
  }: {
    readonly rules: () => TokenRules;
    readonly seals: Seals;
    readonly store: PurchaseTokenStore;
    readonly clock: Pick<Clock, 'nowMs'>;
    readonly metrics: Pick<AdmissionMetrics, 'refused'>;
  }) {
    this.#rules = rules;
    this.#seals = seals;
    this.#store = store;
    this.#clock = clock;
    this.#metrics = metrics;
  }

  /** @throws OperationalError redis */
  async issue({ saleId, stock, opensAtMs, closesAtMs }: TokenSale, userId: string): Promise<TokenAnswer> {
    const { mode, sales, leadMs, lifeMs, perUnit } = this.#rules();
    if (mode === 'off' || !covers(sales, saleId)) return { outcome: 'not_needed' };
    const tokensMax = Math.ceil(stock * perUnit);
    const issue = { saleId, fromMs: opensAtMs - leadMs, untilMs: closesAtMs, tokensMax };
    const { outcome, nowMs } = await this.#store.issue(issue, userId);
    if (outcome === 'too_early') return { outcome: 'not_open' };
    if (outcome === 'too_late') return { outcome: 'closed' };
    if (outcome === 'none_left') return { outcome: 'tokens_gone' };
    const untilMs = Math.max(nowMs, opensAtMs) + lifeMs; // the wait for the opening does not use it up
    return { outcome: 'handed', token: this.#seals.seal(sealOf(saleId, userId), [untilMs]), untilMs };
  }

  /**
   * Called for each purchase. Never rejects for a fault of Redis.
   * @param token the header `Seckill-Purchase-Token`
   * @returns null: go on
   */
  check(
    purchase: TokenPurchase,
    token: string | string[] | undefined,
  ): TokenRefusal | null | Promise<TokenRefusal | null> {
    const { mode, sales } = this.#rules();
    if (mode === 'off' || !covers(sales, purchase.saleId)) return null;
    if (token === undefined) return this.#refuse('no_token', mode);
    const fields = this.#seals.open(sealOf(purchase.saleId, purchase.userId), String(token));
    if (fields === null) return this.#refuse('bad_token', mode);
    const isGood = Number(fields[0]) > this.#clock.nowMs();
    return this.#redeem(purchase, isGood).then((flaw) => (flaw === null ? null : this.#refuse(flaw, mode)));
  }

  async #redeem(purchase: TokenPurchase, isGood: boolean): Promise<Flaw | null> {
    try {
      const redeemed = await this.#store.redeem(purchase, isGood);
      return redeemed === 'spent' || redeemed === 'spent_before' ? null : redeemed;
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      return isGood && this.#rules().down === 'allow' ? null : 'unavailable';
    }
  }

  #refuse(flaw: Flaw, mode: 'dry_run' | 'on'): TokenRefusal | null {
    this.#metrics.refused('token', flaw, mode);
    if (mode === 'dry_run') return null;
    return flaw === 'unavailable' ? flaw : 'forbidden';
  }
}

const sealOf = (saleId: string, userId: string): SealOf => ({ kind: 'purchase-token', saleId, userId });
