import { setTimeout as sleep } from 'node:timers/promises';
import type { Sale } from '../../../src/core/sale.js';
import type { Arena } from '../context.js';
import { type Buyers, isYes, type Load } from '../harness/buyers.js';
import { type Answer, ask, type Ask } from '../harness/http.js';
import type { Program } from '../harness/programs.js';
import { found } from '../harness/wait.js';
import type { Random } from '../random.js';

/** How the buyers of a sale behave; chances from 0 to 1. */
export interface Manners {
  /** Buyers who are at the counter at once. */
  readonly hands: number;
  /** Who has heard yes sends the same key again. */
  readonly askAgain: number;
  readonly pay: number;
  /** Of those who do not pay; the others let their order expire. */
  readonly cancel: number;
}

/** What a crowd did and found. */
export interface CrowdTally {
  bought: number;
  askedAgain: number;
  seenOrdered: number;
  paid: number;
  cancelled: number;
  /** Answers that nobody may get. */
  readonly wrong: string[];
}

export const newTally = (): CrowdTally => ({
  bought: 0,
  askedAgain: 0,
  seenOrdered: 0,
  paid: 0,
  cancelled: 0,
  wrong: [],
});

/** Between two buyers of one hand: some eight a second, a load that two cores carry besides the servers. */
const PAUSE_MS = 100;
/** Of one buyer, 200 ms apart: through a short outage, then he goes and another one comes. */
const BUY_TRIES = 20;
/** Who waits for his order costs a socket: more buyers go home without looking. */
const FOLLOWED_MAX = 40;
/** A buyer looks for his order for so long; then somebody else is to be followed. */
const FOLLOW_MAX_MS = 45_000;
const LOOK_WAIT_SECONDS = 2;
const LOOK_AGAIN_MS = 300;
const MOVE_TRIES = 10;

/** Buyers of one sale who keep coming: they buy, ask again, look, pay, cancel, or forget to pay. */
export class Crowd {
  /** Answers `sold_out` since the last yes. */
  soldOut = 0;
  readonly #buyers: Buyers;
  readonly #random: Random;
  readonly #pulse: Pulse;
  readonly #tally: CrowdTally;
  readonly #manners: Manners;
  readonly #followers = new Set<Promise<void>>();
  #made = 0;

  constructor(random: Random, buyers: Buyers, manners: Manners, { pulse, tally }: { pulse: Pulse; tally: CrowdTally }) {
    this.#random = random;
    this.#buyers = buyers;
    this.#manners = manners;
    this.#pulse = pulse;
    this.#tally = tally;
  }

