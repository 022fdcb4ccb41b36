import type { PurchaseOutcome } from '../core/outcome.js';
import { type Purchase, purchaseKey } from '../core/purchase.js';
import type { Clock } from '../core/ports/clock.js';
import type { Span } from '../core/ports/tracing.js';
import { bucketName, type HomeBucket } from '../core/bucket.js';
import type { BatchVerdict, PurchaseMetrics } from './metrics.js';
import type { Deliver } from './place-batch.js';

export interface BatcherOptions {
  /** Maximum number of purchases in one batch. */
  readonly sizeMax: number;
  /** Maximum number of batches of one bucket that are under way at the same time. */
  readonly inFlightMax: number;
  /** Minimum interval between two small batches of one bucket, ms. 0 disables it. */
  readonly gatherMs: number;
  /** Maximum number of purchases waiting in this process, over all sales. Any further purchase is `overloaded`. */
  readonly queueMax: number;
  /** How long a purchase may wait for its batch before it is `overloaded`. */
  readonly waitMaxMs: number;
  /** Maximum number of batches that one purchase may join before it is `overloaded`. */
  readonly roundsMax: number;
}

type Place = (
  bucket: HomeBucket,
  purchases: readonly Purchase[],
  /** Null if no purchase is traced. */
  spans: readonly Span[] | null,
  deliver: Deliver,
) => Promise<BatchVerdict>;

export interface BatcherPorts {
  readonly place: Place;
  readonly clock: Clock;
  readonly metrics: PurchaseMetrics;
  /** Turns an error of `place` into an answer: `unavailable` if a dependency is down. A bug must not be hidden. */
  readonly onError: (error: unknown) => 'unavailable' | 'outcome_unknown';
}

/** A purchase of this process and all callers that wait for its answer. */
interface PendingPurchase {
  readonly purchase: Purchase;
  readonly key: string;
  /** Null if the purchase is not traced. */
  readonly span: Span | null;
  readonly enteredMs: number;
  /** Several callers if the buyer repeated the request: equal requests get equal answers. */
  readonly waiters: Waiter[];
  isUnderWay: boolean;
  /** Equal requests that arrived while the purchase was under way. Null if there were none. */
  later: Waiter[] | null;
  /** Number of batches that this purchase has been in. */
  rounds: number;
}

type Waiter = (outcome: PurchaseOutcome) => void;

/** These answers hold only for the moment: the buyer may have been accepted since. A later equal request asks again. */
const HOLDS_FOR_A_MOMENT: ReadonlySet<PurchaseOutcome['outcome']> = new Set<PurchaseOutcome['outcome']>([
  'sold_out',
  'not_enough_left',
  'limit_reached',
  'not_open',
  'closed',
  'paused',
]);

interface Lane {
  readonly bucket: HomeBucket;
  readonly queue: PendingPurchase[];
  /** Purchases that are queued or under way, by key. A batch contains each key only once (protocol rule 4). */
  readonly byKey: Map<string, PendingPurchase>;
  /** Number of batches under way. */
  inFlight: number;
  /** True if a batch leaves at the end of this turn of the event loop. */
  isLeaving: boolean;
  /** True if a batch left less than `gatherMs` ago. A timer resets it. */
  isGathering: boolean;
  /** True while a timer answers purchases that have waited too long. */
  isExpiring: boolean;
  /** Number of purchases that the store has refused, each alone in its batch, since it last accepted a purchase. */
  refusedByStore: number;
}

/** If the store refuses more purchases than this in a row, each alone, the store is at fault. */
const REFUSED_IN_A_ROW_MAX = 16;

/** A queue with this fraction of a full batch counts as a crowd: its batch does not wait for more purchases. */
const CROWD_SHARE = 1 / 4;

/**
 * Group commit: purchases that arrive while batches are under way join the next batch. A single buyer gets a batch of
 * one at once; a crowd gets full batches. A small batch costs the broker, the worker and MySQL nearly as much as a full
 * one, so an interval follows each small batch, in which purchases gather.
 *
 * **A pending purchase** of this process is
 * - *queued* in its lane. An equal request shares its answer.
 * - *under way* in a batch. An equal request shares its answer too, unless that answer held only at an earlier look-up.
 *   In that case the equal request is queued again.
 * - *answered*: it has left the lane. Only the first answer counts.
 *
 * A purchase under way that took no units may return to the front of the queue, at most `roundsMax` times.
 *
 * **A lane** is the queue of one bucket. With purchases in its queue it is
 * - *full*: batches under way take every slot. A batch may hang with its server, so a timer answers purchases that have
 *   waited too long.
 * - *gathering*: a slot is free, but a batch has just left. A timer or a crowd ends this state.
 * - *leaving*: a batch leaves at the end of this turn of the event loop, with every request that the turn has read.
 *
 * An *idle* lane is forgotten: its queue is empty, no batch is under way and no interval is running.
 */
