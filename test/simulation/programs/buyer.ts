import { purchaseKey } from '../../../src/core/purchase.js';
import type { PurchaseOutcome } from '../../../src/core/outcome.js';
import { describe } from '../engine/simulated-process.js';
import type { InvariantMonitor } from '../invariant-monitor.js';
import type { SimulatedSystem } from '../simulated-system.js';
import type { Api } from './api.js';

/** A wanted purchase, which is sent, retried and polled, and whose order is paid or cancelled. */
interface Wish {
  readonly userId: string;
  readonly requestId: string;
  readonly quantity: number;
}

const FINAL: readonly string[] = [
  ...['sold_out', 'not_enough_left', 'limit_reached', 'closed', 'request_conflict', 'refused_by_store'],
];
const TRIES_MAX = 6;
const READS_MAX = 8;

/** The buyers of a run. */
export class Buyers {
  readonly #system: SimulatedSystem;
  readonly #apis: readonly Api[];
  readonly #monitor: InvariantMonitor;
  #busy = 0;

  constructor(system: SimulatedSystem, apis: readonly Api[], monitor: InvariantMonitor) {
    this.#system = system;
    this.#apis = apis;
    this.#monitor = monitor;
    const { shape, rng } = system;
    for (let buyer = 1; buyer <= shape.buyers; buyer++) {
      for (let wishes = rng.chance(0.3) ? 2 : 1; wishes > 0; wishes--) {
        const wish = { userId: `u${buyer}`, requestId: `k${wishes}`, quantity: rng.chance(0.2) ? 2 : 1 };
        this.#begin(() => this.#buy(wish));
      }
    }
  }

  /** Purchases and payments that are under way. */
  get busy(): number {
    return this.#busy;
  }

  #begin(pursue: () => Promise<void>): void {
    this.#busy++;
    void pursue().then(
      () => void this.#busy--,
      (error: unknown) => this.#system.fail('BUG', error instanceof Error ? (error.stack ?? '') : String(error)),
    );
  }

  async #buy(wish: Wish): Promise<void> {
    const { rng, shape } = this.#system;
    await this.#pass(rng.range(0, shape.rushMs));
    const twice = rng.chance(0.15);
    for (let tries = rng.range(1, TRIES_MAX); tries > 0; tries--) {
      if (twice) this.#begin(async () => void (await this.#send(wish)));
      if (rng.chance(0.03)) this.#begin(async () => void (await this.#send({ ...wish, quantity: wish.quantity + 1 })));
      const word = await this.#send(wish);
      if (word === 'accepted' || word === 'replayed') return this.#followOrder(wish);
      if (FINAL.includes(word) && rng.chance(0.7)) return;
      await this.#pass(rng.range(20, 4_000));
    }
  }

  async #send({ userId, requestId, quantity }: Wish): Promise<string> {
    const { scheduler, trace } = this.#system;
    const key = purchaseKey({ userId, requestId });
    const sinceMs = scheduler.nowMs;
    this.#monitor.tryStarted({ userId, requestId, quantity });
    const reply = await this.#api().ask((api) => api.purchase(userId, requestId, quantity));
    const answer: PurchaseOutcome | null = reply === 'unavailable' ? { outcome: reply } : reply;
    trace?.(userId, `${key} ×${quantity} gets ${answer === null ? 'nothing' : describe(answer)}`);
    this.#system.count(`answer: ${answer?.outcome ?? 'nothing'}`);
    this.#monitor.answered({ userId, requestId, quantity }, answer, sinceMs);
    return answer?.outcome ?? 'nothing';
  }

  /** Polls until there is an order, then pays or cancels it. */
  async #followOrder(wish: Wish): Promise<void> {
    const { rng, shape } = this.#system;
    const dice = rng.next();
    const wanted = dice < shape.cancels ? 'cancel' : dice < shape.cancels + shape.pays ? 'pay' : null;
    if (wanted === null && rng.chance(0.5)) return;
    for (let reads = 0; reads < READS_MAX; reads++) {
      const orderId = await this.#readStatus(wish);
      if (orderId !== null) return wanted === null ? undefined : this.#end(orderId, wish, wanted);
      await this.#pass(rng.range(50, 5_000));
    }
  }

  async #readStatus({ userId, requestId }: Wish): Promise<string | null> {
    const waitMs = this.#system.rng.chance(0.3) ? 2_000 : 0;
    const status = await this.#api().ask((api) => api.status(userId, requestId, waitMs));
    if (status === null || status === 'unavailable') return null;
    this.#system.trace?.(userId, `reads ${describe(status)}`);
    this.#system.count(`status: ${status.status}`);
    this.#monitor.statusRead({ userId, requestId }, status);
    return status.status === 'ordered' ? status.orderId : null;
  }

  async #end(orderId: string, { userId }: Wish, verb: 'pay' | 'cancel'): Promise<void> {
    const { rng } = this.#system;
    for (let tries = rng.range(1, TRIES_MAX); tries > 0; tries--) {
      const answer = await this.#api().ask(async (api) => (await api[verb](orderId, userId)).outcome);
      const word = answer ?? 'nothing';
      this.#system.trace?.(userId, `${verb} ${orderId}: ${word}`);
      this.#system.count(`${verb}: ${word}`);
      if (word === 'paid' || word === 'cancelled') this.#monitor.moveConfirmed(orderId, word);
      if (!['nothing', 'unavailable', 'outcome_unknown'].includes(word)) return;
      await this.#pass(rng.range(50, 2_000));
    }
  }

  #api(): Api {
    const alive = this.#apis.filter((api) => api.alive);
    return this.#system.rng.pick(alive) ?? (this.#apis[0] as Api);
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#system.scheduler.after(ms, resolve));
  }
}
