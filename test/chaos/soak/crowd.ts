import { setTimeout as sleep } from 'node:timers/promises';
import { isYes } from '../harness/answers.js';
import type { Buyers, Load } from '../harness/buyers.js';
import type { Random } from '../random.js';
import type { Pulse } from './pulse.js';

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