export class Batcher {
  readonly #options: BatcherOptions;
  readonly #ports: BatcherPorts;
  readonly #lanes = new Map<string, Lane>();
  /** Queue length from which on a queue is a crowd. */
  readonly #crowd: number;
  #waiting = 0;

  constructor(options: BatcherOptions, ports: BatcherPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#crowd = options.gatherMs > 0 ? options.sizeMax * CROWD_SHARE : 1;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get lanes(): number {
    return this.#lanes.size;
  }

  get inFlight(): number {
    let sum = 0;
    for (const lane of this.#lanes.values()) sum += lane.inFlight;
    return sum;
  }

  /** Never rejects. @param span null if the purchase is not traced */
  submit(bucket: HomeBucket, purchase: Purchase, span: Span | null = null): Promise<PurchaseOutcome> {
    const key = purchaseKey(purchase);
    const equal = this.#lanes.get(bucketName(bucket))?.byKey.get(key);
    if (equal) {
      if (equal.purchase.quantity !== purchase.quantity) return Promise.resolve({ outcome: 'request_conflict' });
      return new Promise((resolve) => (equal.isUnderWay ? (equal.later ??= []) : equal.waiters).push(resolve));
    }
    if (this.#waiting >= this.#options.queueMax) return Promise.resolve({ outcome: 'overloaded' });
    const lane = this.#lane(bucket);
    return new Promise((resolve) => this.#enqueue(lane, purchase, key, span, [resolve]));
  }

  #lane(bucket: HomeBucket): Lane {
    const name = bucketName(bucket);
    let lane = this.#lanes.get(name);
    if (!lane) {
      lane = {
        bucket,
        queue: [],
        byKey: new Map(),
        inFlight: 0,
        isLeaving: false,
        isGathering: false,
        isExpiring: false,
        refusedByStore: 0,
      };
      this.#lanes.set(name, lane);
    }
    return lane;
  }

  #enqueue(lane: Lane, purchase: Purchase, key: string, span: Span | null, waiters: Waiter[]): void {
    const enteredMs = this.#ports.clock.monotonicMs();
    const pending: PendingPurchase = {
      purchase,
      key,
      span,
      enteredMs,
      waiters,
      isUnderWay: false,
      later: null,
      rounds: 0,
    };
    lane.byKey.set(key, pending);
    lane.queue.push(pending);
    this.#waiting++;
    if (this.#mayLeave(lane)) this.#leaveAfterThisTurn(lane);
    else this.#expireWhileFull(lane);
  }

  #isFull(lane: Lane): boolean {
    return lane.inFlight >= this.#options.inFlightMax;
  }

  #mayLeave(lane: Lane): boolean {
    return !this.#isFull(lane) && (!lane.isGathering || lane.queue.length >= this.#crowd);
  }

