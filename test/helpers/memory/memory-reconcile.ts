import type { RequestEntry } from '../../../src/core/outcome.js';
import { purchaseKey, type PurchaseName } from '../../../src/core/purchase.js';
import type { Sale } from '../../../src/core/sale.js';
import type {
  AgedOrder,
  OrderCursor,
  OrderPage,
  ReconcileRepository,
  StuckLimits,
  StuckRow,
} from '../../../src/core/ports/reconcile-repository.js';
import type {
  Adjusted,
  AdjustedUnits,
  BucketUnits,
  StoredBatch,
  StoredRequest,
  PendingAge,
  ReconcileStore,
} from '../../../src/core/ports/reconcile-store.js';
import type { BucketRef } from '../../../src/core/bucket.js';
import type { MemoryRepositories } from './memory-repositories.js';
import type { MemoryDeadLetters } from './memory-dead-letters.js';
import type { MemoryRedis } from './memory-redis.js';

/** Reads a Redis in memory for reconcile. */
export class MemoryReconcileStore implements ReconcileStore {
  /** Runs before entries are read again, to let a test change state between two reads. */
  beforeEntriesRead: () => void | Promise<void> = () => undefined;
  /** Runs before units are summed. May throw. */
  beforeUnitsRead: () => void | Promise<void> = () => undefined;
  /** Error of the buyers' count in units, as after a manual change. */
  buyersCountError = 0;
  readonly #store: MemoryRedis;

  constructor(store: MemoryRedis) {
    this.#store = store;
  }

