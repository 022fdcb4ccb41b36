import { setTimeout as sleep } from 'node:timers/promises';
import type { Sale } from '../../../src/core/sale.js';
import type { Arena } from '../arena.js';
import type { Buyers, Load } from '../harness/buyers.js';
import type { Program } from '../harness/programs.js';
import { found } from '../harness/until.js';
import { Crowd, type CrowdTally, type Manners } from './crowd.js';
import type { Pulse } from './pulse.js';

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
