import { OperationalError } from '../../../src/core/errors.js';
import { discardDeadLetter } from '../../../src/operate/dead-letters/discard-dead-letter.js';
import { createOrderIdMinter } from '../../../src/orders/order-id-minter.js';
import { replayDeadLetter } from '../../../src/operate/dead-letters/replay-dead-letter.js';
import { SaleAdmin } from '../../../src/sales/sale-admin.js';
import { SimulatedProcess } from '../engine/simulated-process.js';
import { withFaults } from '../engine/with-faults.js';
import { SALE_ID } from '../shape.js';
import { onBug, type SimulatedSystem } from '../simulated-system.js';
import { orderStatesOf } from './repository-reads.js';
import { reshard } from './repairer.js';

const RESTART_MAX_MS = 6_000;
const DEAD_LETTERS_EVERY_MS = 3_000;
const FOLLOW_MS = 2_000;
/** Chance of a death here. Without it, the operator died in only one of 5,000 runs. */
const DIES_OVER_ONE = 0.2;
const ACTOR = 'operator';

/** The operator, who replays or discards dead letters and moves the sale. */
export class Operator {
  readonly #system: SimulatedSystem;
  #starts = 0;

  constructor(system: SimulatedSystem) {
    this.#system = system;
    this.start();
    const { shape, rng } = system;
    if (shape.pauses) void this.#move(rng.range(1, shape.chaosMs), ['pause', 'open']).catch(onBug(system));
    for (let reshards = 0; reshards < shape.reshards; reshards++) {
      void this.#reshard(rng.range(1, shape.chaosMs)).catch(onBug(system));
    }
    if (shape.closes) void this.#move(rng.range(1, shape.chaosMs), ['close']).catch(onBug(system));
  }

  start(): void {
    const { scheduler, rng } = this.#system;
    const proc = new SimulatedProcess(this.#system, 'operator');
    proc.onDeath(() => {
      this.#system.count('process: operator died');
      scheduler.after(rng.range(1, RESTART_MAX_MS), () => this.start());
    });
    void workOnDeadLetters(proc, this.#system, `operator-${++this.#starts}`).catch(onBug(this.#system));
  }

  /** Makes one attempt, which the keeper finishes if necessary. */
  async #reshard(afterMs: number): Promise<void> {
    const system = this.#system;
    const proc = new SimulatedProcess(system, 'owner');
    const times = system.rng.range(2, 3);
    await proc.clock.sleep(afterMs);
    await tolerant(async () => system.count(`reshard: ${await reshard(proc, system, times)}`));
  }

  async #move(afterMs: number, verbs: readonly ('pause' | 'open' | 'close')[]): Promise<void> {
    const system = this.#system;
    const proc = new SimulatedProcess(system, 'owner');
    const store = withFaults(proc, 'redis', system.redis, ['warm', 'setState', 'forget', 'edit']);
    const cache = withFaults(proc, 'redis', system.cache, ['read', 'lock', 'write', 'forget']);
    const repository = withFaults(proc, 'mysql', system.repositories, [
      'create',
      'createAll',
      'calendar',
      'find',
      'newestId',
      'list',
      'move',
    ]);
    const admin = new SaleAdmin({ repository, store, cache });
    await proc.clock.sleep(afterMs);
    for (const verb of verbs) {
      while (!(await tolerant(async () => void (await admin[verb](SALE_ID, ACTOR))))) await proc.clock.sleep(500);
      system.count(`sale: ${verb}`);
      await proc.clock.sleep(system.rng.range(50, 2_000));
    }
  }
}

async function workOnDeadLetters(proc: SimulatedProcess, system: SimulatedSystem, owner: string): Promise<never> {
  const { rng, shape, log } = system;
  const { clock } = proc;
  const slots = withFaults(proc, 'mysql', system.slots, ['acquire', 'free']);
  const deadLetters = withFaults(proc, 'mysql', system.deadLetters, ['find', 'beginReplay', 'close', 'keepParked']);
  const store = withFaults(proc, 'redis', system.servers.batches, ['unpark', 'markRecorded', 'heldElsewhere']);
  const repository = withFaults(proc, 'mysql', system.repositories, ['termsOf', 'findByPurchases', 'write']);
  const channel = withFaults(proc, 'rocketmq', system.broker.redriveChannel(), ['publish']);
  const minter = createOrderIdMinter({ slots, clock, log }, { owner, leaseMs: shape.slotLeaseMs });
  const { deadlines, events } = system.broker.orderChannels(); // dead letters of batches use none of these ports
  const withoutCoupon = async () => [];
  const { dueOf } = orderStatesOf(proc, system);
  const ports = { deadLetters, store, repository, channel, minter, clock, deadlines, events, dueOf, withoutCoupon };
  const work = async (deadLetterId: string): Promise<void> => {
    if (rng.chance(DIES_OVER_ONE)) system.scheduler.after(rng.range(1, FOLLOW_MS), () => proc.die());
    const answer = rng.chance(0.7)
      ? await replayDeadLetter(deadLetterId, ports, { actor: ACTOR, waitMs: FOLLOW_MS })
      : await discardDeadLetter(deadLetterId, ports, { actor: ACTOR });
    system.count(`dead letter: ${answer.outcome}`);
  };
  for (;;) {
    await clock.sleep(rng.range(1, DEAD_LETTERS_EVERY_MS));
    for (const { deadLetterId, state } of system.deadLetters.deadLetters) {
      if (state === 'parked') await tolerant(() => work(deadLetterId));
    }
  }
}

/** @returns false if a dependency failed and the work must be repeated */
async function tolerant(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof OperationalError) return false;
    throw error;
  }
}
