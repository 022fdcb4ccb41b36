import { OperationalError } from '../../../src/core/errors.js';
import type { Metadata } from '../../../src/core/metadata.js';
import {
  isLive,
  NO_CURRENCY,
  type FailureReason,
  type Order,
  type OrderState,
  type ShownOrder,
} from '../../../src/core/order.js';
import { mintedAtMs } from '../../../src/core/order-id.js';
import { purchaseKey, type PurchaseName } from '../../../src/core/purchase.js';
import {
  isAsSeen,
  SALE_TRANSITIONS,
  saleAction,
  type NewSale,
  type Sale,
  type SaleState,
  type SeenSale,
} from '../../../src/core/sale.js';
import type { AuditEntry } from '../../../src/core/ports/audit-log.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type {
  NewOrder,
  ExpiredOrders,
  OrderRepository,
  SaleTerms,
  WriteOutcome,
  WritePlan,
} from '../../../src/core/ports/order-repository.js';
import {
  type CalendarEntry,
  type RetirementRepository,
  SYSTEM_ACTOR,
  type SaleFilter,
  type SaleRepository,
} from '../../../src/core/ports/sale-repository.js';
import type { Release } from '../../../src/core/ports/batch-store.js';
import { ManualClock } from './manual-clock.js';
import { MemoryOutbox, type StoredRow } from './memory-outbox.js';

/** Faults that a test can inject, each for the next call of its kind. With `…_reply_lost` the change is still made. */
export type RepositoryFault = 'write_fails' | 'write_again' | 'write_reply_lost' | 'read_fails';

const ID_MAX = 64;
const USER_ID_MAX = 128;

/**
 * MySQL with its sales, orders and outbox in memory: the unique keys, the guard and the outcomes of the real
 * repositories, on an injected clock. A write checks everything before it changes anything, so it is atomic.
 */
export class MemoryRepositories implements OrderRepository, SaleRepository, RetirementRepository {
  readonly clock: Clock;
  readonly outbox: MemoryOutbox;
  /** Buyers whose orders are refused, as by a constraint. Their rows in state `failed` are accepted. */
  readonly refusedBuyers = new Set<string>();
  /** The audit log of sales, oldest entry first. */
  readonly audited: AuditEntry[] = [];
  readonly #sales = new Map<string, Sale>();
  readonly #closedAtMs = new Map<string, number>();
  readonly #forgotten = new Set<string>();
  #orders = new Map<string, Order>();
  readonly #metadata = new Map<string, Metadata>();
  readonly #faults: RepositoryFault[] = [];
  #nextSaleId = 1;

  constructor(options: { readonly clock?: Clock } = {}) {
    this.clock = options.clock ?? new ManualClock();
    this.outbox = new MemoryOutbox(this.clock);
  }

  /** Injects faults for the next call of each kind. Several faults of one kind hit successive calls. */
  breakNext(...faults: RepositoryFault[]): void {
    this.#faults.push(...faults);
  }

