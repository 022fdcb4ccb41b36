import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, reportPayment, type Ask, type Reply } from './client.js';
import type { Habit } from './plan.js';
import type { Tally } from './tally.js';

/** A sale as its buyers see it. */
export interface OfferedSale {
  readonly saleId: string;
  readonly limitPerBuyer: number;
  readonly hasQueue: boolean;
}

/** The state that all buyers share. */
export interface BuyersWorld {
  /** Address of the API, which may change with a restart. */
  readonly url: () => string;
  readonly token: (userId: string) => string;
  readonly webhookSecret: string;
  /** Time until an order expires and its buyer stops waiting. Null if the buyer would have to wait too long. */
  readonly paymentWindowMs: number | null;
  readonly tally: Tally;
  readonly random: () => number;
  /** Purchase requests without an answer yet. */
  readonly unanswered: { count: number };
  /** Buyers whose accepted purchase had no order when they lost patience. */
  readonly late: Set<Buyer>;
  /** Once aborted, buyers stop thinking and start nothing new, but follow accepted purchases to their orders. */
  readonly stopping: AbortSignal;
}

/** Number of attempts with one key before the result is known. */
const TRIES_MAX = 6;
/** After a worker is killed, an order may take long. A missing order is looked up again at the end. */
const ORDER_WITHIN_MS = 180_000;
/** At the end no buyer is active, so even a busy machine answers within this time. */
const LATE_ORDER_WITHIN_MS = 60_000;
/** Duration of a long poll in seconds. */
const WAIT_S = 10;
/** Number of polls before a buyer gives up a place in the waiting room. */
const QUESTIONS_MAX = 90;
/** The keeper ends orders within seconds of their deadline. */
const EXPIRED_AFTER_MS = 6_000;

/** Plays one buyer of one sale, from the click to the end of the order. Never rejects. */
export async function liveAs(habit: Habit, sale: OfferedSale, world: BuyersWorld): Promise<void> {
  const buyer = new Buyer(sale, world);
  if (sale.hasQueue && habit !== 'jumps_the_queue' && habit !== 'has_no_token' && !(await buyer.waitsForTurn())) return;
  switch (habit) {
    case 'has_no_token':
      await buyer.tries({ token: undefined });
      return;
    case 'is_greedy':
      await buyer.tries({ quantity: sale.limitPerBuyer + 1 });
      return;
    case 'repeats': {
      const [one, other] = await Promise.all([buyer.buys(), buyer.buys()]);
      if (!one && !other) return;
      await buyer.tries({}); // reloads the page
      if (await buyer.getsOrder()) await buyer.pays('card');
      return;
    }
    case 'changes_quantity':
      if (!(await buyer.buys())) return;
      await buyer.tries({ quantity: 2 });
      if (await buyer.getsOrder()) await buyer.pays('card');
      return;
    case 'pays':
    case 'jumps_the_queue':
      if ((await buyer.buys()) && (await buyer.getsOrder()) && (await buyer.thinks(1_000, 8_000)))
        await buyer.pays('card');
      return;
    case 'is_declined':
      if (!(await buyer.buys()) || !(await buyer.getsOrder()) || !(await buyer.thinks(1_000, 4_000))) return;
      await buyer.pays('decline');
      if (world.random() < 0.5 && (await buyer.thinks(1_000, 4_000))) await buyer.pays('card');
      return;
    case 'cancels':
      if ((await buyer.buys()) && (await buyer.getsOrder()) && (await buyer.thinks(1_000, 6_000)))
        await buyer.cancels();
      return;
    case 'never_pays':
      if ((await buyer.buys()) && (await buyer.getsOrder())) await buyer.seesItExpire();
      return;
    case 'pays_too_late':
      if ((await buyer.buys()) && (await buyer.getsOrder()) && (await buyer.seesItExpire())) await buyer.sendsMoney();
      return;
    default:
      habit satisfies never;
  }
}

/** The actions of one buyer. Each action counts what it saw. */
export class Buyer {
  readonly userId = `demo-${randomBytes(5).toString('hex')}`;
  /** All attempts use one key, which makes them one purchase. */
  readonly key = `demo-${randomBytes(6).toString('hex')}`;
  readonly #sale: OfferedSale;
  readonly #world: BuyersWorld;
  readonly #token: string;
  #pass: string | null = null;
  #orderId = '';

  constructor(sale: OfferedSale, world: BuyersWorld) {
    this.#sale = sale;
    this.#world = world;
    this.#token = world.token(this.userId);
  }

  /** Sends one purchase request. @param url a different API */
  async tries({
    quantity = 1,
    url,
    ...other
  }: {
    quantity?: number;
    url?: string;
    token?: undefined;
  }): Promise<Reply | null> {
    const { tally, unanswered } = this.#world;
    tally.add('tries');
    unanswered.count++;
    const headers = {
      'idempotency-key': this.key,
      ...(this.#pass === null ? {} : { 'seckill-queue-pass': this.#pass }),
    };
    const path = `/v1/sales/${this.#sale.saleId}/purchases`;
    const reply = await ask((url ?? this.#world.url()) + path, {
      method: 'POST',
      token: 'token' in other ? undefined : this.#token,
      headers,
      body: { quantity },
    });
    unanswered.count--;
    if (reply === null) tally.add('no_answer');
    else if (reply.code !== '') tally.add(reply.code);
    else tally.add(reply.status === 202 ? 'accepted' : 'replayed');
    return reply;
  }

  /** Repeats the purchase with one key until the answer is final. @returns whether the purchase is accepted */
  async buys(): Promise<boolean> {
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const reply = await this.tries({});
      if (reply?.code === '') return true;
      const isFinal = reply !== null && reply.status < 500;
      if (isFinal || !(await this.thinks(500, 1_500))) return false;
    }
    return false;
  }

