import { OperationalError } from '../../../src/core/errors.js';
import type {
  BreakerReport,
  BreakerStore,
  Issued,
  LiveReport,
  NonceStore,
  NonceTaken,
  PurchaseTokenStore,
  Redeemed,
  TokenBuyer,
  TokenIssue,
} from '../../../src/core/ports/admission-stores.js';
import type { Clock } from '../../../src/core/ports/clock.js';

/** Nonces in memory that expire with the clock. */
export class MemoryNonceStore implements NonceStore {
  readonly #clock: Clock;
  readonly #untilMs = new Map<string, number>();
  #sinceMs = -Infinity;
  /** While true, every call fails as if Redis were down. */
  down = false;
  asked = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Loses everything, like a server that restarts without its data. */
  lose(): void {
    this.#untilMs.clear();
    this.#sinceMs = this.#clock.nowMs();
  }

  async take(keyId: string, nonce: string, times: Parameters<NonceStore['take']>[2]): Promise<NonceTaken> {
    this.asked++;
    if (this.down) throw new OperationalError('redis', 'memory nonce store is down', { retryable: true });
    if (times.signedAtMs < this.#sinceMs) return 'outdated';
    const name = `${keyId}:${nonce}`;
    if ((this.#untilMs.get(name) ?? 0) > this.#clock.nowMs()) return 'used';
    this.#untilMs.set(name, this.#clock.nowMs() + times.lifeMs);
    return 'fresh';
  }
}

interface BuyerTokens {
  /** The number issued so far. */
  issued: number;
  /** End of the last token, Unix ms. */
  endsAtMs: number;
  address: string | null;
  /** The purchase that redeemed the token, or null. */
  requestId: string | null;
}

/** Purchase tokens in memory. Remembers expired tokens forever. */
export class MemoryPurchaseTokenStore implements PurchaseTokenStore {
  readonly #clock: Clock;
  /** Sale → buyer. */
  readonly #sales = new Map<string, Map<string, BuyerTokens>>();
  /** While true, every call fails as if Redis were down. */
  down = false;
  asked = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Loses everything, like a server that restarts without its data. */
  lose(): void {
    this.#sales.clear();
  }

  async issue(issue: TokenIssue, buyer: TokenBuyer): Promise<{ outcome: Issued; atMs: number }> {
    this.#failIfDown();
    const nowMs = this.#clock.nowMs();
    if (nowMs < issue.fromMs) return { outcome: 'too_early', atMs: nowMs };
    if (nowMs >= issue.untilMs) return { outcome: 'too_late', atMs: nowMs };
    const buyers = this.#buyersOf(issue.saleId);
    const own = buyers.get(buyer.userId);
    if (own !== undefined && (own.requestId !== null || own.endsAtMs > nowMs)) {
      return { outcome: 'issued_before', atMs: Math.max(own.endsAtMs, nowMs) };
    }
    const issued = own?.issued ?? 0;
    if (issued >= issue.perBuyer) return { outcome: 'buyer_limit', atMs: nowMs };
    const live = [...buyers.values()].filter(({ endsAtMs }) => endsAtMs > nowMs);
    const firstEnd = (some: readonly BuyerTokens[]): number => Math.min(...some.map(({ endsAtMs }) => endsAtMs));
    if (issue.perAddress !== null && buyer.address !== null) {
      const there = live.filter(({ address, requestId }) => address === buyer.address && requestId === null);
      if (there.length >= issue.perAddress) return { outcome: 'address_limit', atMs: firstEnd(there) };
    }
    if (live.length >= issue.tokensMax) return { outcome: 'none_left', atMs: firstEnd(live) };
    const endsAtMs = Math.max(nowMs, issue.opensAtMs) + issue.lifeMs;
    buyers.set(buyer.userId, { issued: issued + 1, endsAtMs, address: buyer.address, requestId: null });
    return { outcome: 'issued', atMs: endsAtMs };
  }

  async redeem(
    { saleId, userId, requestId }: Parameters<PurchaseTokenStore['redeem']>[0],
    isGood: boolean,
  ): Promise<Redeemed> {
    this.#failIfDown();
    const buyers = this.#buyersOf(saleId);
    const own = buyers.get(userId) ?? { issued: 1, endsAtMs: 0, address: null, requestId: null };
    if (own.requestId === requestId) return 'redeemed_before';
    if (own.requestId !== null) return 'redeemed_for_another';
    if (!isGood) return 'ended';
    buyers.set(userId, { ...own, requestId });
    return 'redeemed';
  }

  #buyersOf(saleId: string): Map<string, BuyerTokens> {
    const buyers = this.#sales.get(saleId) ?? new Map<string, BuyerTokens>();
    this.#sales.set(saleId, buyers);
    return buyers;
  }

  #failIfDown(): void {
    this.asked++;
    if (this.down) throw new OperationalError('redis', 'memory token store is down', { retryable: true });
  }
}

/** Breaker reports in memory that expire with the clock. */
export class MemoryBreakerStore implements BreakerStore {
  readonly #clock: Clock;
  readonly #reports = new Map<string, { readonly report: BreakerReport; readonly untilMs: number }>();
  /** While true, every call fails as if Redis were down. */
  down = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async exchange(processId: string, report: BreakerReport, lifeMs: number): Promise<readonly LiveReport[]> {
    this.#failIfDown();
    const nowMs = this.#clock.nowMs();
    this.#reports.set(processId, { report, untilMs: nowMs + lifeMs });
    return [...this.#reports]
      .filter(([, { untilMs }]) => untilMs > nowMs)
      .map(([id, { report: reported }]) => ({ processId: id, report: reported }));
  }

  async withdraw(processId: string): Promise<void> {
    this.#failIfDown();
    this.#reports.delete(processId);
  }

  #failIfDown(): void {
    if (this.down) throw new OperationalError('redis', 'the breaker store in memory is down', { retryable: true });
  }
}
