import type { PurchaseOutcome } from '../core/outcome.js';
import { type Purchase, purchaseKey } from '../core/purchase.js';
import type { Clock } from '../core/ports/clock.js';
import type { PurchaseMetrics } from '../core/ports/purchase-metrics.js';
import type { HomeBucket } from '../core/ports/stock-store.js';
import type { PlacedBatch, Reply } from './place-batch.js';

export interface BatcherOptions {
  /** Purchases in one batch, at most. */
  readonly sizeMax: number;
  /** Batches of one sale and bucket on their way at the same time, at most. */
  readonly inFlightMax: number;
  /** A small batch of one sale and bucket leaves this long after another one at the soonest; 0: when it likes. */
  readonly gatherMs: number;
  /** Purchases waiting in this process, all sales together; one more is `overloaded`. */
  readonly queueMax: number;
  /** How long a purchase may wait for its batch before it is `overloaded`. */
  readonly waitMaxMs: number;
  /** Batches that one purchase may go through before it is `overloaded`; each round ends somebody for good. */
  readonly roundsMax: number;
}

/** Takes purchases of one bucket to their last word; see place-batch.ts. */
export type Place = (ref: HomeBucket, purchases: Purchase[], trace: string, reply: Reply) => Promise<PlacedBatch>;

export interface BatcherPorts {
  readonly place: Place;
  readonly clock: Clock;
  readonly metrics: PurchaseMetrics;
  /** Hears of what `place` threw. A dependency that is down is answered `unavailable`; a bug is not ours to hide. */
  readonly onError: (error: unknown) => 'unavailable' | 'outcome_unknown';
}

/** One purchase on its way, with everyone who waits for its answer. */
interface Ticket {
  readonly purchase: Purchase;
  readonly key: string;
  readonly trace: string;
  readonly enteredMs: number;
  /** More than one when the buyer pressed again meanwhile: equal requests, equal answers. */
  readonly waiters: Waiter[];
  /** Its batch has left. */
  left: boolean;
  /** Who pressed again after that; null: nobody. */
  late: Waiter[] | null;
  rounds: number;
}

type Waiter = (outcome: PurchaseOutcome) => void;

/**
 * What the ledger says of the moment in which it is asked. Who pressed later may have been let in meanwhile, by another
 * process, and heard it: he is told only what was looked up after he pressed.
 */
const SAID_OF_THEN: ReadonlySet<PurchaseOutcome['outcome']> = new Set([
  ...(['sold_out', 'limit_reached', 'not_open', 'closed', 'paused'] as const),
]);

/** The queue of one bucket. An idle lane is forgotten. */
interface Lane {
  readonly ref: HomeBucket;
  readonly queue: Ticket[];
  /** Tickets waiting or on their way, by key: a key stands once in a batch (protocol rule 4). */
  readonly tickets: Map<string, Ticket>;
  inFlight: number;
  woken: boolean;
  /** Somebody looks after those who wait too long. */
  watched: boolean;
  /** A batch has just left: a small one has to wait. */
  resting: boolean;
}

/** The part of a full batch that is no small one. */
const CROWD_SHARE = 1 / 4;

/**
 * Group commit: purchases that arrive while batches are under way join the next one. A lone buyer gets a batch of one at
 * once and a crowd gets full ones. In between, a few at a time, a batch costs broker, worker and MySQL nearly as much as
 * a full one: small batches keep a distance, in which the next one gathers who comes.
 */
export class Batcher {
  readonly #options: BatcherOptions;
  readonly #ports: BatcherPorts;
  readonly #lanes = new Map<string, Lane>();
  /** As many do not wait for more. */
  readonly #crowd: number;
  #waiting = 0;

  constructor(options: BatcherOptions, ports: BatcherPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#crowd = options.gatherMs > 0 ? options.sizeMax * CROWD_SHARE : 1;
  }

  /** Purchases waiting for a batch in this process. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Buckets that this process is busy with. */
  get lanes(): number {
    return this.#lanes.size;
  }

