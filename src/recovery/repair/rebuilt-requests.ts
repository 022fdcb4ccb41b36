import { assert } from '../../core/errors.js';
import type { Batch } from '../../core/batch.js';
import { isLive } from '../../core/order.js';
import { purchaseKey, splitPurchaseKey } from '../../core/purchase.js';
import { type Sale } from '../../core/sale.js';
import { homeBucket, unitsOfBucket } from '../../core/bucket.js';
import type { AgedOrder } from '../../core/ports/reconcile-repository.js';
import type { StoredRequest } from '../../core/ports/reconcile-store.js';

/**
 * The requests of a sale after its repair, and the requests still to be staged. Rows come first, because they were
 * sold. A request without a row keeps its units only if it fits into the stock, and the limit per buyer, that the rows
 * leave. If a held request does not fit, its batch has to reacquire units, and fails if there are not enough. If an
 * order that MySQL lost does not fit, only its log line remains.
 */
export class RebuiltRequests {
  readonly #sale: Sale;
  /** Every request that was added. There are at most as many as units were ever sold. */
  readonly #placed = new Map<string, 'row' | 'unrecorded'>();
  readonly #unitsOfBuyers = new Map<string, number>();
  #unitsPlaced = 0;
  #unstaged: StoredRequest[][];
  rows = 0;
  held = 0;
  /** Orders without a row that keep entry and units. */
  ordersLost = 0;
  /** Orders without a row for which no units are left. */
  readonly withoutRoom: StoredRequest[] = [];

  constructor(sale: Sale) {
    this.#sale = sale;
    this.#unstaged = Array.from({ length: sale.buckets }, () => []);
  }

  addRows(rows: readonly AgedOrder[]): void {
    for (const { userId, requestId, orderId, quantity, state } of rows) {
      const key = purchaseKey({ userId, requestId });
      if (this.#placed.has(key)) continue;
      this.rows++;
      this.#placed.set(key, 'row');
      this.#place(key, userId, { state: isLive(state) ? 'ordered' : 'released', orderId, quantity });
    }
  }

  /** Adds requests that still have units in Redis. */
  addUnrecorded(requests: readonly StoredRequest[]): void {
    for (const [key, entry] of requests) this.#keep(key, entry);
  }

  /** @returns whether a purchase has no row, so its message is still needed */
  addParked({ batchId, purchases }: Batch): boolean {
    let isWanted = false;
    for (const purchase of purchases) {
      const key = purchaseKey(purchase);
      if (this.#placed.get(key) === 'row') continue;
      isWanted = true;
      this.#keep(key, { state: 'held', batchId, quantity: purchase.quantity });
    }
    return isWanted;
  }

  /** Finds the buckets of those purchases of a batch that have units but no row. */
  homesOfHeld({ purchases }: Batch): Set<number> {
    const held = purchases.filter((purchase) => this.#placed.get(purchaseKey(purchase)) === 'unrecorded');
    return new Set(held.map(({ userId }) => homeBucket(userId, this.#sale.buckets)));
  }

  /** Takes the requests added since the last call, by bucket. */
  takeUnstaged(): readonly (readonly StoredRequest[])[] {
    const taken = this.#unstaged;
    this.#unstaged = taken.map(() => []);
    return taken;
  }

  /** Shares the remaining stock equally among the buckets. Never below 0, even after an oversell. */
  get unitsLeft(): readonly number[] {
    const rest = { stock: Math.max(0, this.#left), buckets: this.#sale.buckets };
    const shares = Array.from({ length: rest.buckets }, (_, bucket) => unitsOfBucket(rest, bucket));
    assert(shares.reduce((sum, units) => sum + units, 0) === rest.stock, 'the buckets share all units that are left');
    return shares;
  }

  get #left(): number {
    return this.#sale.stock - this.#unitsPlaced;
  }

  #keep(key: string, entry: StoredRequest[1]): void {
    if (entry.state === 'released' || this.#placed.has(key)) return;
    const { userId } = splitPurchaseKey(key);
    const units = (this.#unitsOfBuyers.get(userId) ?? 0) + entry.quantity;
    const fits = entry.quantity <= this.#left && units <= this.#sale.limitPerBuyer;
    if (!fits && entry.state === 'held') return;
    this.#placed.set(key, 'unrecorded');
    if (!fits) return void this.withoutRoom.push([key, entry]);
    if (entry.state === 'held') this.held++;
    else this.ordersLost++;
    this.#place(key, userId, entry);
  }

  #place(key: string, userId: string, entry: StoredRequest[1]): void {
    const bucket = homeBucket(userId, this.#sale.buckets);
    this.#unstaged[bucket]?.push([key, entry]);
    if (entry.state === 'released') return;
    this.#unitsPlaced += entry.quantity;
    this.#unitsOfBuyers.set(userId, (this.#unitsOfBuyers.get(userId) ?? 0) + entry.quantity);
  }
}
