import { OperationalError } from '../../../src/core/errors.js';
import { discardDeadLetter } from '../../../src/recovery/dead-letters/discard-dead-letter.js';
import { createOrderIdMinter } from '../../../src/orders/order-id-minter.js';
import { replayDeadLetter } from '../../../src/recovery/dead-letters/replay-dead-letter.js';
import { SaleAdmin } from '../../../src/sales/sale-admin.js';
import { Life } from '../engine/simulated-process.js';
import { through } from '../engine/with-faults.js';
import { SALE_ID } from '../shape.js';
import { onBug, type Site } from '../simulated-system.js';
import { orderStatesOf } from './repository-reads.js';
import { reshard } from './repairer.js';

const RESTART_MAX_MS = 6_000;
const DEAD_LETTERS_EVERY_MS = 3_000;
const FOLLOW_MS = 2_000;
const ACTOR = 'operator';

/** Whoever runs the system: replays or discards dead letters, and moves the sale. */
export class Operator {
  readonly #site: Site;
  #starts = 0;

  constructor(site: Site) {
    this.#site = site;
    this.start();
    const { shape, rng } = site;
    if (shape.pauses) void this.#move(rng.range(1, shape.chaosMs), ['pause', 'open']).catch(onBug(site));
    for (let reshards = 0; reshards < shape.reshards; reshards++) {
      void this.#reshard(rng.range(1, shape.chaosMs)).catch(onBug(site));
    }
    if (shape.closes) void this.#move(rng.range(1, shape.chaosMs), ['close']).catch(onBug(site));
  }

  start(): void {
    const { scheduler, rng } = this.#site;
    const life = new Life(this.#site, 'operator');
    life.onDeath(() => {
      this.#site.count('process: operator died');
      scheduler.after(rng.range(1, RESTART_MAX_MS), () => this.start());
    });
    void workOnDeadLetters(life, this.#site, `operator-${++this.#starts}`).catch(onBug(this.#site));
  }

  /** Once: where it dies, or a dependency fails, the keeper ends what was begun. */
  async #reshard(afterMs: number): Promise<void> {
    const site = this.#site;
    const life = new Life(site, 'owner');
    const times = site.rng.range(2, 3);
    await life.clock.sleep(afterMs);
    await tolerant(async () => site.count(`reshard: ${await reshard(life, site, times)}`));
  }

  /** From a desk of its own, again and again until it is done. */
  async #move(afterMs: number, verbs: readonly ('pause' | 'open' | 'close')[]): Promise<void> {
    const site = this.#site;
    const life = new Life(site, 'owner');
    const store = through(life, 'redis', site.store, ['warm', 'setState']);
    const cache = through(life, 'redis', site.cache, ['read', 'lock', 'write', 'forget']);
    const repository = through(life, 'mysql', site.books, ['create', 'find', 'list', 'move']);
    const admin = new SaleAdmin({ repository, store, cache });
    await life.clock.sleep(afterMs);
    for (const verb of verbs) {
      while (!(await tolerant(async () => void (await admin[verb](SALE_ID, ACTOR))))) await life.clock.sleep(500);
      site.count(`sale: ${verb}`);
      await life.clock.sleep(site.rng.range(50, 2_000));
    }
  }
}

async function workOnDeadLetters(life: Life, site: Site, owner: string): Promise<never> {
  const { rng, shape, log } = site;
  const { clock } = life;
  const slots = through(life, 'mysql', site.slots, ['acquire', 'free']);
  const deadLetters = through(life, 'mysql', site.deadLetters, ['find', 'beginReplay', 'close', 'keepParked']);
  const store = through(life, 'redis', site.servers.settlement, ['unpark', 'markRecorded']);
  const repository = through(life, 'mysql', site.books, ['termsOf', 'findByPurchases', 'write']);
  const channel = through(life, 'rocketmq', site.broker.redriveChannel(), ['publish']);
  const minter = createOrderIdMinter({ slots, clock, log }, { owner, leaseMs: shape.slotLeaseMs });
  const { deadlines, events } = site.broker.orderChannels(); // letters of batches need neither, nor coupons
  const coupons = { withoutCoupon: async () => [] };
  const states = orderStatesOf(life, site);
  const ports = { deadLetters, store, repository, channel, minter, clock, deadlines, events, states, coupons };
  const work = async (deadLetterId: string): Promise<void> => {
    const answer = rng.chance(0.7)
      ? await replayDeadLetter(deadLetterId, ports, { actor: ACTOR, waitMs: FOLLOW_MS })
      : await discardDeadLetter(deadLetterId, ports, { actor: ACTOR });
    site.count(`letter: ${answer.outcome}`);
  };
  for (;;) {
    await clock.sleep(rng.range(1, DEAD_LETTERS_EVERY_MS));
    for (const { deadLetterId, state } of site.deadLetters.deadLetters) {
      if (state === 'parked') await tolerant(() => work(deadLetterId));
    }
  }
}

/** False when a dependency failed: it has to be done again. */
async function tolerant(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof OperationalError) return false;
    throw error;
  }
}
