import { decodeOrderEvents } from '../../src/core/order-event.js';
import { isLive, mayMove, type OrderState } from '../../src/core/order.js';
import type { PurchaseOutcome, PurchaseStatus } from '../../src/core/outcome.js';
import { type Purchase, purchaseKey } from '../../src/core/purchase.js';
import { type Sale } from '../../src/core/sale.js';
import { homesEver, unitsInTransit } from '../../src/core/bucket.js';
import { TOPICS } from '../../src/core/topics.js';
import { checkSale, type ClientOutcome } from '../invariants/check-sale.js';
import { compareSale } from '../../src/recovery/reconcile/compare-sale.js';
import { MemoryReconcileRepository, MemoryReconcileStore } from '../helpers/memory/memory-reconcile.js';
import { memoryCheckPorts } from '../helpers/memory/memory-check-ports.js';
import type { Call } from './call-name.js';
import { SALE_ID } from './shape.js';
import type { Site } from './simulated-system.js';

/** Nothing is too young to be judged, and no marker so old that it may go. */
const AT_REST = { safeAgeMs: 0, outboxAgeMs: 0, markerAgeMs: Infinity, waitingMaxMs: 0, readsMax: 1000 };

type BatchWord = 'deducted' | 'aborted';

/** Words that mean: you get nothing. Nobody who has heard a yes may hear one of them for the same key and quantity. */
const NO_UNITS: readonly string[] = ['sold_out', 'not_enough_left', 'limit_reached', 'not_open', 'closed', 'paused'];

/** Why a purchase may end as failed while Redis loses nothing: somebody gave it up. */
const GIVEN_UP: readonly string[] = ['discarded', 'compensation_failed'];

/** A purchase that its client has given up may still take units for so long. */
const GONE_MAX_MS = 60_000;

/** The promises of docs/architecture.md, looked at whenever something has happened, and when all is at rest. */
export class Promises {
  readonly #site: Site;
  readonly #opLog = new Map<string, ClientOutcome>();
  /** `userId/requestId*quantity` → time of its first yes. */
  readonly #yesAtMs = new Map<string, number>();
  /** `userId/requestId` → when the try began that was the first to be answered yes. */
  readonly #yesSinceMs = new Map<string, number>();
  /** When units went back for the last time. */
  #givenBackMs = -Infinity;
  /** Batches that have seen a later epoch. */
  readonly #outlived = new Set<string>();
  readonly #batchWords = new Map<string, BatchWord>();
  readonly #states = new Map<string, OrderState>();
  /** Units in all buckets and between them, since when. */
  readonly #unitsLeft: { readonly fromMs: number; readonly units: number }[] = [];
  /** `userId/requestId` → its largest quantity, and when it was pressed for the last time. */
  readonly #pressed = new Map<string, { readonly quantity: number; readonly atMs: number }>();
  readonly #told = new Map<string, OrderState>();

  constructor(site: Site) {
    this.#site = site;
    this.#lookAtStore();
  }

