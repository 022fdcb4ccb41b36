import { LRUCache } from 'lru-cache';
import type { Order } from '../core/order.js';
import { purchaseKey, type PurchaseName } from '../core/purchase.js';
import type { Clock } from '../core/ports/clock.js';
import type { OrderRepository } from '../core/ports/order-repository.js';

/** How long an answer is kept, also the answer that no row exists. */
const LIFE_MS = 3000;
/** Maximum number of answers kept. Each takes half a kB. */
const KNOWN_MAX = 20_000;
/** Minimum interval between two rounds of queries to MySQL. */
const ASK_EVERY_MS = 50;
/** Number of sales that one round looks up at the same time. */
const SALES_AT_ONCE = 4;
/** Maximum number of purchases of one sale in a query. */
const PURCHASES_PER_QUERY = 500;
/** Maximum number of purchases that wait for MySQL. Any further purchase is `overloaded`. */
const WAITING_MAX = 5000;

interface Waiting {
  readonly purchase: PurchaseName;
  readonly row: Promise<Order | null>;
  readonly resolve: (row: Order | null) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Finds rows of purchases in closed sales, which Redis no longer answers. Protects MySQL from a storm of late buyers:
 * keeps answers for some seconds and shares queries, at most 80 a second.
 */
export class ClosedRows {
  readonly #repository: OrderRepository;
  readonly #clock: Clock;
  readonly #known: LRUCache<string, { readonly row: Order | null }>;
  /** Waiting purchases by sale, then by purchase key. */
  readonly #waiting = new Map<string, Map<string, Waiting>>();
  #count = 0;
  #isAsking = false;
  #askedAtMs = -Infinity;

  /** @param knownMax maximum number of answers kept; memory for them is reserved at once */
  constructor(repository: OrderRepository, clock: Clock, knownMax = KNOWN_MAX) {
    this.#repository = repository;
    this.#clock = clock;
    this.#known = new LRUCache({
      max: knownMax,
      ttl: LIFE_MS,
      ttlResolution: 0,
      perf: { now: () => clock.monotonicMs() },
    });
  }

  /** Returns a row at most some seconds old, or null if the purchase has none. @throws OperationalError mysql */
  async find(saleId: string, purchase: PurchaseName): Promise<Order | null | 'overloaded'> {
    const key = purchaseKey(purchase);
    const known = this.#known.get(`${saleId}/${key}`);
    if (known !== undefined) return known.row;
    const waiting = this.#waiting.get(saleId)?.get(key);
    if (waiting !== undefined) return waiting.row;
    if (this.#count >= WAITING_MAX) return 'overloaded';
    const waiter = newWaiting(purchase);
    const ofSale = this.#waiting.get(saleId);
    if (ofSale === undefined) this.#waiting.set(saleId, new Map([[key, waiter]]));
    else ofSale.set(key, waiter);
    this.#count++;
    if (!this.#isAsking) void this.#askAll();
    return waiter.row;
  }

  /** Queries MySQL until no purchase waits. Never rejects: an error goes to the waiting callers. */
  async #askAll(): Promise<void> {
    const clock = this.#clock;
    this.#isAsking = true;
    while (this.#waiting.size > 0) {
      const restMs = this.#askedAtMs + ASK_EVERY_MS - clock.monotonicMs();
      if (restMs > 0) await clock.sleep(restMs);
      this.#askedAtMs = clock.monotonicMs();
      const turns = [...this.#waiting].slice(0, SALES_AT_ONCE);
      await Promise.all(turns.map(([saleId, ofSale]) => this.#ask(saleId, ofSale)));
    }
    this.#isAsking = false;
  }

  /** Looks up the first waiting purchases of a sale. The others of this sale wait behind the other sales. */
  async #ask(saleId: string, ofSale: Map<string, Waiting>): Promise<void> {
    this.#waiting.delete(saleId);
    const asked = [...ofSale].slice(0, PURCHASES_PER_QUERY);
    for (const [key] of asked) ofSale.delete(key);
    if (ofSale.size > 0) this.#waiting.set(saleId, ofSale);
    this.#count -= asked.length;
    try {
      const rows = await this.#repository.findByPurchases(
        saleId,
        asked.map(([, { purchase }]) => purchase),
      );
      const found = new Map(rows.map((row) => [purchaseKey(row), row]));
      for (const [key, { resolve }] of asked) {
        const row = found.get(key) ?? null;
        this.#known.set(`${saleId}/${key}`, { row });
        resolve(row);
      }
    } catch (error) {
      for (const [, { reject }] of asked) reject(error);
    }
  }
}

function newWaiting(purchase: Waiting['purchase']): Waiting {
  let resolve: Waiting['resolve'] = () => undefined;
  let reject: Waiting['reject'] = () => undefined;
  const row = new Promise<Order | null>((...ends) => ([resolve, reject] = ends));
  return { purchase, row, resolve, reject };
}
