import { OperationalError } from '../../../src/core/errors.js';
import { isUnpaid, type Order } from '../../../src/core/order.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { OrderRepository } from '../../../src/core/ports/order-repository.js';
import type {
  AttemptEnd,
  AttemptName,
  DeclineBound,
  OpenAttempt,
  OpenOutcome,
  PaymentAttempts,
} from '../../../src/core/ports/payment-attempts.js';
import { isWaitOver } from './wait-over.js';

interface StoredAttempt {
  readonly orderId: string;
  readonly key: string;
  readonly amountCents: number;
  state: 'open' | AttemptEnd;
  version: number;
  openedAtMs: number;
  availableAtMs: number;
  lastError: string | null;
}

/** Open charges in memory, for the orders of a repository. */
export class MemoryPaymentAttempts implements PaymentAttempts {
  readonly rows = new Map<string, StoredAttempt>();
  readonly #clock: Clock;
  readonly #orders: Pick<OrderRepository, 'findOrder'>;
  readonly #faults: ('open' | 'close')[] = [];

  constructor(clock: Clock, orders: Pick<OrderRepository, 'findOrder'>) {
    this.#clock = clock;
    this.#orders = orders;
  }

  /** Injects faults for the next call of each kind, before it changes anything. */
  breakNext(...faults: ('open' | 'close')[]): void {
    this.#faults.push(...faults);
  }

  async open(
    orderId: string,
    key: string,
    amountCents: number,
    askAfterMs: number,
    bound: DeclineBound | null = null,
  ): Promise<OpenOutcome> {
    this.#failOn('open');
    const order = await this.#orders.findOrder(orderId);
    if (order === null || !isUnpaid(order.state)) return { outcome: 'wrong_state' };
    const other = this.#open.find((row) => row.orderId === orderId && row.key !== key);
    if (other !== undefined) return { outcome: 'in_progress', other: this.#attemptOf(other) };
    const nowMs = this.#clock.nowMs();
    const before = this.rows.get(nameOf({ orderId, key }));
    if (bound !== null && before === undefined && (await this.#isBeyond(order, bound)) && bound.refuses()) {
      return { outcome: 'decline_limit_reached' };
    }
    this.rows.set(nameOf({ orderId, key }), {
      orderId,
      key,
      amountCents,
      state: 'open',
      version: before === undefined ? 0 : before.version + 1,
      openedAtMs: nowMs,
      availableAtMs: nowMs + askAfterMs,
      lastError: null,
    });
    return { outcome: 'opened' };
  }

  /** Adds an open row in addition to other rows, as releases before 1.1.0 did for every key. */
  put(orderId: string, key: string, amountCents: number): void {
    const nowMs = this.#clock.nowMs();
    const times = { openedAtMs: nowMs, availableAtMs: nowMs };
    this.rows.set(nameOf({ orderId, key }), {
      orderId,
      key,
      amountCents,
      state: 'open',
      version: 0,
      ...times,
      lastError: null,
    });
  }

  async close(attempt: AttemptName & { readonly version?: number }, end: AttemptEnd): Promise<void> {
    this.#failOn('close');
    const row = this.rows.get(nameOf(attempt));
    if (row === undefined || (attempt.version !== undefined && row.version !== attempt.version)) return;
    Object.assign(row, { state: end, lastError: null });
  }

  async openOf(orderId: string): Promise<OpenAttempt[]> {
    const ofOrder = this.#open.filter((row) => row.orderId === orderId).slice(0, 10);
    return ofOrder.map((row) => this.#attemptOf(row));
  }

  async lease(max: number, leaseMs: number): Promise<OpenAttempt[]> {
    const nowMs = this.#clock.nowMs();
    const due = this.#open.filter(({ availableAtMs }) => isWaitOver(availableAtMs, nowMs));
    due.sort((a, b) => a.availableAtMs - b.availableAtMs);
    return due.slice(0, max).map((row) => {
      row.version++;
      row.availableAtMs = nowMs + leaseMs;
      return this.#attemptOf(row);
    });
  }

  async postpone(attempt: AttemptName, delayMs: number, lastError: string): Promise<void> {
    const row = this.rows.get(nameOf(attempt));
    if (row?.state === 'open') Object.assign(row, { availableAtMs: this.#clock.nowMs() + delayMs, lastError });
  }

  async #isBeyond({ orderId, userId }: Order, { perOrder, perBuyerHour }: DeclineBound): Promise<boolean> {
    const declined = [...this.rows.values()].filter(({ state }) => state === 'declined');
    if (declined.filter((row) => row.orderId === orderId).length >= perOrder) return true;
    const recent = declined.filter(({ openedAtMs }) => openedAtMs > this.#clock.nowMs() - 3_600_000);
    const buyers = await Promise.all(recent.map(async (row) => (await this.#orders.findOrder(row.orderId))?.userId));
    return buyers.filter((buyer) => buyer === userId).length >= perBuyerHour;
  }

  get #open(): StoredAttempt[] {
    return [...this.rows.values()].filter(({ state }) => state === 'open');
  }

  #attemptOf({ orderId, key, amountCents, version, openedAtMs }: StoredAttempt): OpenAttempt {
    return { orderId, key, amountCents, version, ageMs: this.#clock.nowMs() - openedAtMs };
  }

  #failOn(fault: 'open' | 'close'): void {
    const at = this.#faults.indexOf(fault);
    if (at < 0) return;
    this.#faults.splice(at, 1);
    throw new OperationalError('mysql', `fault of the test: ${fault} of an attempt`, { retryable: true });
  }
}

const nameOf = ({ orderId, key }: AttemptName): string => `${orderId}/${key}`;
