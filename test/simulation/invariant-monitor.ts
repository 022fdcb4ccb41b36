import { decodeOrderEvents } from '../../src/core/order-event.js';
import { mintedAtMs } from '../../src/core/order-id.js';
import { isLive, mayMove, wasPaid, type OrderState } from '../../src/core/order.js';
import type { PurchaseOutcome, PurchaseStatus } from '../../src/core/outcome.js';
import { type Purchase, purchaseKey } from '../../src/core/purchase.js';
import { type Sale } from '../../src/core/sale.js';
import { homesEver, unitsInTransit } from '../../src/core/bucket.js';
import { TOPICS } from '../../src/core/topics.js';
import { checkSale, type ClientOutcome } from '../invariants/check-sale.js';
import { compareSale } from '../../src/operate/reconcile/compare-sale.js';
import { MemoryReconcileRepository, MemoryReconcileStore } from '../helpers/memory/memory-reconcile.js';
import { MemoryRepairStore } from '../helpers/memory/memory-repair-store.js';
import { memoryCheckPorts } from '../helpers/memory/memory-check-ports.js';
import type { CallName } from './call-name.js';
import { metadataOf, SALE_ID } from './shape.js';
import type { SimulatedSystem } from './simulated-system.js';

/** Options of a comparison at rest, which judges data of any age and removes no marker. */
const AT_REST = { safeAgeMs: 0, outboxAgeMs: 0, markerAgeMs: Infinity, waitingMaxMs: 0, readsMax: 1000 };

type MarkerWord = 'deducted' | 'aborted';

/** Final refusals, which an accepted buyer must never get for the same key and quantity. */
const REFUSALS: readonly string[] = [
  ...['sold_out', 'not_enough_left', 'limit_reached', 'not_open', 'closed', 'paused', 'refused_by_store'],
];

/** Reasons for which an operator or the keeper gives a purchase up, even if Redis lost nothing. */
const GIVEN_UP: readonly string[] = ['discarded', 'compensation_failed'];

/** Time in which a purchase may take units after its client has given up. */
const LATE_MAX_MS = 60_000;

/** Checks the promises of docs/architecture.md after every call that acted, and once more at rest. */
export class InvariantMonitor {
  readonly #system: SimulatedSystem;
  readonly #opLog = new Map<string, ClientOutcome>();
  /** `userId/requestId*quantity` → when it was first answered as accepted. */
  readonly #acceptedAtMs = new Map<string, number>();
  /** `userId/requestId` → when the first accepted attempt began. */
  readonly #acceptedTrySinceMs = new Map<string, number>();
  /** When units were last released. */
  #unitsReturnedMs = -Infinity;
  /** Batches older than the epoch of the sale. */
  readonly #outlived = new Set<string>();
  readonly #markerWords = new Map<string, MarkerWord>();
  readonly #states = new Map<string, OrderState>();
  /** Units that are left or in transit, and since when. */
  readonly #unitsLeft: { readonly fromMs: number; readonly units: number }[] = [];
  /** `userId/requestId` → its largest quantity, and when it was last attempted. */
  readonly #tries = new Map<string, { readonly quantity: number; readonly atMs: number }>();
  /** Order id → the state that an answer to a buyer confirmed. */
  readonly #confirmed = new Map<string, OrderState>();

  constructor(system: SimulatedSystem) {
    this.#system = system;
    this.#checkRedis();
  }