  /** Follows an accepted purchase, even after the demo stops. @returns whether it became an order */
  async getsOrder(): Promise<boolean> {
    const end = await this.#follows(ORDER_WITHIN_MS);
    if (end === null) this.#world.late.add(this);
    this.#world.tally.add(end ?? 'late');
    return end === 'ordered';
  }

  /**
   * Looks up a late purchase after the demo has stopped. @returns whether it is missing: neither an order nor failed
   */
  async isMissing(): Promise<boolean> {
    const end = await this.#follows(LATE_ORDER_WITHIN_MS);
    this.#world.tally.add(end ?? 'missing');
    return end === null;
  }

  /** @returns null if the result is still unknown after this time: the purchase is pending, or no API answers */
  async #follows(forMs: number): Promise<'ordered' | 'failed' | null> {
    const untilMs = performance.now() + forMs;
    while (performance.now() < untilMs) {
      const { status, orderId } = await this.standing(WAIT_S);
      if (status === 'ordered') this.#orderId = String(orderId);
      if (status === 'ordered' || status === 'failed') return status;
      if (status !== 'pending') await sleep(1_000); // the API is down or refuses for now
    }
    return null;
  }

  /**
   * Returns the status of the purchase, and waits up to this many seconds while it is pending. Empty if no answer came.
   */
  async standing(waitS = 0): Promise<Reply['body']> {
    const path = `/v1/sales/${this.#sale.saleId}/purchases/${this.key}?wait=${waitS}`;
    return (await this.#asks(path, { timeoutMs: (waitS + 10) * 1000 }))?.body ?? {};
  }

  /** @param card `decline`: this payment is declined */
  async pays(card: 'card' | 'decline'): Promise<void> {
    await this.#moves('pay', 'paid', { 'idempotency-key': `${card}-${randomBytes(6).toString('hex')}` });
  }

  cancels(): Promise<void> {
    return this.#moves('cancel', 'cancelled', {});
  }

  async #moves(move: 'pay' | 'cancel', done: 'paid' | 'cancelled', headers: Record<string, string>): Promise<void> {
    const reply = await this.#asks(`/v1/orders/${this.#orderId}/${move}`, { method: 'POST', headers });
    this.#world.tally.add(reply === null ? 'no_answer' : reply.code || done);
  }

  /** @returns whether the order has expired */
  async seesItExpire(): Promise<boolean> {
    const { paymentWindowMs, tally } = this.#world;
    if (paymentWindowMs === null) return false;
    const forMs = paymentWindowMs + EXPIRED_AFTER_MS;
    if (!(await this.thinks(forMs, forMs))) return false;
    const order = await this.#asks(`/v1/orders/${this.#orderId}`);
    if (order?.body.state !== 'expired') return false;
    tally.add('expired');
    return true;
  }

  /** Reports money for an ended order as the provider would. */
  async sendsMoney(): Promise<void> {
    const { url, webhookSecret, tally } = this.#world;
    const orderId = this.#orderId;
    const order = await this.#asks(`/v1/orders/${orderId}`);
    if (order?.code !== '') return; // the answer did not arrive, so the amount is unknown
    const { amountCents, currency } = order.body;
    const paymentId = `simulated-${randomBytes(9).toString('hex')}`; // the simulator refunds these ids
    const event = { type: 'payment.succeeded', paymentId, orderId, amountCents, currency, live: false };
    const reply = await reportPayment(url(), webhookSecret, event);
    tally.add(reply === null ? 'no_answer' : reply.code || String(reply.body.outcome));
  }

  /** Waits in the waiting room of the sale. @returns whether the buyer may buy */
  async waitsForTurn(): Promise<boolean> {
    const { tally } = this.#world;
    const room = `/v1/sales/${this.#sale.saleId}/queue`;
    let place = await this.#asks(room, { method: 'POST' });
    for (let questions = 0; questions < QUESTIONS_MAX; questions++) {
      if (place === null) return false;
      if (place.code !== '') {
        tally.add(place.code);
        return false;
      }
      const { status, pass, ticket, pollAfterMs } = place.body;
      if (status === 'no_queue') return true;
      if (status === 'admitted') {
        this.#pass = String(pass);
        return true;
      }
      const pauseMs = Math.max(500, Number(pollAfterMs));
      if (!(await this.thinks(pauseMs, pauseMs))) return false;
      place = await this.#asks(`${room}/${encodeURIComponent(String(ticket))}`);
    }
    tally.add('left_the_queue');
    return false;
  }

  #asks(path: string, request: Ask = {}): Promise<Reply | null> {
    return ask(this.#world.url() + path, { token: this.#token, ...request });
  }

  /** @returns false when the demo stops */
  async thinks(fromMs: number, toMs: number): Promise<boolean> {
    const { stopping, random } = this.#world;
    try {
      await sleep(fromMs + random() * (toMs - fromMs), undefined, { signal: stopping });
      return true;
    } catch {
      return false;
    }
  }
}