  /** Batches on their way in this process. */
  get inFlight(): number {
    let sum = 0;
    for (const lane of this.#lanes.values()) sum += lane.inFlight;
    return sum;
  }

  /** One purchase to its answer. Never rejects. */
  submit(ref: HomeBucket, purchase: Purchase, trace: string): Promise<PurchaseOutcome> {
    const key = purchaseKey(purchase);
    const twin = this.#lanes.get(nameOf(ref))?.tickets.get(key);
    if (twin) {
      if (twin.purchase.quantity !== purchase.quantity) return Promise.resolve({ outcome: 'request_conflict' });
      return new Promise((resolve) => (twin.left ? (twin.late ??= []) : twin.waiters).push(resolve));
    }
    if (this.#waiting >= this.#options.queueMax) return Promise.resolve({ outcome: 'overloaded' });
    const lane = this.#lane(ref);
    return new Promise((resolve) => this.#enter(lane, { purchase, key, trace, waiters: [resolve] }));
  }

  #enter(lane: Lane, asked: Pick<Ticket, 'purchase' | 'key' | 'trace' | 'waiters'>): void {
    const ticket: Ticket = { ...asked, enteredMs: this.#ports.clock.nowMs(), left: false, late: null, rounds: 0 };
    lane.tickets.set(ticket.key, ticket);
    lane.queue.push(ticket);
    this.#waiting++;
    this.#wake(lane);
  }

  #lane(ref: HomeBucket): Lane {
    const name = nameOf(ref);
    let lane = this.#lanes.get(name);
    if (!lane) {
      lane = {
        ref,
        queue: [],
        tickets: new Map(),
        inFlight: 0,
        woken: false,
        watched: false,
        resting: false,
      };
      this.#lanes.set(name, lane);
    }
    return lane;
  }

  /** Lets the batch leave after the requests that this turn of the event loop has read; it adds no wait. */
  #wake(lane: Lane): void {
    if (lane.woken) return;
    if (!this.#mayLeave(lane)) return this.#watch(lane);
    lane.woken = true;
    setImmediate(() => {
      lane.woken = false;
      this.#fillSlots(lane);
    });
  }

  #mayLeave({ inFlight, queue, resting }: Lane): boolean {
    return inFlight < this.#options.inFlightMax && (!resting || queue.length >= this.#crowd);
  }

  /** Keeps the next small batch at a distance. Told by a timer: the clock of a machine may step. */
  #rest(lane: Lane): void {
    if (lane.resting || this.#crowd <= 1) return;
    lane.resting = true;
    void this.#ports.clock.sleep(this.#options.gatherMs).then(() => {
      lane.resting = false;
      this.#fillSlots(lane);
    });
  }

  /** While every slot hangs, nobody is taken: who waits too long must hear it on time all the same. A rest ends by itself. */
  #watch(lane: Lane): void {
    if (lane.watched || lane.inFlight < this.#options.inFlightMax) return;
    lane.watched = true;
    void this.#dropLate(lane);
  }

  async #dropLate(lane: Lane): Promise<void> {
    const { clock } = this.#ports;
    for (let oldest = lane.queue[0]; oldest !== undefined; oldest = lane.queue[0]) {
      const restMs = oldest.enteredMs + this.#options.waitMaxMs - clock.nowMs();
      if (restMs >= 0) {
        await clock.sleep(restMs + 1);
        continue;
      }
      lane.queue.shift();
      this.#waiting--;
      this.#answer(lane, oldest, { outcome: 'overloaded' });
    }
    lane.watched = false;
  }

  #fillSlots(lane: Lane): void {
    while (lane.queue.length > 0 && this.#mayLeave(lane)) this.#leave(lane);
    if (lane.queue.length > 0) this.#watch(lane);
    // An answered batch may still be committing: its slot counts until then.
    const idle = lane.tickets.size === 0 && lane.inFlight === 0 && !lane.woken && !lane.resting;
    if (idle) this.#lanes.delete(nameOf(lane.ref));
  }

  #leave(lane: Lane): void {
    const tickets = this.#take(lane);
    if (tickets.length > 0) void this.#carry(lane, tickets);
  }

  #take(lane: Lane): Ticket[] {
    const { sizeMax, waitMaxMs } = this.#options;
    const nowMs = this.#ports.clock.nowMs();
    const taken = lane.queue.splice(0, sizeMax);
    this.#waiting -= taken.length;
    const [oldest] = taken;
    if (oldest) this.#ports.metrics.queueWaited(nowMs - oldest.enteredMs);
    for (const ticket of taken) {
      ticket.left = true;
      if (ticket.late === null) continue;
      ticket.waiters.push(...ticket.late); // it goes again, after they pressed
      ticket.late = null;
    }
    const fresh = taken.filter((ticket) => nowMs - ticket.enteredMs <= waitMaxMs);
    if (fresh.length < taken.length) {
      for (const ticket of taken) {
        if (nowMs - ticket.enteredMs > waitMaxMs) this.#answer(lane, ticket, { outcome: 'overloaded' });
      }
    }
    return fresh;
  }

  async #carry(lane: Lane, tickets: Ticket[]): Promise<void> {
    const { place, clock, metrics, onError } = this.#ports;
    lane.inFlight++;
    const startedMs = clock.nowMs();
    this.#rest(lane);
    const purchases = tickets.map((ticket) => ticket.purchase);
    const reply: Reply = (index, outcome) => this.#answer(lane, tickets[index] as Ticket, outcome);
    try {
      const placed = await place(lane.ref, purchases, tickets[0]?.trace ?? '', reply);
      metrics.batchPlaced(placed.verdict, tickets.length, clock.nowMs() - startedMs);
      this.#goAgain(
        lane,
        placed.again.map((index) => tickets[index] as Ticket),
      );
    } catch (error) {
      const outcome = onError(error);
      metrics.batchPlaced(outcome, tickets.length, clock.nowMs() - startedMs);
      for (const ticket of tickets) this.#answer(lane, ticket, { outcome });
    }
    lane.inFlight--;
    this.#fillSlots(lane);
  }

  /** Survivors of a refused batch go first into the next one, a bounded number of times. */
  #goAgain(lane: Lane, tickets: readonly Ticket[]): void {
    const again = tickets.filter((ticket) => ++ticket.rounds < this.#options.roundsMax);
    if (again.length < tickets.length) {
      for (const ticket of tickets) {
        if (ticket.rounds >= this.#options.roundsMax) this.#answer(lane, ticket, { outcome: 'overloaded' });
      }
    }
    lane.queue.unshift(...again);
    this.#waiting += again.length;
  }

  /** The first answer of a ticket is its last. */
  #answer(lane: Lane, ticket: Ticket, outcome: PurchaseOutcome): void {
    if (lane.tickets.get(ticket.key) !== ticket) return;
    lane.tickets.delete(ticket.key);
    for (const waiter of ticket.waiters) waiter(outcome);
    const { purchase, key, trace, late } = ticket;
    if (late === null) return;
    if (SAID_OF_THEN.has(outcome.outcome)) this.#enter(lane, { purchase, key, trace, waiters: late });
    else for (const waiter of late) waiter(outcome);
  }
}

/** Who knows another number of buckets may be in another bucket: their purchases do not go together. */
const nameOf = (ref: HomeBucket): string => `${ref.saleId}:${ref.bucket}/${ref.buckets}`;
