import { purchaseKey } from '../../../src/core/purchase.js';
import type { PurchaseOutcome } from '../../../src/core/outcome.js';
import { describe } from '../engine/simulated-process.js';
import type { Promises } from '../invariant-monitor.js';
import type { Site } from '../simulated-system.js';
import type { Api } from './api.js';

/** One purchase with one key: pressed, pressed again, looked after, paid for or cancelled. */
interface Wish {
  readonly userId: string;
  readonly requestId: string;
  readonly quantity: number;
}

const FINAL: readonly string[] = ['sold_out', 'not_enough_left', 'limit_reached', 'closed', 'request_conflict'];
const TRIES_MAX = 6;
const LOOKS_MAX = 8;

/** The buyers of a run, who remember what they heard. */
export class Buyers {
  readonly #site: Site;
  readonly #apis: readonly Api[];
  readonly #promises: Promises;
  #busy = 0;

  constructor(site: Site, apis: readonly Api[], promises: Promises) {
    this.#site = site;
    this.#apis = apis;
    this.#promises = promises;
    const { shape, rng } = site;
    for (let buyer = 1; buyer <= shape.buyers; buyer++) {
      for (let wishes = rng.chance(0.3) ? 2 : 1; wishes > 0; wishes--) {
        const wish = { userId: `u${buyer}`, requestId: `k${wishes}`, quantity: rng.chance(0.2) ? 2 : 1 };
        this.#begin(() => this.#pursue(wish));
      }
    }
  }

  /** Purchases and payments that somebody still waits for. */
  get busy(): number {
    return this.#busy;
  }

  #begin(pursue: () => Promise<void>): void {
    this.#busy++;
    void pursue().then(
      () => void this.#busy--,
      (error: unknown) => this.#site.fail('BUG', error instanceof Error ? (error.stack ?? '') : String(error)),
    );
  }

  async #pursue(wish: Wish): Promise<void> {
    const { rng, shape } = this.#site;
    await this.#pass(rng.range(0, shape.rushMs));
    const twice = rng.chance(0.15);
    for (let tries = rng.range(1, TRIES_MAX); tries > 0; tries--) {
      if (twice) this.#begin(async () => void (await this.#press(wish)));
      if (rng.chance(0.03)) this.#begin(async () => void (await this.#press({ ...wish, quantity: wish.quantity + 1 })));
      const word = await this.#press(wish);
      if (word === 'accepted' || word === 'replayed') return this.#enjoy(wish);
      if (FINAL.includes(word) && rng.chance(0.7)) return;
      await this.#pass(rng.range(20, 4_000));
    }
  }

  async #press({ userId, requestId, quantity }: Wish): Promise<string> {
    const { scheduler, trace } = this.#site;
    const key = purchaseKey({ userId, requestId });
    const sinceMs = scheduler.nowMs;
    this.#promises.pressed({ userId, requestId, quantity });
    const heard = await this.#api().ask((api) => api.purchase(userId, requestId, quantity));
    const answer: PurchaseOutcome | null = heard === 'unavailable' ? { outcome: heard } : heard;
    trace?.(userId, `${key} ×${quantity} hears ${answer === null ? 'nothing' : describe(answer)}`);
    this.#site.count(`heard: ${answer?.outcome ?? 'nothing'}`);
    this.#promises.heard({ userId, requestId, quantity }, answer, sinceMs);
    return answer?.outcome ?? 'nothing';
  }

  /** Looks until the order is there, then pays or cancels. */
  async #enjoy(wish: Wish): Promise<void> {
    const { rng, shape } = this.#site;
    const dice = rng.next();
    const wanted = dice < shape.cancels ? 'cancel' : dice < shape.cancels + shape.pays ? 'pay' : null;
    if (wanted === null && rng.chance(0.5)) return;
    for (let looks = 0; looks < LOOKS_MAX; looks++) {
      const orderId = await this.#look(wish);
      if (orderId !== null) return wanted === null ? undefined : this.#end(orderId, wish, wanted);
      await this.#pass(rng.range(50, 5_000));
    }
  }

  async #look({ userId, requestId }: Wish): Promise<string | null> {
    const waitMs = this.#site.rng.chance(0.3) ? 2_000 : 0;
    const heard = await this.#api().ask((api) => api.status(userId, requestId, waitMs));
    if (heard === null || heard === 'unavailable') return null;
    this.#site.trace?.(userId, `sees ${describe(heard)}`);
    this.#site.count(`status: ${heard.status}`);
    this.#promises.seen({ userId, requestId }, heard);
    return heard.status === 'ordered' ? heard.orderId : null;
  }

  async #end(orderId: string, { userId }: Wish, verb: 'pay' | 'cancel'): Promise<void> {
    const { rng } = this.#site;
    for (let tries = rng.range(1, TRIES_MAX); tries > 0; tries--) {
      const answer = await this.#api().ask(async (api) => (await api[verb](orderId, userId)).outcome);
      const word = answer ?? 'nothing';
      this.#site.trace?.(userId, `${verb} ${orderId}: ${word}`);
      this.#site.count(`${verb}: ${word}`);
      if (word === 'paid' || word === 'cancelled') this.#promises.ended(orderId, word);
      if (!['nothing', 'unavailable', 'outcome_unknown'].includes(word)) return;
      await this.#pass(rng.range(50, 2_000));
    }
  }

  #api(): Api {
    const alive = this.#apis.filter((api) => api.alive);
    return this.#site.rng.pick(alive) ?? (this.#apis[0] as Api);
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#site.scheduler.after(ms, resolve));
  }
}
