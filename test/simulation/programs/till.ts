import { keepRunning } from '../../../src/core/job.js';
import { isUnpaid, wasPaid } from '../../../src/core/order.js';
import { OperationalError } from '../../../src/core/errors.js';
import type { OrderRefunds } from '../../../src/core/ports/order-refunds.js';
import type { OrderTransitions } from '../../../src/core/ports/order-transitions.js';
import type { RefundOutcome } from '../../../src/core/ports/payment-provider.js';
import { payOrderRefunds } from '../../../src/orders/pay-refunds.js';
import { MemoryOrderRefunds } from '../../helpers/memory/memory-order-refunds.js';
import { partial } from '../../helpers/partial.js';
import { NEVER_ABORTED, SimulatedProcess } from '../engine/simulated-process.js';
import { withFaults } from '../engine/with-faults.js';
import type { Rng } from '../engine/rng.js';
import { onBug, type SimulatedSystem } from '../simulated-system.js';

const ORDERS_EVERY_MS = 1_000;
const RESTART_MAX_MS = 6_000;
const LEASE_MS = 10_000;
const KEEPERS = 2;

/** Operators and keepers who refund paid orders at a provider that may refuse or stay silent. */
export class Till {
  readonly #system: SimulatedSystem;
  readonly #rng: Rng;
  readonly #refunds: MemoryOrderRefunds;
  /** The money that the provider has returned, by its key. */
  readonly #given = new Map<string, { readonly refundId: string; readonly cents: number }>();
  readonly #refused = new Set<string>();

  /** @param rng separate, so that runs without refunds stay the same */
  constructor(system: SimulatedSystem, rng: Rng) {
    this.#system = system;
    this.#rng = rng;
    this.#refunds = new MemoryOrderRefunds(system.transitions, system.repositories, system.repositories.clock);
    for (let keeper = 1; keeper <= KEEPERS; keeper++) this.#keep(`till-${keeper}`);
    void this.#operate().catch(onBug(system));
  }

  get isDue(): boolean {
    return this.#refunds.rows.some(({ state }) => state === 'due');
  }

  /** Checks at rest that the money at the provider, the refunds and the orders agree. */
  check(): void {
    const given = [...this.#given.values()];
    if (new Set(given.map(({ refundId }) => refundId)).size !== given.length)
      this.#system.fail('MONEY', 'a refund was made twice');
    for (const { orderId, state, refundedCents } of this.#system.repositories.allOrders) {
      const rows = this.#refunds.rows.filter((row) => row.orderId === orderId);
      const back = given.filter(({ refundId }) => rows.some((row) => row.refundId === refundId));
      const cents = back.reduce((sum, one) => sum + one.cents, 0);
      if (cents !== refundedCents) this.#system.fail('MONEY', `${cents} of ${orderId} went back, not ${refundedCents}`);
      if (wasPaid(state)) this.#system.count(`till: ${state}`);
    }
  }

  async #operate(): Promise<void> {
    const { scheduler, faults } = this.#system;
    const proc = new SimulatedProcess(this.#system, 'till-operator');
    const refunds = withFaults(proc, 'mysql', this.#refunds, ['order']);
    const transitions = withFaults(proc, 'mysql', this.#system.transitions, ['pay']);
    while (!faults.healed) {
      await new Promise<void>((resolve) => void scheduler.after(this.#rng.range(1, ORDERS_EVERY_MS), resolve));
      try {
        await (this.#rng.chance(0.5) ? this.#pay(transitions) : this.#refund(refunds));
      } catch (error) {
        if (!(error instanceof OperationalError)) throw error;
      }
    }
  }

  /** Reports a payment as the provider. */
  async #pay(transitions: Pick<OrderTransitions, 'pay'>): Promise<void> {
    const order = this.#rng.pick(this.#system.repositories.allOrders.filter(({ state }) => isUnpaid(state)));
    if (order === undefined) return;
    const { orderId, amountCents } = order;
    await transitions.pay(orderId, { paymentId: `simulated-till-${orderId}`, amountCents });
  }

  async #refund(refunds: Pick<OrderRefunds, 'order'>): Promise<void> {
    const order = this.#rng.pick(this.#system.repositories.allOrders.filter(({ state }) => wasPaid(state)));
    if (order === undefined) return;
    const isPart = this.#rng.chance(0.4) && order.amountCents > 1;
    const part = isPart ? { amountCents: this.#rng.range(1, order.amountCents) } : {};
    const wish = { ...part, restock: this.#rng.chance(0.5), reason: 'a call' };
    const { outcome } = await refunds.order(order.orderId, wish, 'ann');
    this.#system.count(`refund: ${outcome}`);
  }

  #keep(name: string): void {
    const { scheduler, shape, log } = this.#system;
    const proc = new SimulatedProcess(this.#system, name);
    proc.onDeath(() => {
      this.#system.count('process: till died');
      scheduler.after(this.#rng.range(1, RESTART_MAX_MS), () => this.#keep(name));
    });
    const refunds = withFaults(proc, 'mysql', this.#refunds, ['lease', 'settle', 'refuse', 'postpone']);
    const ports = {
      refunds: partial<Parameters<typeof payOrderRefunds>[0]['refunds']>(refunds),
      cases: partial<Parameters<typeof payOrderRefunds>[0]['cases']>({ note: () => Promise.resolve() }),
      provider: partial<Parameters<typeof payOrderRefunds>[0]['provider']>({
        refund: async (_payment, cents, key, refund) => this.#give(cents, key, refund?.refundId ?? ''),
      }),
      metrics: partial<Parameters<typeof payOrderRefunds>[0]['metrics']>({ refundTried: () => undefined }),
      log,
    };
    const metrics = { jobRan: () => undefined, jobBegan: () => () => undefined };
    const job = payOrderRefunds(ports, { max: 16, leaseMs: LEASE_MS });
    keepRunning(job, shape.jobEveryMs, NEVER_ABORTED, { clock: proc.clock, log, metrics }).catch(onBug(this.#system));
  }

  /** Gives money back once per key, whatever the answer. */
  #give(cents: number, key: string, refundId: string): RefundOutcome {
    const isNew = !this.#given.has(key) && !this.#refused.has(key);
    if (isNew && this.#rng.chance(0.2)) this.#refused.add(key);
    if (this.#refused.has(key)) return { outcome: 'refused', detail: 'no' };
    this.#given.set(key, { refundId, cents });
    const isSilent = this.#rng.chance(0.2) && !this.#system.faults.healed;
    return { outcome: isSilent ? 'unknown' : 'refunded' };
  }
}
