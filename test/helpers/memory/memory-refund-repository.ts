import type { Clock } from '../../../src/core/ports/clock.js';
import type { AuditEntry } from '../../../src/core/ports/audit-log.js';
import type { LeasedRefund, Refund, RefundRepository, RefundState } from '../../../src/core/ports/refund-repository.js';
import type {
  RefundFilter,
  RefundPage,
  RefundStore,
  StoredRefund,
  TakeOnOutcome,
} from '../../../src/operate/refunds/refund-store.js';
import type { MemoryOrderTransitions } from './memory-order-transitions.js';
import { isWaitOver } from './wait-over.js';

interface Tries {
  state: RefundState;
  attempts: number;
  availableAtMs: number;
  leasedUntilMs: number;
  lastError: string | null;
}

/** The refunds of the payments in `MemoryOrderTransitions`. */
export class MemoryRefundRepository implements RefundRepository, Pick<RefundStore, 'list' | 'takeOn'> {
  readonly audited: AuditEntry[] = [];
  readonly #transitions: MemoryOrderTransitions;
  readonly #clock: Clock;
  readonly #tries = new Map<string, Tries>();

  constructor(transitions: MemoryOrderTransitions, clock: Clock) {
    this.#transitions = transitions;
    this.#clock = clock;
  }

  async lease(max: number, leaseMs: number): Promise<LeasedRefund[]> {
    const nowMs = this.#clock.nowMs();
    const due = this.#all.filter(({ paymentId }) => {
      const { state, availableAtMs } = this.tries(paymentId);
      return state === 'due' && isWaitOver(availableAtMs, nowMs);
    });
    return due.slice(0, max).map(({ paymentId, orderId, amountCents }) => {
      const tries = this.tries(paymentId);
      tries.availableAtMs = nowMs + leaseMs;
      tries.leasedUntilMs = nowMs + leaseMs;
      tries.lastError = 'a keeper asked the provider, and no answer was recorded';
      return { paymentId, orderId, amountCents, attempts: ++tries.attempts };
    });
  }

  async markRefunded(paymentId: string): Promise<boolean> {
    const tries = this.tries(paymentId);
    const isDue = tries.state === 'due';
    if (isDue) Object.assign(tries, { state: 'refunded', lastError: null });
    return isDue;
  }

  async list({ state }: RefundFilter, { after, max }: RefundPage): Promise<StoredRefund[]> {
    const all = this.#all.map((refund) => this.#storedOf(refund));
    const from = all.findIndex(({ paymentId }) => paymentId === after) + 1;
    const matching = all.slice(from).filter((refund) => state === undefined || refund.state === state);
    return matching.slice(0, max);
  }

  async takeOn(paymentId: string, actor: string): Promise<TakeOnOutcome> {
    const found = this.#all.find((refund) => refund.paymentId === paymentId);
    if (found === undefined) return { outcome: 'not_found' };
    const { state, attempts, lastError, leasedUntilMs } = this.tries(paymentId);
    if (state === 'due' && !isWaitOver(leasedUntilMs, this.#clock.nowMs())) {
      return { outcome: 'being_asked', refund: this.#storedOf(found) };
    }
    if (!(await this.markRefunded(paymentId))) return { outcome: 'already_refunded', refund: this.#storedOf(found) };
    const { orderId, amountCents } = found;
    this.audited.push({
      actor,
      action: 'refund.claimed',
      subject: `refund:${paymentId}`,
      before: { state, attempts, lastError },
      after: { state: 'refunded', orderId, amountCents },
    });
    return { outcome: 'done', refund: this.#storedOf({ ...found, state: 'refunded' }) };
  }

  async postpone(
    { paymentId, attempts }: Pick<LeasedRefund, 'paymentId' | 'attempts'>,
    delayMs: number,
    lastError: string,
  ): Promise<void> {
    const tries = this.tries(paymentId);
    if (tries.state === 'due' && tries.attempts === attempts)
      Object.assign(tries, { availableAtMs: this.#clock.nowMs() + delayMs, leasedUntilMs: 0, lastError });
  }

  async refundsOf(orderId: string): Promise<Refund[]> {
    return this.#all.filter((refund) => refund.orderId === orderId);
  }

  async has(paymentId: string): Promise<boolean> {
    return this.#all.some((refund) => refund.paymentId === paymentId);
  }

  /** Returns the state and attempts of one refund. */
  tries(paymentId: string): Tries {
    const known = this.#tries.get(paymentId);
    const availableAtMs = this.#clock.nowMs();
    const isOwed = this.#transitions.payments.get(paymentId)?.amountCents !== 0; // an amount of 0 is refunded at once
    const state = isOwed ? 'due' : 'refunded';
    const tries: Tries = known ?? { state, attempts: 0, availableAtMs, leasedUntilMs: 0, lastError: null };
    this.#tries.set(paymentId, tries);
    return tries;
  }

  #storedOf(refund: Refund): StoredRefund {
    const { attempts, lastError } = this.tries(refund.paymentId);
    const atMs = this.#clock.nowMs();
    const ofOrder = { refundId: null, followedBy: null };
    return { ...refund, ...ofOrder, attempts, lastError, createdAtMs: atMs, updatedAtMs: atMs };
  }

  get #all(): Refund[] {
    return [...this.#transitions.payments.values()].flatMap(({ paymentId, orderId, amountCents, refund: reason }) => {
      return reason === null ? [] : [{ paymentId, orderId, amountCents, reason, state: this.tries(paymentId).state }];
    });
  }
}
