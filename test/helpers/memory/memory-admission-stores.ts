import { OperationalError } from '../../../src/core/errors.js';
import type {
  BreakerReport,
  BreakerStore,
  Issued,
  LiveReport,
  NonceStore,
  PurchaseTokenStore,
  Redeemed,
  TokenIssue,
} from '../../../src/core/ports/admission-stores.js';
import type { Clock } from '../../../src/core/ports/clock.js';

/** Nonces in memory; they expire with the clock. */
export class MemoryNonceStore implements NonceStore {
  readonly #clock: Clock;
  readonly #untilMs = new Map<string, number>();
  /** While true every call fails as if Redis were away. */
  down = false;
  asked = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async take(keyId: string, nonce: string, lifeMs: number): Promise<'fresh' | 'used'> {
    this.asked++;
    if (this.down) throw new OperationalError('redis', 'memory nonce store is down', { retryable: true });
    const name = `${keyId}:${nonce}`;
    if ((this.#untilMs.get(name) ?? 0) > this.#clock.nowMs()) return 'used';
    this.#untilMs.set(name, this.#clock.nowMs() + lifeMs);
    return 'fresh';
  }
}

/** Purchase tokens in memory. */
export class MemoryPurchaseTokenStore implements PurchaseTokenStore {
  readonly #clock: Clock;
  /** Sale → buyer → the purchase that the token was redeemed for, or an empty text. */
  readonly #sales = new Map<string, Map<string, string>>();
  /** While true every call fails as if Redis were away. */
  down = false;
  asked = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** As a server that restarted without its data. */
  lose(): void {
    this.#sales.clear();
  }

  async issue({ saleId, ...issue }: TokenIssue, userId: string): Promise<{ outcome: Issued; nowMs: number }> {
    this.#failIfDown();
    const nowMs = this.#clock.nowMs();
    const buyers = this.#buyersOf(saleId);
    return { outcome: this.#issue(issue, buyers, userId, nowMs), nowMs };
  }

  async redeem(
    { saleId, userId, requestId }: { readonly saleId: string; readonly userId: string; readonly requestId: string },
    isGood: boolean,
  ): Promise<Redeemed> {
    this.#failIfDown();
    const buyers = this.#buyersOf(saleId);
    const bound = buyers.get(userId) ?? '';
    if (bound === requestId) return 'spent_before';
    if (bound !== '') return 'spent_otherwise';
    if (!isGood) return 'ended';
    buyers.set(userId, requestId);
    return 'spent';
  }

  #issue(issue: Omit<TokenIssue, 'saleId'>, buyers: Map<string, string>, userId: string, nowMs: number): Issued {
    if (nowMs < issue.fromMs) return 'too_early';
    if (nowMs >= issue.untilMs) return 'too_late';
    if (buyers.has(userId)) return 'handed_before';
    if (buyers.size >= issue.tokensMax) return 'none_left';
    buyers.set(userId, '');
    return 'handed';
  }

  #buyersOf(saleId: string): Map<string, string> {
    const buyers = this.#sales.get(saleId) ?? new Map<string, string>();
    this.#sales.set(saleId, buyers);
    return buyers;
  }

  #failIfDown(): void {
    this.asked++;
    if (this.down) throw new OperationalError('redis', 'memory token store is down', { retryable: true });
  }
}

/** Breaker reports in memory; they expire with the clock. */
export class MemoryBreakerStore implements BreakerStore {
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #reports = new Map<string, { readonly report: BreakerReport; readonly untilMs: number }>();
  /** While true every call fails as if Redis were away. */
  down = false;

  constructor(clock: Pick<Clock, 'nowMs'>) {
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