  async *requests(ref: BucketRef): AsyncGenerator<StoredRequest[]> {
    const all = [...this.#store.bucket(ref).requests];
    if (all.length > 0) yield all;
  }

  async entriesOf(ref: BucketRef, keys: readonly string[]): Promise<(RequestEntry | null)[]> {
    await this.beforeEntriesRead();
    return keys.map((key) => this.#store.bucket(ref).requests.get(key) ?? null);
  }

  async batch(ref: BucketRef, batchId: string): Promise<StoredBatch> {
    const bucket = this.#store.bucket(ref);
    const sinceMs = bucket.pending.get(batchId);
    const marker = bucket.marker(batchId, this.#now);
    return {
      pendingMs: sinceMs === undefined ? null : this.#now - sinceMs,
      marker: marker?.kind ?? null,
      body: marker === null || marker.kind === 'aborted' ? null : marker.body,
    };
  }

  async pendingAmong(ref: BucketRef, batchIds: readonly string[]): Promise<Map<string, PendingAge>> {
    const found = new Map<string, PendingAge>();
    for (const batchId of batchIds) {
      const { pendingMs, body } = await this.batch(ref, batchId);
      if (pendingMs !== null) found.set(batchId, { pendingMs, hasBody: body !== null });
    }
    return found;
  }

  async units(ref: BucketRef, youngMs: number): Promise<BucketUnits | null> {
    await this.beforeUnitsRead();
    const bucket = this.#store.bucket(ref);
    if (bucket.sale === null) return null;
    const since = [...bucket.pending.values()];
    const unitsOfBuyers = [...bucket.unitsByBuyer().values()].reduce((sum, units) => sum + units, 0);
    return {
      unitsLeft: bucket.unitsLeft,
      unitsOfBuyers: unitsOfBuyers + this.buyersCountError,
      moved: false,
      pending: since.length,
      youngPending: since.filter((sinceMs) => sinceMs > this.#now - youngMs).length,
      transfers: bucket.transfers(this.#now),
    };
  }

  async adjust(ref: BucketRef, { read, wanted, epoch }: AdjustedUnits): Promise<Adjusted> {
    const bucket = this.#store.bucket(ref);
    if (bucket.sale === null) return 'not_warmed';
    if (bucket.sale.state === 'open' || !this.#store.isSure(bucket.sale)) return 'selling';
    if (bucket.unitsLeft !== read || bucket.sale.epoch !== epoch) return 'moved';
    bucket.unitsLeft = wanted;
    return 'adjusted';
  }

  async recordedMarkers(ref: BucketRef, batchIds: readonly string[]): Promise<string[]> {
    const bucket = this.#store.bucket(ref);
    return batchIds.filter((batchId) => {
      const marker = bucket.marker(batchId, this.#now);
      return marker !== null && marker.kind !== 'aborted' && marker.body === null && !bucket.pending.has(batchId);
    });
  }

  async removeMarkers(ref: BucketRef, batchIds: readonly string[]): Promise<number> {
    const { markers } = this.#store.bucket(ref);
    return batchIds.filter((batchId) => markers.delete(batchId)).length;
  }

  get #now(): number {
    return this.#store.clock.nowMs();
  }
}

const ROWS_PER_PAGE = 10;

/** Reads a MySQL in memory for reconcile. The age of a row counts from its insert, not from its last change. */
export class MemoryReconcileRepository implements ReconcileRepository {
  readonly #repositories: MemoryRepositories;
  readonly #deadLetters: MemoryDeadLetters;
  readonly #unlisted = new Set<string>();

  constructor(repositories: MemoryRepositories, deadLetters: MemoryDeadLetters) {
    this.#repositories = repositories;
    this.#deadLetters = deadLetters;
  }

  findSale(saleId: string): Promise<Sale | null> {
    return this.#repositories.find(saleId);
  }

  async rowsOf(saleId: string, purchases: readonly PurchaseName[]): Promise<AgedOrder[]> {
    const wanted = new Set(purchases.map(purchaseKey));
    return this.#rows(saleId).filter((row) => wanted.has(purchaseKey(row)));
  }

  async orderPage(saleId: string, from: OrderCursor | null): Promise<OrderPage> {
    const after = BigInt(from?.readTo ?? 0);
    const listed = this.#rows(saleId).filter(({ orderId }) => !this.#unlisted.has(orderId) && BigInt(orderId) > after);
    const rows = listed.sort((a, b) => Number(BigInt(a.orderId) - BigInt(b.orderId))).slice(0, ROWS_PER_PAGE);
    const last = rows.at(-1)?.orderId ?? '0';
    return { rows, next: listed.length > rows.length ? { afterFirst: last, readTo: last } : null };
  }

  async *unlistedOrders({ saleId }: Sale): AsyncGenerator<AgedOrder[]> {
    const rows = this.#rows(saleId).filter(({ orderId }) => this.#unlisted.has(orderId));
    if (rows.length > 0) yield rows;
  }

  /** Removes the note of this order that its writer left. */
  unlist(orderId: string): void {
    this.#unlisted.add(orderId);
  }

  async undoneReleases(saleId: string): Promise<number> {
    const undone = this.#undone(saleId).filter(({ kind }) => kind === 'release');
    return undone.length;
  }

  async isRestocked({ saleId, stock }: Pick<Sale, 'saleId' | 'stock'>): Promise<boolean> {
    return this.#repositories.saleOf(saleId)?.stock !== stock;
  }

  async parkedBatches(batchIds: readonly string[]): Promise<Set<string>> {
    const parked = this.#deadLetters.deadLetters
      .filter(({ state }) => state === 'parked')
      .map(({ batchId }) => batchId);
    return new Set(batchIds.filter((batchId) => parked.includes(batchId)));
  }

  async stuckRows(saleId: string, { olderThanMs, attemptsMin }: StuckLimits, max: number): Promise<StuckRow[]> {
    const nowMs = this.#repositories.clock.nowMs();
    return this.#undone(saleId)
      .map(({ id, attempts, createdAtMs }) => ({ outboxId: id, attempts, ageMs: nowMs - createdAtMs }))
      .filter(({ attempts, ageMs }) => ageMs >= olderThanMs || attempts >= attemptsMin)
      .slice(0, max);
  }

  async isDone(outboxId: string): Promise<boolean> {
    return !this.#repositories.outboxRows.some((row) => row.id === outboxId && row.doneAtMs === null);
  }

  #undone(saleId: string) {
    const named = `"saleId":"${saleId}"`;
    return this.#repositories.outboxRows.filter(
      (row) => row.doneAtMs === null && JSON.stringify(row.payload).includes(named),
    );
  }

  #rows(saleId: string): AgedOrder[] {
    const nowMs = this.#repositories.clock.nowMs();
    return this.#repositories.allOrders
      .filter((order) => order.saleId === saleId)
      .map(({ orderId, userId, requestId, batchId, quantity, state, reason, createdAtMs }) => ({
        orderId,
        userId,
        requestId,
        batchId,
        quantity,
        state,
        reason,
        ageMs: nowMs - createdAtMs,
      }));
  }
}
