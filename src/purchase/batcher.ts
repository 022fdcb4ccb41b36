import type { PurchaseOutcome } from '../core/outcome.js';
import { type Purchase, purchaseKey } from '../core/purchase.js';
import type { Clock } from '../core/ports/clock.js';
import type { Span } from '../core/ports/tracing.js';
import { bucketName, type HomeBucket } from '../core/bucket.js';
import type { BatchVerdict, PurchaseMetrics } from './metrics.js';
import type { Deliver } from './place-batch.js';

export interface BatcherOptions {
  /** Purchases in one batch, at most. */
  readonly sizeMax: number;
  /** Batches of one sale and bucket under way at the same time, at most. */
  readonly inFlightMax: number;
  /** A small batch of one sale and bucket leaves this long after another one at the soonest; 0: at once. */
  readonly gatherMs: number;
  /** Purchases waiting in this process, all sales together; one more is `overloaded`. */
  readonly queueMax: number;
  /** How long a purchase may wait for its batch before it is `overloaded`. */
  readonly waitMaxMs: number;
  /** Batches that one purchase may go through before it is `overloaded`; each round ends somebody for good. */
  readonly roundsMax: number;
}

/** Takes purchases of one bucket to their results; see `placeBatch`. */
type Place = (
  bucket: HomeBucket,
  purchases: readonly Purchase[],
  /** Of those purchases that are recorded; null: none is. */
  spans: readonly Span[] | null,
  deliver: Deliver,
) => Promise<BatchVerdict>;

export interface BatcherPorts {
  readonly place: Place;
  readonly clock: Clock;
  readonly metrics: Pick<PurchaseMetrics, 'batchPlaced' | 'queueWaited'>;
  /** Judges what `place` threw: a dependency that is down is answered `unavailable`; a bug must not be hidden. */
  readonly onError: (error: unknown) => 'unavailable' | 'outcome_unknown';
}

/** One purchase of this process, with everyone who waits for its answer. */
interface PendingPurchase {
  readonly purchase: Purchase;
  readonly key: string;
  /** Null: it is not recorded. */
  readonly span: Span | null;
  readonly enteredMs: number;
  /** More than one when the buyer sent the same request again: equal requests, equal answers. */
  readonly waiters: Waiter[];
  isUnderWay: boolean;
  /** Equal requests that came while it was under way; null: none. */
  later: Waiter[] | null;
  /** Batches that it has been in. */
  rounds: number;
}

type Waiter = (outcome: PurchaseOutcome) => void;

/**
 * Answers that hold only for the moment of the look-up. Whoever asked after that may have been accepted meanwhile, by
 * another process, and know it: their request is looked up again.
 */
const HOLDS_FOR_A_MOMENT: ReadonlySet<PurchaseOutcome['outcome']> = new Set<PurchaseOutcome['outcome']>([
  'sold_out',
  'not_enough_left',
  'limit_reached',
  'not_open',
  'closed',
  'paused',
]);

/** The queue of one bucket. */
interface Lane {
  readonly bucket: HomeBucket;
  readonly queue: PendingPurchase[];
  /** Purchases queued or under way, by key: a key stands once in a batch (protocol rule 4). */
  readonly byKey: Map<string, PendingPurchase>;
  /** Batches under way. */
  inFlight: number;
  /** A batch leaves at the end of this turn of the event loop. */
  isLeaving: boolean;
  /** A batch left less than `gatherMs` ago; a timer ends this. */
  isGathering: boolean;
  /** A timer answers purchases that wait too long. */
  isExpiring: boolean;
  /** Purchases that the store has refused alone since it accepted one. */
  refusedByStore: number;
}

/** A store that refuses more purchases in a row, each alone, refuses all of them: the fault is its own. */
const REFUSED_IN_A_ROW_MAX = 16;

/** A queue of this share of a full batch is a crowd, which need not gather. */
const CROWD_SHARE = 1 / 4;