  /** Waits for the end of this turn of the event loop, which may read more requests for the same batch. */
  #leaveAfterThisTurn(lane: Lane): void {
    if (lane.isLeaving) return;
    lane.isLeaving = true;
    setImmediate(() => {
      lane.isLeaving = false;
      this.#leave(lane);
    });
  }

  /** Starts as many batches as are allowed, then sets the timer that the lane needs. */
  #leave(lane: Lane): void {
    while (lane.queue.length > 0 && this.#mayLeave(lane)) {
      const batch = this.#takeBatch(lane);
      if (batch.length > 0) void this.#place(lane, batch);
    }
    if (lane.queue.length > 0) this.#expireWhileFull(lane);
    // A batch may still be committing after all its purchases were answered. It keeps its slot until the commit ends.
    const isIdle = lane.byKey.size === 0 && lane.inFlight === 0 && !lane.isLeaving && !lane.isGathering;
    if (isIdle) this.#lanes.delete(bucketName(lane.bucket));
  }

  #gather(lane: Lane): void {
    if (lane.isGathering || this.#crowd <= 1) return;
    lane.isGathering = true;
    void this.#ports.clock.sleep(this.#options.gatherMs).then(() => {
      lane.isGathering = false;
      this.#leave(lane);
    });
  }

  /** While every slot is taken, only this timer answers purchases that have waited too long. */
  #expireWhileFull(lane: Lane): void {
    if (lane.isExpiring || !this.#isFull(lane)) return;
    lane.isExpiring = true;
    void this.#expire(lane);
  }

  async #expire(lane: Lane): Promise<void> {
    const { clock } = this.#ports;
    for (let oldest = lane.queue[0]; oldest !== undefined; oldest = lane.queue[0]) {
      const restMs = oldest.enteredMs + this.#options.waitMaxMs - clock.monotonicMs();
      if (restMs >= 0) {
        await clock.sleep(restMs + 1);
        continue;
      }
      lane.queue.shift();
      this.#waiting--;
      this.#answer(lane, oldest, { outcome: 'overloaded' });
    }
    lane.isExpiring = false;
  }

  /** Takes the next batch from the queue. Answers purchases that have waited too long. */
  #takeBatch(lane: Lane): PendingPurchase[] {
    const { sizeMax, waitMaxMs } = this.#options;
    const nowMs = this.#ports.clock.monotonicMs();
    const taken = lane.queue.splice(0, sizeMax);
    this.#waiting -= taken.length;
    const [oldest] = taken;
    if (oldest) this.#ports.metrics.queueWaited(nowMs - oldest.enteredMs);
    let tooLate = 0;
    for (const pending of taken) {
      pending.isUnderWay = true;
      if (nowMs - pending.enteredMs > waitMaxMs) {
        tooLate++;
        this.#answer(lane, pending, { outcome: 'overloaded' });
      }
    }
    return tooLate === 0 ? taken : taken.filter((pending) => nowMs - pending.enteredMs <= waitMaxMs);
  }

  async #place(lane: Lane, batch: readonly PendingPurchase[]): Promise<void> {
    const { place, clock, metrics, onError } = this.#ports;
    lane.inFlight++;
    const startedMs = clock.monotonicMs();
    this.#gather(lane);
    const purchases = batch.map((pending) => pending.purchase);
    const again: number[] = [];
    const deliver: Deliver = (index, result) => {
      if (result.outcome === 'again') again.push(index);
      else this.#answer(lane, batch[index] as PendingPurchase, judged(lane, result));
    };
    try {
      const verdict = await place(lane.bucket, purchases, spansOf(batch), deliver);
      metrics.batchPlaced(verdict, batch.length, clock.monotonicMs() - startedMs);
      if (again.length > 0) this.#goAgain(lane, batch, again);
    } catch (error) {
      const outcome = onError(error);
      metrics.batchPlaced(outcome, batch.length, clock.monotonicMs() - startedMs);
      for (const pending of batch) this.#answer(lane, pending, { outcome });
    }
    lane.inFlight--;
    this.#leave(lane);
  }

  /** Returns purchases to the front of the queue in order of arrival. Answers those out of rounds. */
  #goAgain(lane: Lane, batch: readonly PendingPurchase[], indexes: number[]): void {
    const again: PendingPurchase[] = [];
    for (const index of indexes.sort((a, b) => a - b)) {
      const pending = batch[index] as PendingPurchase;
      if (++pending.rounds >= this.#options.roundsMax) {
        this.#answer(lane, pending, { outcome: 'overloaded' });
        continue;
      }
      pending.isUnderWay = false;
      if (pending.later !== null) pending.waiters.push(...pending.later);
      pending.later = null;
      again.push(pending);
    }
    lane.queue.unshift(...again);
    this.#waiting += again.length;
  }

  #answer(lane: Lane, pending: PendingPurchase, outcome: PurchaseOutcome): void {
    if (lane.byKey.get(pending.key) !== pending) return; // already answered
    lane.byKey.delete(pending.key);
    for (const waiter of pending.waiters) waiter(outcome);
    const { purchase, key, span, later } = pending;
    if (later === null) return;
    if (HOLDS_FOR_A_MOMENT.has(outcome.outcome)) this.#enqueue(lane, purchase, key, span, later);
    else for (const waiter of later) waiter(outcome);
  }
}

/** Turns a refusal into `unavailable` if the store refuses too many purchases in a row. */
function judged(lane: Lane, result: PurchaseOutcome): PurchaseOutcome {
  if (result.outcome === 'accepted') lane.refusedByStore = 0;
  if (result.outcome !== 'refused_by_store' || ++lane.refusedByStore <= REFUSED_IN_A_ROW_MAX) return result;
  return { outcome: 'unavailable' };
}

function spansOf(batch: readonly PendingPurchase[]): readonly Span[] | null {
  let spans: Span[] | null = null;
  for (const { span } of batch) if (span !== null) (spans ??= []).push(span);
  return spans;
}