  start(): Load {
    let stopped = false;
    const hands = Array.from({ length: this.#manners.hands }, async () => {
      while (!stopped) {
        await this.#caller();
        await sleep(PAUSE_MS);
      }
    });
    const done = Promise.all(hands);
    done.catch((error: unknown) => this.#tally.wrong.push(String(error)));
    return {
      stop: async () => {
        stopped = true;
        await done.catch(() => undefined); // told already
        await Promise.all(this.#followers);
      },
    };
  }

  async #caller(): Promise<void> {
    const userId = `buyer-${this.#made++}`;
    const sentMs = Date.now();
    const answer = await this.#buyers.buy(userId, { tries: BUY_TRIES });
    if (answer?.json.code === 'sold_out') this.soldOut++;
    if (!isYes(answer)) return;
    this.soldOut = 0;
    this.#tally.bought++;
    this.#pulse.heardYes(this.#buyers.saleId, sentMs);
    if (this.#random.chance(this.#manners.askAgain)) await this.#askAgain(userId);
    if (this.#followers.size >= FOLLOWED_MAX) return;
    const followed = this.#follow(userId, sentMs).catch((error: unknown) => void this.#tally.wrong.push(String(error)));
    this.#followers.add(followed);
    void followed.then(() => this.#followers.delete(followed));
  }

  /** The same key again: yes again, or 503 while something is broken, and never a no. */
  async #askAgain(userId: string): Promise<void> {
    const answer = await this.#buyers.buy(userId);
    this.#tally.askedAgain++;
    if (answer === null || answer.status < 300 || answer.status === 503) return;
    this.#tally.wrong.push(`${userId} heard yes, and with the same key ${answer.status} ${answer.json.code}`);
  }

  /** Looks until the order is there, then pays, cancels or forgets it. */
  async #follow(userId: string, sentMs: number): Promise<void> {
    const untilMs = Date.now() + FOLLOW_MAX_MS;
    while (Date.now() < untilMs) {
      const look = await this.#buyers.status(userId, 'k1', LOOK_WAIT_SECONDS).catch(() => null);
      if (look?.json.status === 'failed') return;
      if (look?.json.status === 'ordered') {
        this.#tally.seenOrdered++;
        this.#pulse.sawOrder(this.#buyers.saleId, sentMs);
        return this.#end(userId, String(look.json.orderId));
      }
      await sleep(LOOK_AGAIN_MS);
    }
  }

  async #end(userId: string, orderId: string): Promise<void> {
    const pays = this.#random.chance(this.#manners.pay);
    if (!pays && !this.#random.chance(this.#manners.cancel)) return;
    for (let tries = 0; tries < MOVE_TRIES; tries++) {
      const answer = await this.#buyers.move(pays ? 'pay' : 'cancel', userId, orderId);
      if (answer !== null && answer.status < 300) this.#tally[pays ? 'paid' : 'cancelled']++;
      if (answer !== null && answer.status < 500) return;
      await sleep(LOOK_AGAIN_MS);
    }
  }
}

/** Two hands sell some fifteen units a second: it is sold out within a minute. */
const STOCK = { min: 500, max: 900 };
const MANNERS: Manners = { hands: 2, askAgain: 0, pay: 1, cancel: 0 };
/** So many buyers in a row heard it: it is no moment between a release and the next buyer. */
const SOLD_OUT_HEARD = 20;
const LOOK_EVERY_MS = 200;
/** A desk whose servers are being broken is asked again; longer than any fault and its repair. */
const ADMIN_MAX_MS = 120_000;
const OPERATOR = 'a-soak';

export interface RushParts {
  readonly apis: () => readonly Program[];
  readonly pulse: Pulse;
  readonly tally: CrowdTally;
  readonly closesAtMs: number;
}

/** One sale at a time that sells out, is closed, and followed by the next. */
export class RushSales {
  soldOut = 0;
  /** Who bought in each of them. */
  readonly buyers: Buyers[] = [];
  readonly #arena: Arena;
  readonly #parts: RushParts;

  constructor(arena: Arena, parts: RushParts) {
    this.#arena = arena;
    this.#parts = parts;
  }

  start(): Load {
    let stopped = false;
    const stopping = (): boolean => stopped;
    const run = async (): Promise<void> => {
      while (!stopping()) await this.#sellOne(stopping);
    };
    const done = run();
    done.catch((error: unknown) => this.#parts.tally.wrong.push(String(error)));
    return {
      stop: async () => {
        stopped = true;
        await done.catch(() => undefined); // told already
      },
    };
  }

  async #sellOne(stopping: () => boolean): Promise<void> {
    const { apis, pulse, tally } = this.#parts;
    const { saleId } = await this.#open();
    const buyers = this.#arena.buyers(saleId, apis);
    this.buyers.push(buyers);
    const crowd = new Crowd(this.#arena.random, buyers, MANNERS, { pulse, tally });
    const load = crowd.start();
    while (!stopping() && crowd.soldOut < SOLD_OUT_HEARD) await sleep(LOOK_EVERY_MS);
    await load.stop();
    if (crowd.soldOut < SOLD_OUT_HEARD) return;
    this.soldOut++;
    const { admin } = this.#arena.stack;
    const isClosed = async (): Promise<boolean> => (await admin.close(saleId, OPERATOR)).outcome === 'done';
    await this.#arena.until(`sale ${saleId} is closed`, isClosed, ADMIN_MAX_MS);
  }

  /** One that was opened in part, because a server was broken meanwhile, stays unsold and is of no interest. */
  #open(): Promise<Sale> {
    const stock = this.#arena.random.whole(STOCK.min, STOCK.max);
    const { closesAtMs } = this.#parts;
    return found('the next sale is open', () => this.#arena.openSale({ stock, closesAtMs }), ADMIN_MAX_MS);
  }
}

/** What a hostile client sends; the path begins at the sale. */
interface Attack {
  readonly what: string;
  readonly path: string;
  readonly request: Ask;
}

/** What came of it. */
export interface HostileTally {
  sent: number;
  readonly wrong: string[];
}

const EVERY_MS = 1_000;
const TIMEOUT_MS = 5_000;
const KEY = { 'Idempotency-Key': 'h1' };

function attacksOf(buyers: Buyers): Attack[] {
  const token = buyers.token('hostile');
  const purchases = `/v1/sales/${buyers.saleId}/purchases`;
  const post = { method: 'POST', token, headers: KEY, timeoutMs: TIMEOUT_MS } as const;
  return [
    { what: 'no token', path: purchases, request: { ...post, token: undefined, body: { quantity: 1 } } },
    { what: 'a token of nobody', path: purchases, request: { ...post, token: `${token}x`, body: { quantity: 1 } } },
    { what: 'no key', path: purchases, request: { ...post, headers: {}, body: { quantity: 1 } } },
    { what: 'half a unit', path: purchases, request: { ...post, body: { quantity: 0.5 } } },
    { what: 'less than nothing', path: purchases, request: { ...post, body: { quantity: -1 } } },
    { what: '10 kB', path: purchases, request: { ...post, body: { quantity: 1, more: 'x'.repeat(10_240) } } },
    { what: 'no such sale', path: '/v1/sales/4711000/purchases', request: { ...post, body: { quantity: 1 } } },
    { what: "somebody else's order", path: '/v1/orders/1/pay', request: post },
    { what: 'the desk of an admin', path: '/admin/v1/sales', request: { ...post, body: {} } },
  ];
}

/** One hostile request a second; each is refused, or hears 503 while something is broken. */
export function startHostileHand(
  buyers: Buyers,
  urls: () => readonly string[],
  random: Random,
  tally: HostileTally,
): Load {
  let stopped = false;
  const attacks = attacksOf(buyers);
  const hand = async (): Promise<void> => {
    while (!stopped) {
      const { what, path, request } = random.pick(attacks);
      const answer = await ask(random.pick(urls()) + path, request).catch(() => null);
      tally.sent++;
      if (!isRefused(answer)) tally.wrong.push(`${what} was answered ${answer?.status} ${answer?.text.slice(0, 100)}`);
      await sleep(EVERY_MS);
    }
  };
  const done = hand();
  done.catch((error: unknown) => tally.wrong.push(String(error)));
  return {
    stop: async () => {
      stopped = true;
      await done.catch(() => undefined); // told already
    },
  };
}

/** No answer is one of a broken connection, which a soak has many of. */
const isRefused = (answer: Answer | null): boolean =>
  answer === null || (answer.status >= 400 && answer.status < 500) || answer.status === 503;

/** When buyers last heard what they came for: for each sale, the time at which they had sent the purchase. */
export class Pulse {
  readonly #yes = new Map<string, number>();
  readonly #ordered = new Map<string, number>();

  /** @param sentMs before its first try left */
  heardYes(saleId: string, sentMs: number): void {
    this.#yes.set(saleId, Math.max(sentMs, this.#yes.get(saleId) ?? 0));
  }

  sawOrder(saleId: string, sentMs: number): void {
    this.#ordered.set(saleId, Math.max(sentMs, this.#ordered.get(saleId) ?? 0));
  }

  /** True once a purchase of each sale that was sent after `sinceMs` has been accepted. */
  yesSince(sinceMs: number, saleIds: readonly string[]): boolean {
    return saleIds.every((saleId) => (this.#yes.get(saleId) ?? 0) > sinceMs);
  }

  /** True once a purchase of each sale that was sent after `sinceMs` has become an order. */
  ordersSince(sinceMs: number, saleIds: readonly string[]): boolean {
    return saleIds.every((saleId) => (this.#ordered.get(saleId) ?? 0) > sinceMs);
  }
}
