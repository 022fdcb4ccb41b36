import { setTimeout as sleep } from 'node:timers/promises';
import type { ScenarioContext } from '../context.js';
import { isAccepted, type Buyers, type Load } from '../harness/buyers.js';
import { ask, type Answer, type Ask } from '../harness/http.js';
import type { Program } from '../harness/programs.js';
import { ACTOR } from '../harness/sales.js';
import { found } from '../harness/wait.js';
import type { Random } from '../random.js';

/** When buyers last got what they came for: per sale, the time at which they had sent that purchase. */
export class LastSuccess {
  readonly #accepted = new Map<string, number>();
  readonly #ordered = new Map<string, number>();

  /** @param sentMs before its first try left */
  accepted(saleId: string, sentMs: number): void {
    this.#accepted.set(saleId, Math.max(sentMs, this.#accepted.get(saleId) ?? 0));
  }

  ordered(saleId: string, sentMs: number): void {
    this.#ordered.set(saleId, Math.max(sentMs, this.#ordered.get(saleId) ?? 0));
  }

  /** True once a purchase of each sale that was sent after `sinceMs` has been accepted. */
  acceptedSince(sinceMs: number, saleIds: readonly string[]): boolean {
    return saleIds.every((saleId) => (this.#accepted.get(saleId) ?? 0) > sinceMs);
  }

  /** True once a purchase of each sale that was sent after `sinceMs` has become an order. */
  orderedSince(sinceMs: number, saleIds: readonly string[]): boolean {
    return saleIds.every((saleId) => (this.#ordered.get(saleId) ?? 0) > sinceMs);
  }
}

/** How the buyers of a sale behave; chances from 0 to 1. */
export interface BuyerHabits {
  /** Buyers at the same time. */
  readonly parallel: number;
  /** Of those accepted: the same key again. */
  readonly repeat: number;
  readonly pay: number;
  /** Of those who do not pay; the others let their order expire. */
  readonly cancel: number;
}

/** What the buyers of a soak did, and which answers were wrong. */
export interface BuyerTally {
  bought: number;
  repeated: number;
  seenOrdered: number;
  paid: number;
  cancelled: number;
  /** Answers that must not come. */
  readonly wrong: string[];
}

export const newTally = (): BuyerTally => ({
  bought: 0,
  repeated: 0,
  seenOrdered: 0,
  paid: 0,
  cancelled: 0,
  wrong: [],
});

/** Runs `lane` until `stop`, several at a time; an error of one is noted in `wrong`. */
function startLanes(parallel: number, wrong: string[], lane: (stopping: () => boolean) => Promise<void>): Load {
  let stopped = false;
  const done = Promise.all(Array.from({ length: parallel }, () => lane(() => stopped)));
  done.catch((error: unknown) => wrong.push(String(error)));
  return {
    stop: async () => {
      stopped = true;
      await done.catch(() => undefined); // noted already
    },
  };
}

/** Between two buyers of one lane: some eight a second, a load that two cores carry besides the servers. */
const PAUSE_MS = 100;
/** Of one buyer, 200 ms apart: through a short outage, then the next buyer comes. */
const BUY_TRIES = 20;
/** A buyer who waits for an order needs a socket: the others do not wait. */
const FOLLOWED_MAX = 40;
/** A buyer polls for the order for so long; then another buyer is followed. */
const FOLLOW_MAX_MS = 45_000;
const POLL_WAIT_SECONDS = 2;
const POLL_AGAIN_MS = 300;
const MOVE_TRIES = 10;

/** Buyers of one sale who keep coming: they buy, repeat the key, poll, pay, cancel, or never pay. */
export class BuyerLoad {
  /** Answers `sold_out` since the last accepted purchase. */
  soldOut = 0;
  readonly #random: Random;
  readonly #buyers: Buyers;
  readonly #habits: BuyerHabits;
  readonly #lastSuccess: LastSuccess;
  readonly #tally: BuyerTally;
  readonly #followers = new Set<Promise<void>>();
  #made = 0;

  constructor(random: Random, buyers: Buyers, habits: BuyerHabits, lastSuccess: LastSuccess, tally: BuyerTally) {
    this.#random = random;
    this.#buyers = buyers;
    this.#habits = habits;
    this.#lastSuccess = lastSuccess;
    this.#tally = tally;
  }

  start(): Load {
    const load = startLanes(this.#habits.parallel, this.#tally.wrong, async (stopping) => {
      while (!stopping()) {
        await this.#buyOnce();
        await sleep(PAUSE_MS);
      }
    });
    return {
      stop: async () => {
        await load.stop();
        await Promise.all(this.#followers);
      },
    };
  }

  async #buyOnce(): Promise<void> {
    const userId = `buyer-${this.#made++}`;
    const sentMs = Date.now();
    const answer = await this.#buyers.buy(userId, { tries: BUY_TRIES });
    if (answer?.json.code === 'sold_out') this.soldOut++;
    if (!isAccepted(answer)) return;
    this.soldOut = 0;
    this.#tally.bought++;
    this.#lastSuccess.accepted(this.#buyers.saleId, sentMs);
    if (this.#random.chance(this.#habits.repeat)) await this.#repeat(userId);
    if (this.#followers.size >= FOLLOWED_MAX) return;
    const followed = this.#follow(userId, sentMs).catch((error: unknown) => void this.#tally.wrong.push(String(error)));
    this.#followers.add(followed);
    void followed.then(() => this.#followers.delete(followed));
  }

  /** The same key again: 2xx again, or 503 while something is broken, and never a refusal. */
  async #repeat(userId: string): Promise<void> {
    const answer = await this.#buyers.buy(userId);
    this.#tally.repeated++;
    if (answer === null || answer.status < 300 || answer.status === 503) return;
    this.#tally.wrong.push(`${userId} was accepted, and with the same key got ${answer.status} ${answer.json.code}`);
  }

  /** Polls until the order is there, then pays, cancels or leaves it. */
  async #follow(userId: string, sentMs: number): Promise<void> {
    const untilMs = Date.now() + FOLLOW_MAX_MS;
    while (Date.now() < untilMs) {
      const answer = await this.#buyers.status(userId, 'k1', POLL_WAIT_SECONDS).catch(() => null);
      if (answer?.json.status === 'failed') return;
      if (answer?.json.status === 'ordered') {
        this.#tally.seenOrdered++;
        this.#lastSuccess.ordered(this.#buyers.saleId, sentMs);
        return this.#end(userId, String(answer.json.orderId));
      }
      await sleep(POLL_AGAIN_MS);
    }
  }

  async #end(userId: string, orderId: string): Promise<void> {
    const pays = this.#random.chance(this.#habits.pay);
    if (!pays && !this.#random.chance(this.#habits.cancel)) return;
    for (let tries = 0; tries < MOVE_TRIES; tries++) {
      const answer = await this.#buyers.move(pays ? 'pay' : 'cancel', userId, orderId);
      if (answer !== null && answer.status < 300) this.#tally[pays ? 'paid' : 'cancelled']++;
      if (answer !== null && answer.status < 500) return;
      await sleep(POLL_AGAIN_MS);
    }
  }
}

/** Two lanes sell some fifteen units a second: it is sold out within a minute. */
const SELLOUT_STOCK = { min: 500, max: 900 };
const SELLOUT_HABITS: BuyerHabits = { parallel: 2, repeat: 0, pay: 1, cancel: 0 };
/** So many answers in a row: not just a moment between a release and the next buyer. */
const SOLD_OUT_IN_A_ROW = 20;
const CHECK_EVERY_MS = 200;

/** One sale at a time that sells out, is closed, and followed by the next. */
export class SelloutSales {
  soldOut = 0;
  /** The buyers of each of them. */
  readonly buyers: Buyers[] = [];
  readonly #context: ScenarioContext;
  readonly #apis: () => readonly Program[];
  readonly #lastSuccess: LastSuccess;
  readonly #tally: BuyerTally;
  readonly #closesAtMs: number;

  constructor(
    context: ScenarioContext,
    apis: () => readonly Program[],
    lastSuccess: LastSuccess,
    tally: BuyerTally,
    closesAtMs: number,
  ) {
    this.#context = context;
    this.#apis = apis;
    this.#lastSuccess = lastSuccess;
    this.#tally = tally;
    this.#closesAtMs = closesAtMs;
  }

  start(): Load {
    return startLanes(1, this.#tally.wrong, async (stopping) => {
      while (!stopping()) await this.#sellOne(stopping);
    });
  }

  async #sellOne(stopping: () => boolean): Promise<void> {
    const { random, stack } = this.#context;
    const stock = random.whole(SELLOUT_STOCK.min, SELLOUT_STOCK.max);
    // a sale that was opened in part, because a server was broken meanwhile, stays unsold and does not matter
    const open = () => this.#context.openSale({ stock, closesAtMs: this.#closesAtMs });
    const { saleId } = await found('the next sale is open', open);
    const buyers = this.#context.buyers(saleId, this.#apis);
    this.buyers.push(buyers);
    const buyerLoad = new BuyerLoad(random, buyers, SELLOUT_HABITS, this.#lastSuccess, this.#tally);
    const load = buyerLoad.start();
    while (!stopping() && buyerLoad.soldOut < SOLD_OUT_IN_A_ROW) await sleep(CHECK_EVERY_MS);
    await load.stop();
    if (buyerLoad.soldOut < SOLD_OUT_IN_A_ROW) return;
    this.soldOut++;
    const isClosed = async (): Promise<boolean> => (await stack.admin.close(saleId, ACTOR)).outcome === 'done';
    await this.#context.until(`sale ${saleId} is closed`, isClosed);
  }
}

export interface InvalidTally {
  sent: number;
  readonly wrong: string[];
}

/** A request that must be refused. */
interface InvalidRequest {
  readonly what: string;
  readonly path: string;
  readonly request: Ask;
}

const INVALID_EVERY_MS = 1_000;
const INVALID_TIMEOUT_MS = 5_000;

function invalidRequests(buyers: Buyers): InvalidRequest[] {
  const token = buyers.token('hostile');
  const purchases = `/v1/sales/${buyers.saleId}/purchases`;
  const headers = { 'Idempotency-Key': 'h1' };
  const post = { method: 'POST', token, headers, timeoutMs: INVALID_TIMEOUT_MS } as const;
  return [
    { what: 'no token', path: purchases, request: { ...post, token: undefined, body: { quantity: 1 } } },
    { what: 'a wrong token', path: purchases, request: { ...post, token: `${token}x`, body: { quantity: 1 } } },
    { what: 'no key', path: purchases, request: { ...post, headers: {}, body: { quantity: 1 } } },
    { what: 'half a unit', path: purchases, request: { ...post, body: { quantity: 0.5 } } },
    { what: 'a negative quantity', path: purchases, request: { ...post, body: { quantity: -1 } } },
    { what: '10 kB', path: purchases, request: { ...post, body: { quantity: 1, more: 'x'.repeat(10_240) } } },
    { what: 'no such sale', path: '/v1/sales/4711000/purchases', request: { ...post, body: { quantity: 1 } } },
    { what: 'a foreign order', path: '/v1/orders/1/pay', request: post },
    { what: 'an admin route', path: '/admin/v1/sales', request: { ...post, body: {} } },
  ];
}

/** One invalid request a second; each is refused, or gets 503 while something is broken. */
export function startInvalidRequests(
  buyers: Buyers,
  urls: () => readonly string[],
  random: Random,
  tally: InvalidTally,
): Load {
  const requests = invalidRequests(buyers);
  return startLanes(1, tally.wrong, async (stopping) => {
    while (!stopping()) {
      const { what, path, request } = random.pick(requests);
      const answer = await ask(random.pick(urls()) + path, request).catch(() => null);
      tally.sent++;
      if (!isRefused(answer)) tally.wrong.push(`${what} got ${answer?.status} ${answer?.text.slice(0, 100)}`);
      await sleep(INVALID_EVERY_MS);
    }
  });
}

/** No answer means a broken connection, which a soak has many of. */
const isRefused = (answer: Answer | null): boolean =>
  answer === null || (answer.status >= 400 && answer.status < 500) || answer.status === 503;