  /** Notes that a buyer begins an attempt. */
  tryStarted({ userId, requestId, quantity }: Purchase): void {
    const key = purchaseKey({ userId, requestId });
    const most = Math.max(quantity, this.#tries.get(key)?.quantity ?? 0);
    this.#tries.set(key, { quantity: most, atMs: this.#system.scheduler.nowMs });
  }

  /** Checks the answer to an attempt that began at `sinceMs`. Null: no answer. */
  answered({ userId, requestId, quantity }: Purchase, answer: PurchaseOutcome | null, sinceMs: number): void {
    const key = purchaseKey({ userId, requestId });
    const word = answer?.outcome ?? 'outcome_unknown';
    const outcome: ClientOutcome =
      word === 'accepted' || word === 'replayed' ? 'ok' : word === 'outcome_unknown' ? 'unknown' : 'fail';
    if (word === 'sold_out' || word === 'not_enough_left') this.#checkSoldOut(key, quantity, sinceMs);
    if (word === 'refused_by_store' && !this.#system.redis.poisoned.has(key))
      this.#system.fail('POISON', `${key}: ${word}, and Redis fails with another purchase`);
    const before = this.#opLog.get(key) ?? outcome;
    this.#opLog.set(key, before === 'ok' || outcome === 'ok' ? 'ok' : before === outcome ? outcome : 'unknown');
    const wish = `${key}*${quantity}`;
    const acceptedAtMs = this.#acceptedAtMs.get(wish);
    if (outcome === 'ok') {
      // an ended purchase promises nothing
      const isOver = answer?.outcome === 'replayed' && answer.entry.state === 'released';
      if (!isOver && !this.#acceptedTrySinceMs.has(key)) this.#acceptedTrySinceMs.set(key, sinceMs);
      if (!this.#mayHaveLostData && !this.#hasEntry(userId, key))
        this.#system.fail('I3', `${key}: accepted, and holds no units`);
      if (acceptedAtMs === undefined) this.#acceptedAtMs.set(wish, this.#system.scheduler.nowMs);
    }
    if (
      acceptedAtMs !== undefined &&
      acceptedAtMs < sinceMs &&
      REFUSALS.includes(word) &&
      !this.#isExcused(word, sinceMs)
    ) {
      this.#system.fail('I3', `${key}: ${word}, and was accepted before`);
    }
  }

  /**
   * Checks that no buyer gets `sold_out` if, since the attempt began and for the life of a sold-out flag before, there
   * were always enough units for this buyer and all purchases under way.
   */
  #checkSoldOut(key: string, quantity: number, sinceMs: number): void {
    if (this.#system.past.restarts > 0) return; // the units of a sale in repair cannot be counted
    const fromMs = sinceMs - this.#system.shape.soldOutLifeMs;
    const since = this.#unitsLeft.findLastIndex((one) => one.fromMs < fromMs);
    const units = Math.min(...this.#unitsLeft.slice(Math.max(0, since)).map((one) => one.units));
    let others = 0;
    for (const [other, { quantity: wanted, atMs }] of this.#tries) {
      if (other !== key && atMs + LATE_MAX_MS >= fromMs) others += wanted;
    }
    if (units >= quantity + others) this.#system.fail('SOLD_OUT', `${key} got sold_out, and ${units} units are left`);
  }

  /** Excuses `sold_out` soon after a release of units, because a sold-out flag may be older than the release. */
  #isExcused(word: string, sinceMs: number): boolean {
    // an older batch may have lost its units, and its buyers may be refused until it is recorded
    if (this.#mayHaveLostData) return true;
    return word === 'sold_out' && this.#unitsReturnedMs >= sinceMs - this.#system.shape.soldOutLifeMs;
  }

  /** Checks the status of an accepted purchase. */
  statusRead(who: Omit<Purchase, 'quantity'>, { status }: PurchaseStatus): void {
    if (status === 'not_found' && !this.#mayHaveLostData)
      this.#system.fail('I3', `${purchaseKey(who)}: not found, and was accepted`);
  }

  /** Notes that an answer confirmed a payment or a cancellation. */
  moveConfirmed(orderId: string, state: 'paid' | 'cancelled'): void {
    this.#confirmed.set(orderId, state);
  }

  /** Must be called after every call that acted. */
  afterCall(call: string, args: readonly unknown[], value: unknown): void {
    switch (call) {
      case 'reacquire' satisfies CallName:
      case 'swap' satisfies CallName:
        return this.#checkRedis();
      case 'deduct' satisfies CallName:
      case 'resolve' satisfies CallName:
        this.#noteWord(args[0] as { batchId: string }, typeof value === 'string' ? value : wordOf(value));
        return this.#checkRedis();
      case 'release' satisfies CallName:
        if ((value as string[]).includes('released')) this.#unitsReturnedMs = this.#system.scheduler.nowMs;
        return this.#checkRedis();
      case 'markRecorded' satisfies CallName:
      case 'transferOut' satisfies CallName:
      case 'transferIn' satisfies CallName:
      case 'endTransfer' satisfies CallName:
        return this.#checkRedis();
      case 'commit' satisfies CallName:
      case 'rollback' satisfies CallName:
        return this.checkEnd(call, args[0] as { batchId: string });
      case 'write' satisfies CallName:
      case 'order' satisfies CallName:
      case 'settle' satisfies CallName:
      case 'refuse' satisfies CallName:
      case 'pay' satisfies CallName:
      case 'cancel' satisfies CallName:
      case 'expire' satisfies CallName:
      case 'expireDue' satisfies CallName:
        return this.#checkMysql();
      default:
    }
  }

  /** Checks that the word of a marker never changes. */
  #noteWord({ batchId }: { batchId: string }, word: string): void {
    if (word === 'outlived' || word === 'claimed') this.#outlived.add(batchId);
    const now: MarkerWord | null =
      word === 'deducted' || word === 'already_deducted' ? 'deducted' : isAbort(word) ? 'aborted' : null;
    if (now === null) return;
    const before = this.#markerWords.get(batchId) ?? now;
    if (before !== now) this.#system.fail('MARKER', `batch ${batchId.slice(0, 4)} was ${before} and is ${now}`);
    this.#markerWords.set(batchId, now);
  }

  /** Checks that a commit belongs to a deducted batch, and a rollback to an aborted batch (rule 2). */
  checkEnd(end: 'commit' | 'rollback', { batchId }: { batchId: string }): void {
    const word = this.#markerWords.get(batchId);
    if (end === 'commit' && this.#outlived.has(batchId)) return; // the marker may be lost (rule 13)
    if (end === 'rollback' && word !== 'deducted' && this.#system.past.repairs > 0) return; // another epoch
    if (word !== (end === 'commit' ? 'deducted' : 'aborted')) {
      this.#system.fail('MARKER', `${end} of batch ${batchId.slice(0, 4)}, which is ${word ?? 'not resolved'}`);
    }
  }

  /** Checks I1 and I4 in Redis: every unit is left, in transit, held or ordered. */
  #checkRedis(): void {
    const { redis, shape, repositories } = this.#system;
    const { stock, limitPerBuyer } = shape.sale;
    const { buckets } = repositories.saleOf(SALE_ID) as Sale;
    const all = Array.from({ length: buckets }, (_, bucket) => redis.bucket({ saleId: SALE_ID, bucket }));
    let left = unitsInTransit(all.map((bucket) => bucket.transfers()));
    let units = 0;
    for (const bucket of all) {
      left += bucket.unitsLeft;
      for (const entry of bucket.requests.values()) if (entry.state !== 'released') units += entry.quantity;
      if (bucket.unitsLeft < 0) this.#system.fail('I1', `${bucket.unitsLeft} units left in Redis`);
      for (const [userId, held] of bucket.unitsByBuyer()) {
        if (held > limitPerBuyer) this.#system.fail('I2', `${userId} holds ${held} units in Redis`);
      }
    }
    // Between the rebuilds of two buckets, units may count twice or not at all.
    const [epoch = 0, ...others] = all.map(({ sale }) => sale?.epoch ?? 0);
    if (epoch === 0 || others.some((other) => other !== epoch)) return;
    if (this.#unitsLeft.at(-1)?.units !== left)
      this.#unitsLeft.push({ fromMs: this.#system.scheduler.nowMs, units: left });
    if (left + units !== stock) this.#system.fail('I4', `Redis has ${left + units} units of ${stock}`);
  }

  /** Checks I1 and I2 in MySQL. While Redis loses nothing, only purchases that were given up may fail. */
  #checkMysql(): void {
    const { repositories, shape } = this.#system;
    const { stock, limitPerBuyer } = shape.sale;
    const byBuyer = new Map<string, number>();
    const keys = new Set<string>();
    let live = 0;
    for (const order of repositories.allOrders) {
      const key = purchaseKey(order);
      if (keys.has(key)) this.#system.fail('I2', `${key} has two rows`);
      keys.add(key);
      if (order.reason !== null && !this.#mayFailFor(order.reason)) this.#system.fail('I3', `${key}: ${order.reason}`);
      const before = this.#states.get(order.orderId) ?? order.state;
      if (before !== order.state && !mayMove(before, order.state)) {
        this.#system.fail('TRANSITION', `${key} went from ${before} to ${order.state}`);
      }
      this.#states.set(order.orderId, order.state);
      const { nowMs } = this.#system.scheduler;
      const aliveMs = nowMs - mintedAtMs(order.orderId);
      if (before === 'pending_payment' && order.state === 'expired' && aliveMs < shape.paymentWindowMs)
        this.#system.fail('DEADLINE', `${key} expired after ${aliveMs} of ${shape.paymentWindowMs} ms`);
      if (!isLive(order.state)) continue;
      live += order.quantity;
      byBuyer.set(order.userId, (byBuyer.get(order.userId) ?? 0) + order.quantity);
    }
    const sold = repositories.saleOf(SALE_ID)?.sold ?? 0;
    if (sold > stock) this.#system.fail('I1', `sold ${sold} of ${stock}`);
    if (sold !== live)
      this.#system.fail('I1', `the count of sold units is ${sold}, but live orders hold ${live} units`);
    for (const [userId, units] of byBuyer) {
      if (units > limitPerBuyer) this.#system.fail('I2', `${userId} has ${units} live units`);
    }
  }

  /** Checks that a row has the metadata of its purchase, unless the body of its batch is lost. */
  #checkMetadata(): void {
    const { repositories } = this.#system;
    for (const order of repositories.allOrders) {
      const [wanted, found] = [metadataOf(order), repositories.shown(order).metadata];
      if (wanted !== null) this.#system.count(`metadata ${found === null ? 'lost' : 'kept'}`);
      const isOther = found !== null && found.of !== wanted?.of;
      if (isOther) this.#system.fail('METADATA', `${purchaseKey(order)} has that of ${found.of}`);
    }
  }

  /** Checks all promises once nothing is under way any more. */
  async checkAtRest(): Promise<void> {
    this.#checkRedis();
    this.#checkMysql();
    this.#checkMetadata();
    const { redis, repositories, transitions } = this.#system;
    const { findings } = await checkSale(SALE_ID, memoryCheckPorts(redis, repositories), this.#opLog);
    const [first] = findings;
    if (first !== undefined) this.#system.fail(first.invariant, first.detail);
    this.#checkAcceptedAfterLoss();
    await this.#reconcile();
    for (const [orderId, state] of this.#confirmed) {
      const order = repositories.allOrders.find((one) => one.orderId === orderId);
      const isSo = state === 'paid' ? order !== undefined && wasPaid(order.state) : order?.state === state;
      if (!isSo) this.#system.fail('CONFIRMED', `${orderId} was confirmed as ${state} and is ${order?.state}`);
    }
    for (const { paymentId, orderId, refund } of transitions.payments.values()) {
      const state = repositories.allOrders.find((one) => one.orderId === orderId)?.state;
      if (refund === null && (state === undefined || !wasPaid(state)))
        this.#system.fail('MONEY', `${paymentId} was taken, its order is ${state}`);
    }
    this.#checkEvents();
  }

  /** Checks that a server that lost data accepts no buyer until its repair. Later buyers keep their units. */
  #checkAcceptedAfterLoss(): void {
    for (const order of this.#system.repositories.allOrders) {
      const sinceMs = this.#acceptedTrySinceMs.get(purchaseKey(order)) ?? -Infinity;
      if (order.reason !== 'units_lost' || sinceMs <= this.#system.past.lostAtMs) continue;
      this.#system.fail('I3', `${purchaseKey(order)}: units_lost, and it was accepted after the loss`);
    }
  }

  /** Checks that reconcile, which compares in its own way, finds nothing. */
  async #reconcile(): Promise<void> {
    const { redis, repositories, deadLetters } = this.#system;
    const ports = {
      store: new MemoryReconcileStore(redis),
      repairs: new MemoryRepairStore(redis),
      repository: new MemoryReconcileRepository(repositories, deadLetters),
      clock: repositories.clock,
    };
    const report = await compareSale(repositories.saleOf(SALE_ID) as Sale, ports, AT_REST);
    if (report.outcome !== 'match') this.#system.fail('RECONCILE', JSON.stringify(report));
  }

  /** Checks that an event was published for every order and each of its states. */
  #checkEvents(): void {
    const { broker, repositories } = this.#system;
    const published = new Set<string>();
    for (const body of broker.published(TOPICS.orderEvent)) {
      const decoded = decodeOrderEvents(body);
      if (decoded.outcome !== 'decoded') return this.#system.fail('EVENT', decoded.detail);
      for (const { type, orders } of decoded.events) for (const orderId of orders) published.add(`${type} ${orderId}`);
    }
    for (const { orderId, state } of repositories.allOrders) {
      const expected = state === 'failed' ? ['order.failed'] : ['order.created'];
      if (wasPaid(state)) expected.push('order.paid');
      if (state !== 'failed' && state !== 'pending_payment') expected.push(`order.${state}`);
      for (const type of expected) {
        if (!published.has(`${type} ${orderId}`))
          this.#system.fail('EVENT', `${type} of ${orderId} was never published`);
      }
    }
  }

  /** Whether an accepted purchase may find no units, because Redis has lost data. */
  get #mayHaveLostData(): boolean {
    return this.#system.past.lostWrites > 0;
  }

  #mayFailFor(reason: string): boolean {
    if (GIVEN_UP.includes(reason)) return true;
    return reason === 'units_lost' && this.#system.past.repairs > 0;
  }

  /** Also looks in the earlier bucket of the buyer, because of reshards. */
  #hasEntry(userId: string, key: string): boolean {
    const { redis, repositories } = this.#system;
    const homes = homesEver(userId, (repositories.saleOf(SALE_ID) as Sale).buckets);
    return homes.some((bucket) => redis.bucket({ saleId: SALE_ID, bucket }).requests.has(key));
  }
}

const wordOf = (value: unknown): string => (value as { outcome: string }).outcome;
const isAbort = (word: string): boolean => word === 'aborted' || word === 'refused';
