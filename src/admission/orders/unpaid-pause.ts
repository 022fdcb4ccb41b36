import { OperationalError } from '../../core/errors.js';
import type { Clock } from '../../core/ports/clock.js';
import type { ExpiredOrders, OrderRepository } from '../../core/ports/order-repository.js';
import type { RequestRef } from '../../core/purchase.js';
import { modeFor, type RulesOf } from '../layer.js';
import type { AdmissionMetrics } from '../metrics.js';
import type { OrderRules } from './order-rules.js';

/** Maximum number of buyers in one query, which takes MySQL a few milliseconds. */
const BUYERS_PER_QUERY = 500;
/** Maximum number of buyers that wait for MySQL. Further buyers are admitted. */
const WAITING_MAX = 5000;
/** Maximum wait of a purchase. After that it is admitted, because a sale must not stop when MySQL does. */
const ANSWER_WITHIN_MS = 500;
/** No query for this long after a failure. Otherwise each purchase in an outage would wait. */
const REST_MS = 1000;

interface Group {
  readonly userIds: Set<string>;
  readonly expired: Promise<Map<string, ExpiredOrders>>;
}

interface PauseParts {
  readonly rules: RulesOf<OrderRules>;
  readonly repository: OrderRepository;
  readonly clock: Clock;
  readonly metrics: AdmissionMetrics;
}

/**
 * Delays buyers who let orders of a sale expire unpaid. Each such order, counted by MySQL, doubles the pause. Purchases
 * during a query share the next one. While the rule is off, no queries are sent.
 */
export class UnpaidPause {
  readonly #parts: PauseParts;
  /** The next query of each sale, not sent yet. */
  readonly #next = new Map<string, Group>();
  /** Resolves when the last query of a sale, whether it is under way or waits, has ended. */
  readonly #last = new Map<string, Promise<unknown>>();
  #waiting = 0;
  #restUntilMs = -Infinity;

  constructor(parts: PauseParts) {
    this.#parts = parts;
  }

  /**
   * Returns the buyer's wait, ms. Null to proceed, also for a purchase that has an order: it gets the same answer
   * again. Never rejects for a fault of MySQL.
   */
  check(purchase: RequestRef): null | Promise<number | null> {
    const rules = this.#parts.rules(purchase.userId);
    if (rules.unpaidPauseMs === null || modeFor(rules, purchase.saleId) === 'off') return null;
    if (this.#waiting >= WAITING_MAX || this.#parts.clock.monotonicMs() < this.#restUntilMs) return null;
    return this.#ask(purchase);
  }

  async #ask(purchase: RequestRef): Promise<number | null> {
    const answered = new AbortController();
    const tooLate = this.#parts.clock.sleep(ANSWER_WITHIN_MS, answered.signal).then(() => 'too_late' as const);
    this.#waiting++;
    try {
      const pauseMs = await Promise.race([this.#pauseOf(purchase), tooLate]);
      if (pauseMs === 'too_late') return this.#rest();
      const { mode } = this.#parts.rules(purchase.userId);
      if (pauseMs === null || mode === 'off') return null;
      this.#parts.metrics.refused('orders', 'unpaid_pause', mode);
      return mode === 'on' ? pauseMs : null;
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      return this.#rest();
    } finally {
      this.#waiting--;
      answered.abort();
    }
  }

  #rest(): null {
    this.#restUntilMs = this.#parts.clock.monotonicMs() + REST_MS;
    return null;
  }

  async #pauseOf({ saleId, userId, requestId }: RequestRef): Promise<number | null> {
    const expired = (await this.#expiredOf(saleId, userId)).get(userId);
    if (expired === undefined) return null;
    const restMs = pauseAfter(expired.count, this.#parts.rules(userId)) - expired.lastAgoMs;
    if (restMs <= 0) return null;
    const own = await this.#parts.repository.findByPurchases(saleId, [{ userId, requestId }]);
    return own.length > 0 ? null : restMs;
  }

  /** When the previous query has ended, one query asks for all buyers who arrived meanwhile. */
  #expiredOf(saleId: string, userId: string): Group['expired'] {
    const waiting = this.#next.get(saleId);
    if (waiting !== undefined && (waiting.userIds.size < BUYERS_PER_QUERY || waiting.userIds.has(userId))) {
      waiting.userIds.add(userId);
      return waiting.expired;
    }
    const userIds = new Set([userId]);
    const expired = (this.#last.get(saleId) ?? Promise.resolve()).then(() => {
      if (this.#next.get(saleId) === group) this.#next.delete(saleId);
      return this.#parts.repository.expiredOf(saleId, [...userIds]);
    });
    const group: Group = { userIds, expired };
    this.#next.set(saleId, group);
    const ended = expired
      .catch(() => undefined)
      .then(() => {
        if (this.#last.get(saleId) === ended) this.#last.delete(saleId);
      });
    this.#last.set(saleId, ended);
    return expired;
  }
}

/** @returns ms */
function pauseAfter(count: number, { unpaidPauseMs, unpaidPauseMaxMs }: OrderRules): number {
  return unpaidPauseMs === null ? 0 : Math.min(unpaidPauseMaxMs, unpaidPauseMs * 2 ** (count - 1));
}