  /** A buyer begins a try. */
  pressed({ userId, requestId, quantity }: Purchase): void {
    const key = purchaseKey({ userId, requestId });
    const most = Math.max(quantity, this.#pressed.get(key)?.quantity ?? 0);
    this.#pressed.set(key, { quantity: most, atMs: this.#site.scheduler.nowMs });
  }

  /** What a buyer hears of one try that began at `sinceMs`; null: nothing. */
  heard({ userId, requestId, quantity }: Purchase, answer: PurchaseOutcome | null, sinceMs: number): void {
    const key = purchaseKey({ userId, requestId });
    const word = answer?.outcome ?? 'outcome_unknown';
    const heard: ClientOutcome =
      word === 'accepted' || word === 'replayed' ? 'ok' : word === 'outcome_unknown' ? 'unknown' : 'fail';
    if (word === 'sold_out' || word === 'not_enough_left') this.#lookAtSoldOut(key, quantity, sinceMs);
    const before = this.#opLog.get(key) ?? heard;
    this.#opLog.set(key, before === 'ok' || heard === 'ok' ? 'ok' : before === heard ? heard : 'unknown');
    const wish = `${key}*${quantity}`;
    const yesAtMs = this.#yesAtMs.get(wish);
    if (heard === 'ok') {
      const isOver = answer?.outcome === 'replayed' && answer.entry.state === 'released'; // news, and no promise
      if (!isOver && !this.#yesSinceMs.has(key)) this.#yesSinceMs.set(key, sinceMs);
      if (!this.#mayHaveForgotten && !this.#isLetIn(userId, key)) this.#site.fail('I3', `${key}: a yes without units`);
      if (yesAtMs === undefined) this.#yesAtMs.set(wish, this.#site.scheduler.nowMs);
    }
    if (yesAtMs !== undefined && yesAtMs < sinceMs && NO_UNITS.includes(word) && !this.#isExcused(word, sinceMs)) {
      this.#site.fail('I3', `${key}: ${word} after a yes`);
    }
  }

  /**
   * Nobody hears `sold_out` while there are units all the time since he pressed: enough for him and for all others whose
   * purchases may be under way. A flag may be as old as its life.
   */
  #lookAtSoldOut(key: string, quantity: number, sinceMs: number): void {
    if (this.#site.past.restarts > 0) return; // a sale that is being repaired has no units that could be counted
    const fromMs = sinceMs - this.#site.shape.soldOutLifeMs;
    const since = this.#unitsLeft.findLastIndex((one) => one.fromMs < fromMs);
    const units = Math.min(...this.#unitsLeft.slice(Math.max(0, since)).map((one) => one.units));
    let others = 0;
    for (const [other, { quantity: wanted, atMs }] of this.#pressed) {
      if (other !== key && atMs + GONE_MAX_MS >= fromMs) others += wanted;
    }
    if (units >= quantity + others) this.#site.fail('SOLD_OUT', `${key} hears sold_out, and ${units} units are left`);
  }

  /** A sold-out flag knows who won until it was armed. Units that went back since may have been won in its life. */
  #isExcused(word: string, sinceMs: number): boolean {
    if (this.#mayHaveForgotten) return true; // the units of a late batch may be gone, and its buyer be refused meanwhile
    return word === 'sold_out' && this.#givenBackMs >= sinceMs - this.#site.shape.soldOutLifeMs;
  }

  /** What a buyer sees who asks how his purchase stands. He asks only after a yes. */
  seen(who: Omit<Purchase, 'quantity'>, { status }: PurchaseStatus): void {
    if (status === 'not_found' && !this.#mayHaveForgotten)
      this.#site.fail('I3', `${purchaseKey(who)}: not found after a yes`);
  }

  /** A buyer was told that his order is paid or cancelled. */
  ended(orderId: string, state: 'paid' | 'cancelled'): void {
    this.#told.set(orderId, state);
  }

  /** After every call that acted. */
  look(call: string, args: readonly unknown[], value: unknown): void {
    switch (call) {
      case 'reacquire' satisfies Call:
      case 'swap' satisfies Call:
        return this.#lookAtStore();
      case 'deduct' satisfies Call:
      case 'resolve' satisfies Call:
        this.#noteWord(args[0] as { batchId: string }, typeof value === 'string' ? value : wordOf(value));
        return this.#lookAtStore();
      case 'release' satisfies Call:
        if ((value as string[]).includes('released')) this.#givenBackMs = this.#site.scheduler.nowMs;
        return this.#lookAtStore();
      case 'markRecorded' satisfies Call:
      case 'transferOut' satisfies Call:
      case 'transferIn' satisfies Call:
      case 'endTransfer' satisfies Call:
        return this.#lookAtStore();
      case 'commit' satisfies Call:
      case 'rollback' satisfies Call:
        return this.lookAtEnd(call, args[0] as { batchId: string });
      case 'write' satisfies Call:
      case 'pay' satisfies Call:
      case 'cancel' satisfies Call:
      case 'expire' satisfies Call:
      case 'expireDue' satisfies Call:
        return this.#lookAtRepository();
      default:
    }
  }

  /** The first writer of a marker wins, for ever. */
  #noteWord({ batchId }: { batchId: string }, word: string): void {
    if (word === 'outlived' || word === 'claimed') this.#outlived.add(batchId);
    const now: BatchWord | null =
      word === 'deducted' || word === 'already_deducted' ? 'deducted' : isAbort(word) ? 'aborted' : null;
    if (now === null) return;
    const before = this.#batchWords.get(batchId) ?? now;
    if (before !== now) this.#site.fail('MARKER', `batch ${batchId.slice(0, 4)} was ${before} and is ${now}`);
    this.#batchWords.set(batchId, now);
  }

  /** A half message is committed where its batch is deducted, and rolled back where it never will be (rule 2). */
  lookAtEnd(end: 'commit' | 'rollback', { batchId }: { batchId: string }): void {
    const word = this.#batchWords.get(batchId);
    if (end === 'commit' && this.#outlived.has(batchId)) return; // its marker may be lost (rule 11)
    if (end === 'rollback' && word !== 'deducted' && this.#site.past.repairs > 0) return; // of another epoch
    if (word !== (end === 'commit' ? 'deducted' : 'aborted')) {
      this.#site.fail('MARKER', `${end} of batch ${batchId.slice(0, 4)}, which is ${word ?? 'not decided'}`);
    }
  }

  /** I1 and I4 on the side of the ledger: every unit is left, between two buckets, held or ordered, at any moment. */
  #lookAtStore(): void {
    const { store, shape, books } = this.#site;
    const { stock, limitPerBuyer } = shape.sale;
    const { buckets } = books.saleOf(SALE_ID) as Sale;
    const all = Array.from({ length: buckets }, (_, bucket) => store.bucket({ saleId: SALE_ID, bucket }));
    let left = unitsInTransit(all.map((bucket) => bucket.transfers()));
    let units = 0;
    for (const bucket of all) {
      left += bucket.unitsLeft;
      for (const entry of bucket.requests.values()) if (entry.state !== 'released') units += entry.quantity;
      if (bucket.unitsLeft < 0) this.#site.fail('I1', `${bucket.unitsLeft} units left in Redis`);
      for (const [userId, held] of bucket.unitsByBuyer()) {
        if (held > limitPerBuyer) this.#site.fail('I2', `${userId} holds ${held} units in Redis`);
      }
    }
    // While one bucket is rebuilt and another is not, units stand in both books, or in none.
    const [epoch = 0, ...others] = all.map(({ sale }) => sale?.epoch ?? 0);
    if (epoch === 0 || others.some((other) => other !== epoch)) return;
    if (this.#unitsLeft.at(-1)?.units !== left)
      this.#unitsLeft.push({ fromMs: this.#site.scheduler.nowMs, units: left });
    if (left + units !== stock) this.#site.fail('I4', `Redis has ${left + units} units of ${stock}`);
  }

  /** I1 and I2 on the side of the book; and while Redis loses nothing, no purchase fails but those that somebody gave up. */
  #lookAtRepository(): void {
    const { books, shape } = this.#site;
    const { stock, limitPerBuyer } = shape.sale;
    const byBuyer = new Map<string, number>();
    const keys = new Set<string>();
    let live = 0;
    for (const order of books.allOrders) {
      const key = purchaseKey(order);
      if (keys.has(key)) this.#site.fail('I2', `${key} has two rows`);
      keys.add(key);
      if (order.reason !== null && !this.#mayFailFor(order.reason)) this.#site.fail('I3', `${key}: ${order.reason}`);
      const before = this.#states.get(order.orderId) ?? order.state;
      if (before !== order.state && !mayMove(before, order.state)) {
        this.#site.fail('ARROW', `${key} went from ${before} to ${order.state}`);
      }
      this.#states.set(order.orderId, order.state);
      if (!isLive(order.state)) continue;
      live += order.quantity;
      byBuyer.set(order.userId, (byBuyer.get(order.userId) ?? 0) + order.quantity);
    }
    const sold = books.saleOf(SALE_ID)?.sold ?? 0;
    if (sold > stock) this.#site.fail('I1', `sold ${sold} of ${stock}`);
    if (sold !== live) this.#site.fail('I1', `sold says ${sold}, live orders have ${live} units`);
    for (const [userId, units] of byBuyer) {
      if (units > limitPerBuyer) this.#site.fail('I2', `${userId} has ${units} live units`);
    }
  }

  /** Everything, once nothing is under way any more. */
  async lookAtRest(): Promise<void> {
    this.#lookAtStore();
    this.#lookAtRepository();
    const { store, books, moves } = this.#site;
    const { findings } = await checkSale(SALE_ID, memoryCheckPorts(store, books), this.#opLog);
    const [first] = findings;
    if (first !== undefined) this.#site.fail(first.invariant, first.detail);
    this.#lookAtLateYes();
    await this.#reconcile();
    for (const [orderId, state] of this.#told) {
      const order = books.allOrders.find((one) => one.orderId === orderId);
      if (order?.state !== state) this.#site.fail('TOLD', `${orderId} was told ${state} and is ${order?.state}`);
    }
    for (const { paymentId, orderId, refund } of moves.payments.values()) {
      const state = books.allOrders.find((one) => one.orderId === orderId)?.state;
      if (refund === null && state !== 'paid')
        this.#site.fail('MONEY', `${paymentId} was taken, its order is ${state}`);
    }
    this.#lookAtNotifications();
  }

  /** A server that has lost data lets nobody in before it is repaired: whoever it accepts afterwards keeps his units. */
  #lookAtLateYes(): void {
    for (const order of this.#site.books.allOrders) {
      const sinceMs = this.#yesSinceMs.get(purchaseKey(order)) ?? -Infinity;
      if (order.reason !== 'units_lost' || sinceMs <= this.#site.past.lostAtMs) continue;
      this.#site.fail('I3', `${purchaseKey(order)}: units_lost, and it was accepted after the loss`);
    }
  }

  /** Reconcile comes to the same end by a way of its own. */
  async #reconcile(): Promise<void> {
    const { store, books, deadLetters } = this.#site;
    const ports = {
      store: new MemoryReconcileStore(store),
      repository: new MemoryReconcileRepository(books, deadLetters),
    };
    const report = await compareSale(books.saleOf(SALE_ID) as Sale, ports, AT_REST);
    if (report.outcome !== 'match') this.#site.fail('RECONCILE', JSON.stringify(report));
  }

  /** What a row promised was told: every order, and every move of one. */
  #lookAtNotifications(): void {
    const { broker, books } = this.#site;
    const told = new Set<string>();
    for (const body of broker.published(TOPICS.orderEvent)) {
      const decoded = decodeOrderEvents(body);
      if (decoded.outcome !== 'decoded') return this.#site.fail('NEWS', decoded.detail);
      for (const { type, orders } of decoded.events) for (const orderId of orders) told.add(`${type} ${orderId}`);
    }
    for (const { orderId, state } of books.allOrders) {
      const expected = state === 'failed' ? ['order.failed'] : ['order.created'];
      if (state !== 'failed' && state !== 'pending_payment') expected.push(`order.${state}`);
      for (const type of expected) {
        if (!told.has(`${type} ${orderId}`)) this.#site.fail('NEWS', `nobody was told of ${type} ${orderId}`);
      }
    }
  }

  /** Redis has lost something: who heard a yes may have to wait for a late batch, and it may come too late for its units. */
  get #mayHaveForgotten(): boolean {
    return this.#site.past.lostWrites > 0;
  }

  #mayFailFor(reason: string): boolean {
    if (GIVEN_UP.includes(reason)) return true;
    return reason === 'units_lost' && this.#site.past.repairs > 0;
  }

  /** While the sale is being scattered, his bucket may be the one that was his before. */
  #isLetIn(userId: string, key: string): boolean {
    const { store, books } = this.#site;
    const homes = homesEver(userId, (books.saleOf(SALE_ID) as Sale).buckets);
    return homes.some((bucket) => store.bucket({ saleId: SALE_ID, bucket }).requests.has(key));
  }
}

const wordOf = (value: unknown): string => (value as { outcome: string }).outcome;
const isAbort = (word: string): boolean => word === 'aborted' || word === 'refused';