/**
 * Group commit: purchases that arrive while batches are under way join the next one. A lone buyer gets a batch of one at
 * once and a crowd gets full ones. In between, a few at a time, a batch costs broker, worker and MySQL nearly as much as
 * a full one: small batches keep a distance, in which more purchases gather for the next one.
 *
 * **A pending purchase** of this process is
 * - *queued*: in the queue of its lane. An equal request shares its answer.
 * - *under way*: in a batch that has left. An equal request shares its answer too, unless that holds only for the moment of a
 *   look-up made before; then it is queued anew.
 * - *answered*: no longer in the lane. The first answer is the last one.
 *
 * From under way it may go back to the front of the queue, with nothing taken for it, at most `roundsMax` times.
 *
 * **A lane** is the queue of one bucket. With purchases in its queue it is
 * - *full*: every slot is taken by a batch under way. The end of a batch ends this; meanwhile a timer answers those
 *   that have waited too long, because slots may hang for as long as a server does.
 * - *gathering*: a slot is free, but another batch has just left and the queue is no crowd. A timer ends this, or a crowd.
 * - *leaving*: a batch leaves at the end of this turn of the event loop, with every request that the turn has read.
 *
 * With an empty queue, no batch under way and no distance to keep it is *idle*, and is forgotten.
 */
export class Batcher {
  readonly #options: BatcherOptions;
  readonly #ports: BatcherPorts;
  readonly #lanes = new Map<string, Lane>();
  /** Purchases in a queue from which on it is a crowd. */
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

  /** Batches under way in this process. */
  get inFlight(): number {
    let sum = 0;
    for (const lane of this.#lanes.values()) sum += lane.inFlight;
    return sum;
  }

  /** One purchase to its answer. Never rejects. @param span null: it is not recorded */
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

  /** Adds no wait: the batch takes the requests that this turn of the event loop has read. */
  #leaveAfterThisTurn(lane: Lane): void {
    if (lane.isLeaving) return;
    lane.isLeaving = true;
    setImmediate(() => {
      lane.isLeaving = false;
      this.#leave(lane);
    });
  }

  /** Lets as many batches leave as may, and says what the lane waits for then. Called whenever that may have changed. */
  #leave(lane: Lane): void {
    while (lane.queue.length > 0 && this.#mayLeave(lane)) {
      const batch = this.#takeBatch(lane);
      if (batch.length > 0) void this.#place(lane, batch);
    }
    if (lane.queue.length > 0) this.#expireWhileFull(lane);
    // A batch whose purchases are all answered may still be committing: its slot counts until then.
    const isIdle = lane.byKey.size === 0 && lane.inFlight === 0 && !lane.isLeaving && !lane.isGathering;
    if (isIdle) this.#lanes.delete(bucketName(lane.bucket));
  }

  /** Keeps the next small batch at a distance. */
  #gather(lane: Lane): void {
    if (lane.isGathering || this.#crowd <= 1) return;
    lane.isGathering = true;
    void this.#ports.clock.sleep(this.#options.gatherMs).then(() => {
      lane.isGathering = false;
      this.#leave(lane);
    });
  }

  /** While every slot hangs nothing else answers purchases that wait too long. */
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

  /** The next batch, without those that have waited too long: they are answered. */
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

  /** To the front of the queue, in the order in which they came, a bounded number of times. */
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
    if (lane.byKey.get(pending.key) !== pending) return; // it was answered before
    lane.byKey.delete(pending.key);
    for (const waiter of pending.waiters) waiter(outcome);
    const { purchase, key, span, later } = pending;
    if (later === null) return;
    if (HOLDS_FOR_A_MOMENT.has(outcome.outcome)) this.#enqueue(lane, purchase, key, span, later);
    else for (const waiter of later) waiter(outcome);
  }
}

/** A purchase is refused for good only while the store accepts others. */
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