  get allOrders(): readonly Order[] {
    return [...this.#orders.values()];
  }

  get outboxRows(): readonly StoredRow[] {
    return this.outbox.rows;
  }

  /** Inserts or replaces a sale. */
  putSale(sale: Sale): void {
    this.#sales.set(sale.saleId, sale);
  }

  removeSale(saleId: string): void {
    this.#sales.delete(saleId);
  }

  saleOf(saleId: string): Sale | undefined {
    return this.#sales.get(saleId);
  }

  /** Replaces an order. */
  putOrder(order: Order): void {
    this.#orders.set(order.orderId, order);
  }

  /** Ends a live order as a cancellation or an expiry would, and lowers `sold` at the same moment. */
  endOrder(orderId: string, state: Extract<OrderState, 'cancelled' | 'expired' | 'returned'>): void {
    const order = this.#orders.get(orderId);
    const sale = this.#sales.get(order?.saleId ?? '');
    if (order === undefined || sale === undefined || !isLive(order.state)) throw new Error(`no live order ${orderId}`);
    this.#orders.set(orderId, { ...order, state });
    this.putSale({ ...sale, sold: sale.sold - order.quantity });
  }

  /** Deletes the row as if it had never been counted, as after restoring an older backup. */
  loseOrder(orderId: string): void {
    const order = this.#orders.get(orderId);
    const sale = this.#sales.get(order?.saleId ?? '');
    if (order === undefined || sale === undefined) throw new Error(`no order ${orderId}`);
    this.#orders.delete(orderId);
    if (isLive(order.state)) this.putSale({ ...sale, sold: sale.sold - order.quantity });
  }

  async termsOf(saleIds: readonly string[]): Promise<Map<string, SaleTerms>> {
    this.#failOn('read_fails');
    const known = saleIds.map((saleId) => this.#sales.get(saleId)).filter((sale) => sale !== undefined);
    return new Map(
      known.map(({ saleId, epoch, priceCents, limitPerBuyer, paymentWindowMs, retiredAtMs }) => [
        saleId,
        { saleId, epoch, priceCents, limitPerBuyer, paymentWindowMs, retired: retiredAtMs !== null },
      ]),
    );
  }

  async write(requested: WritePlan): Promise<WriteOutcome> {
    this.#failOn('write_fails');
    if (this.#isBroken('write_again')) return { outcome: 'again' };
    const refused = new Set(requested.orders.filter((order) => this.#isRefused(order)).map(({ orderId }) => orderId));
    if (refused.size > 0 && requested.singleOut !== true) return { outcome: 'value_refused' };
    const orders = requested.orders.map((order): NewOrder => {
      return refused.has(order.orderId) ? { ...order, failure: 'refused_by_database' } : order;
    });
    if (refused.size > 0 && (refused.size === orders.length || orders.some((order) => this.#isRefused(order)))) {
      throw new OperationalError('mysql', 'a value is refused', { retryable: false });
    }
    const plan = { ...requested, orders };
    const taken = this.#takenKey(plan);
    if (taken !== null) return { outcome: taken };

    const surplus = this.#surplusOf(plan);
    const isFailed = (order: NewOrder): boolean => order.failure !== null || surplus.has(order.orderId);
    const units = new Map<string, number>();
    for (const order of plan.orders) {
      const { saleId } = order.batch;
      units.set(saleId, (units.get(saleId) ?? 0) + (isFailed(order) ? 0 : order.purchase.quantity));
    }
    const oversold: string[] = [];
    // its row is locked, whether the sale sells or not
    for (const saleId of plan.oneByOne) units.set(saleId, units.get(saleId) ?? 0);
    for (const [saleId, sum] of units) {
      const sale = this.#sales.get(saleId);
      if (sale === undefined || sale.epoch !== plan.terms.get(saleId)?.epoch) return { outcome: 'epoch_changed' };
      if (sale.sold + sum > sale.stock) oversold.push(saleId);
    }
    if (oversold.length > 0) return { outcome: 'oversold', saleIds: oversold };

    for (const [saleId, sum] of units) {
      const sale = this.#sales.get(saleId) as Sale;
      this.putSale({ ...sale, sold: sale.sold + sum });
    }
    for (const order of plan.orders) {
      this.#orders.set(order.orderId, this.#rowOf(order, plan, surplus));
      const { metadata } = order.purchase;
      if (metadata !== undefined) this.#metadata.set(order.orderId, metadata);
    }
    this.#addOutboxRows(plan, surplus, isFailed);
    this.#failOn('write_reply_lost');
    return refused.size === 0 ? { outcome: 'written', surplus } : { outcome: 'written', surplus, refused };
  }

  async findByPurchases(saleId: string, purchases: readonly PurchaseName[]): Promise<Order[]> {
    this.#failOn('read_fails');
    const wanted = new Set(purchases.map(purchaseKey));
    return this.allOrders.filter((order) => order.saleId === saleId && wanted.has(purchaseKey(order)));
  }

  async writtenBatches(batchIds: readonly string[]): Promise<Set<string>> {
    this.#failOn('read_fails');
    const written = new Set(this.allOrders.map(({ batchId }) => batchId));
    return new Set(batchIds.filter((batchId) => written.has(batchId)));
  }

  async liveBuyers(saleId: string, userIds: readonly string[]): Promise<Set<string>> {
    this.#failOn('read_fails');
    const wanted = new Set(userIds);
    const live = this.allOrders.filter((order) => order.saleId === saleId && isLive(order.state));
    return new Set(live.map(({ userId }) => userId).filter((userId) => wanted.has(userId)));
  }

  async findOrder(orderId: string): Promise<ShownOrder | null> {
    this.#failOn('read_fails');
    const order = this.#orders.get(orderId);
    return order === undefined ? null : this.shown(order);
  }

  async countCancelled(saleId: string, userId: string): Promise<number> {
    this.#failOn('read_fails');
    const own = [...this.#orders.values()].filter((order) => order.saleId === saleId && order.userId === userId);
    return own.filter(({ state }) => state === 'cancelled').length;
  }

  async expiredOf(saleId: string, userIds: readonly string[]): Promise<Map<string, ExpiredOrders>> {
    this.#failOn('read_fails');
    const found = new Map<string, ExpiredOrders>();
    for (const order of this.#orders.values()) {
      const { state, userId, expiresAtMs } = order;
      if (state !== 'expired' || order.saleId !== saleId || !userIds.includes(userId)) continue;
      const { count, lastAgoMs } = found.get(userId) ?? { count: 0, lastAgoMs: Infinity };
      const agoMs = this.clock.nowMs() - Number(expiresAtMs);
      found.set(userId, { count: count + 1, lastAgoMs: Math.min(lastAgoMs, agoMs) });
    }
    return found;
  }

  shown(order: Order): ShownOrder {
    const currency = this.#sales.get(order.saleId)?.currency ?? NO_CURRENCY;
    return { ...order, currency, metadata: this.#metadata.get(order.orderId) ?? null };
  }

  /** Returns the metadata as in the outbox, or nothing if none of these orders has metadata. */
  metadataOf(orderIds: readonly string[]): { metadata?: Record<string, string> } {
    const noted = orderIds.flatMap((orderId) => {
      const metadata = this.#metadata.get(orderId);
      return metadata === undefined ? [] : [[orderId, JSON.stringify(metadata)] as const];
    });
    return noted.length === 0 ? {} : { metadata: Object.fromEntries(noted) };
  }

  async create(sale: NewSale, actor = SYSTEM_ACTOR): Promise<Sale> {
    const saleId = String(this.#nextSaleId++);
    const created: Sale = { ...sale, saleId, sold: 0, state: 'draft', epoch: 1, retiredAtMs: null };
    this.putSale(created);
    this.audited.push({ actor, action: 'sale.created', subject: `sale:${saleId}`, before: null, after: created });
    return created;
  }

  async createAll<W>(
    sales: readonly NewSale[],
    actor: string,
    check: (calendar: readonly CalendarEntry[]) => readonly W[],
  ): Promise<{ readonly created: readonly Sale[] } | { readonly wrong: readonly W[] }> {
    const wrong = check(this.#calendar(sales.map(({ sku }) => sku)));
    if (wrong.length > 0) return { wrong };
    const created: Sale[] = [];
    for (const sale of sales) created.push(await this.create(sale, actor));
    return { created };
  }

  async calendar(skus: readonly string[]): Promise<CalendarEntry[]> {
    return this.#calendar(skus);
  }

  #calendar(skus: readonly string[]): CalendarEntry[] {
    return [...this.#sales.values()]
      .filter(({ sku, state }) => skus.includes(sku) && state !== 'closed')
      .map(({ saleId, sku, opensAtMs, closesAtMs }) => ({ saleId, sku, opensAtMs, closesAtMs }));
  }

  get allSales(): readonly Sale[] {
    return [...this.#sales.values()];
  }

  async find(saleId: string): Promise<Sale | null> {
    this.#failOn('read_fails');
    return this.#sales.get(saleId) ?? null;
  }

  async newestId(): Promise<string> {
    this.#failOn('read_fails');
    return [...this.#sales.keys()].reduce((newest, id) => (BigInt(id) > BigInt(newest) ? id : newest), '0');
  }

  async list(filter: SaleFilter): Promise<Sale[]> {
    const {
      states,
      retired,
      sku,
      opensFromMs = -Infinity,
      opensToMs = Infinity,
      beforeId,
      max,
      order = 'newest',
    } = filter;
    this.#failOn('read_fails');
    const found = [...this.#sales.values()]
      .filter(({ state }) => states === undefined || states.includes(state))
      .filter(({ retiredAtMs }) => retired === undefined || retiredAtMs === null)
      .filter((sale) => sku === undefined || sale.sku === sku)
      .filter(({ opensAtMs }) => opensAtMs >= opensFromMs && opensAtMs < opensToMs)
      .filter(({ saleId }) => beforeId === undefined || BigInt(saleId) < BigInt(beforeId));
    const newer = (a: Sale, b: Sale): number => Number(BigInt(b.saleId) - BigInt(a.saleId));
    const endsLater = (a: Sale, b: Sale): number => b.closesAtMs - a.closesAtMs || newer(a, b);
    return found.sort(order === 'newest' ? newer : endsLater).slice(0, max);
  }

  async move(saleId: string, to: SaleState, actor = SYSTEM_ACTOR, seen?: SeenSale): ReturnType<SaleRepository['move']> {
    const sale = this.#sales.get(saleId);
    if (sale === undefined) return null;
    const { state } = sale;
    if (seen !== undefined && !isAsSeen(sale, seen)) return { sale, outcome: 'refused' };
    if (state === to) return { sale, outcome: 'unchanged' };
    if (!SALE_TRANSITIONS[state].includes(to)) return { sale, outcome: 'refused' };
    this.putSale({ ...sale, state: to });
    if (to === 'closed') this.#closedAtMs.set(saleId, this.clock.nowMs());
    const entry = { actor, action: saleAction(state, to), subject: `sale:${saleId}` };
    this.audited.push({ ...entry, before: { state }, after: { state: to } });
    return { sale: { ...sale, state: to }, outcome: 'moved' };
  }

  async due(afterMs: number, max: number): Promise<Sale[]> {
    this.#failOn('read_fails');
    const overSince = (sale: Sale): number =>
      Math.min(sale.closesAtMs, this.#closedAtMs.get(sale.saleId) ?? sale.closesAtMs);
    return this.#closed((sale) => sale.retiredAtMs === null && overSince(sale) <= this.clock.nowMs() - afterMs, max);
  }

  async retire({ saleId, epoch }: Pick<Sale, 'saleId' | 'epoch'>, actor: string): Promise<boolean> {
    const sale = this.#sales.get(saleId);
    if (sale?.state !== 'closed' || sale.retiredAtMs !== null || sale.epoch !== epoch) return false;
    this.putSale({ ...sale, retiredAtMs: this.clock.nowMs() });
    this.audited.push({ actor, action: 'sale.retired', subject: `sale:${saleId}`, before: { epoch }, after: null });
    return true;
  }

  async toForget(afterMs: number, max: number): Promise<Sale[]> {
    const isDue = ({ saleId, retiredAtMs }: Sale): boolean =>
      retiredAtMs !== null && !this.#forgotten.has(saleId) && retiredAtMs <= this.clock.nowMs() - afterMs;
    return this.#closed(isDue, max);
  }

  async forgotten(saleId: string): Promise<void> {
    this.#forgotten.add(saleId);
  }

  #closed(isWanted: (sale: Sale) => boolean, max: number): Sale[] {
    const found = [...this.#sales.values()].filter((sale) => sale.state === 'closed' && isWanted(sale));
    return found.sort((a, b) => a.closesAtMs - b.closesAtMs).slice(0, max);
  }

  #takenKey({ orders, terms }: WritePlan): 'order_id_taken' | 'row_exists' | null {
    const live = this.allOrders;
    const requests = new Set(live.map((order) => `${order.saleId}/${purchaseKey(order)}`));
    const active = new Set(live.filter(({ state }) => isLive(state)).map((o) => `${o.saleId}/${o.userId}`));
    const ids = new Set(this.#orders.keys());
    for (const { orderId, batch, purchase, failure } of orders) {
      const request = `${batch.saleId}/${purchaseKey(purchase)}`;
      const buyer = `${batch.saleId}/${purchase.userId}`;
      const onePerBuyer = failure === null && terms.get(batch.saleId)?.limitPerBuyer === 1;
      if (ids.has(orderId)) return 'order_id_taken';
      if (requests.has(request) || (onePerBuyer && active.has(buyer))) return 'row_exists';
      ids.add(orderId);
      requests.add(request);
      if (onePerBuyer) active.add(buyer);
    }
    return null;
  }

  #isRefused({ purchase: { userId, requestId }, failure }: NewOrder): boolean {
    if (requestId.length > ID_MAX || userId.length > USER_ID_MAX) return true;
    return failure === null && this.refusedBuyers.has(userId);
  }

  #surplusOf(plan: WritePlan): Set<string> {
    const surplus = new Set<string>();
    const left = new Map([...this.#sales.values()].map((sale) => [sale.saleId, sale.stock - sale.sold]));
    for (const { orderId, batch, purchase, failure } of plan.orders) {
      if (failure !== null || !plan.oneByOne.has(batch.saleId)) continue;
      const units = left.get(batch.saleId) ?? 0;
      if (purchase.quantity > units) surplus.add(orderId);
      else left.set(batch.saleId, units - purchase.quantity);
    }
    return surplus;
  }

  #rowOf({ orderId, batch, purchase, failure }: NewOrder, plan: WritePlan, surplus: ReadonlySet<string>): Order {
    const reason: FailureReason | null = surplus.has(orderId) ? 'oversold_guard' : failure;
    const { userId, requestId, quantity } = purchase;
    const createdAtMs = this.clock.nowMs();
    return {
      orderId,
      userId,
      saleId: batch.saleId,
      requestId,
      batchId: batch.batchId,
      quantity,
      reason,
      createdAtMs,
      amountCents: quantity * (plan.terms.get(batch.saleId)?.priceCents ?? 0),
      state: reason === null ? 'pending_payment' : 'failed',
      expiresAtMs: reason === null ? Math.max(createdAtMs, mintedAtMs(orderId)) + windowOf(plan, batch.saleId) : null,
      paidAtMs: null,
      refundedCents: 0,
    };
  }

  #addOutboxRows(plan: WritePlan, surplus: ReadonlySet<string>, isFailed: (order: NewOrder) => boolean): void {
    for (const { batchId, saleId, traceparent } of new Set(plan.orders.map(({ batch }) => batch))) {
      const ofBatch = plan.orders.filter(({ batch }) => batch.batchId === batchId);
      const idsOf = (failed: boolean): string[] =>
        ofBatch.filter((order) => isFailed(order) === failed).map(({ orderId }) => orderId);
      const metadata = this.metadataOf(ofBatch.map(({ orderId }) => orderId));
      const payload = {
        batchId,
        saleId,
        orders: idsOf(false),
        failed: idsOf(true),
        paymentWindowMs: windowOf(plan, saleId),
        ...metadata,
      };
      const named = traceparent === '' ? payload : { ...payload, traceparent };
      this.outbox.add('batch_recorded', batchId, named);
    }
    const releases: Release[] = [...plan.releases];
    for (const { orderId, batch, purchase } of plan.orders.filter(isFailed)) {
      const { saleId, bucket, batchId } = batch;
      const { userId, requestId } = purchase;
      releases.push({ saleId, bucket, userId, requestId, orderId, batchId, withUnits: !surplus.has(orderId) });
    }
    if (releases.length > 0) this.outbox.add('release', releases[0]?.batchId ?? '', releases);
  }

  #isBroken(fault: RepositoryFault): boolean {
    const at = this.#faults.indexOf(fault);
    if (at >= 0) this.#faults.splice(at, 1);
    return at >= 0;
  }

  #failOn(fault: RepositoryFault): void {
    if (this.#isBroken(fault)) throw new OperationalError('mysql', `fault of the test: ${fault}`, { retryable: true });
  }
}

const windowOf = ({ terms, paymentWindowMs }: WritePlan, saleId: string): number =>
  terms.get(saleId)?.paymentWindowMs ?? paymentWindowMs;
