import type { Clock } from '../../../src/ports/clock.js';
import type { LeasedRefund, Refund, RefundBook, RefundState } from '../../../src/ports/refund-book.js';
import type { MemoryOrderMoves } from './memory-order-moves.js';

interface Tries {
  state: RefundState;
  attempts: number;
  availableAtMs: number;
  lastError: string | null;
}

/** What `MemoryOrderMoves` owes back, on the clock of its books. */
export class MemoryRefundBook implements RefundBook {
  readonly #moves: MemoryOrderMoves;
  readonly #clock: Clock;
  readonly #tries = new Map<string, Tries>();

  constructor(moves: MemoryOrderMoves, clock: Clock) {
    this.#moves = moves;
    this.#clock = clock;
  }

  async lease(max: number, leaseMs: number): Promise<LeasedRefund[]> {
    const nowMs = this.#clock.nowMs();
    const due = this.#all.filter(({ paymentId }) => {
      const { state, availableAtMs } = this.tries(paymentId);
      return state === 'due' && availableAtMs <= nowMs;
    });
    return due.slice(0, max).map(({ paymentId, orderId, amountCents }) => {
      const tries = this.tries(paymentId);
      tries.availableAtMs = nowMs + leaseMs;
      return { paymentId, orderId, amountCents, attempts: ++tries.attempts };
    });
  }

  async markRefunded(paymentId: string): Promise<void> {
    Object.assign(this.tries(paymentId), { state: 'refunded', lastError: null });
  }

  async postpone(paymentId: string, delayMs: number, lastError: string): Promise<void> {
    const tries = this.tries(paymentId);
    if (tries.state === 'due') Object.assign(tries, { availableAtMs: this.#clock.nowMs() + delayMs, lastError });
  }

  async refundsOf(orderId: string): Promise<Refund[]> {
    return this.#all.filter((refund) => refund.orderId === orderId);
  }

  /** How one was tried. */
  tries(paymentId: string): Tries {
    const known = this.#tries.get(paymentId);
    const tries: Tries = known ?? { state: 'due', attempts: 0, availableAtMs: this.#clock.nowMs(), lastError: null };
    this.#tries.set(paymentId, tries);
    return tries;
  }

  get #all(): Refund[] {
    return [...this.#moves.payments.values()].flatMap(({ paymentId, orderId, amountCents, refund: reason }) => {
      return reason === null ? [] : [{ paymentId, orderId, amountCents, reason, state: this.tries(paymentId).state }];
    });
  }
}
