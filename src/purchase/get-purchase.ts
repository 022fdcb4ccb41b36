import type { PurchaseStatus } from '../core/outcome.js';
import { Places, type AddressShare } from '../core/places.js';
import type { RequestRef } from '../core/purchase.js';
import type { StatusMetrics } from './metrics.js';
import { PurchaseWatch, type WatchPorts } from './purchase-watch.js';
import { readPurchase, type ReadPurchasePorts } from './read-purchase.js';

export interface GetPurchasePorts extends ReadPurchasePorts, WatchPorts {
  readonly metrics: StatusMetrics;
}

/** The user id comes from the token, so a buyer cannot ask for another buyer's purchase. */
export interface PurchaseQuery extends RequestRef {
  /** Maximum time to wait while the status is `pending`, ms. 0 answers at once. */
  readonly waitMs: number;
  /** The keys under which the caller's address is limited. If empty or omitted, there is no limit by address. */
  readonly shares?: readonly AddressShare[];
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
}

/** Maximum number of waiting long polls. Any further poll is answered at once. Each poll costs a read of Redis. */
const WAITERS_MAX = 2000;
/** Maximum number of waiting long polls of one buyer. A buyer waits for one or a few purchases. */
const WAITERS_PER_BUYER_MAX = 10;
/** Maximum number of waiting long polls of one address, which may be a household or an office. */
const WAITERS_PER_ADDRESS_MAX = 200;

/** Returns the status of a purchase, at once or as soon as it is more than `pending`. */
export class GetPurchase {
  readonly #ports: GetPurchasePorts;
  readonly #pollMaxMs: number;
  readonly #places = new Places({
    max: WAITERS_MAX,
    perUserMax: WAITERS_PER_BUYER_MAX,
    perAddressMax: WAITERS_PER_ADDRESS_MAX,
  });

  /** @param pollMaxMs maximum pause between two reads for a waiting caller without a notification, ms */
  constructor(ports: GetPurchasePorts, pollMaxMs: number) {
    this.#ports = ports;
    this.#pollMaxMs = pollMaxMs;
  }

  /** @throws OperationalError redis or mysql */
  async get(query: PurchaseQuery): Promise<PurchaseStatus> {
    const { clock } = this.#ports;
    const deadlineMs = clock.monotonicMs() + query.waitMs;
    const status = await readPurchase(query, null, this.#ports);
    if (status.status !== 'pending' || query.waitMs === 0) return status;
    const leave = this.#places.take(query.userId, query.shares);
    if (leave === null) return status;
    const watch = new PurchaseWatch(query, this.#ports, this.#pollMaxMs);
    try {
      return await this.#wait(query, watch, deadlineMs);
    } finally {
      watch.close();
      leave();
    }
  }

  async #wait(query: PurchaseQuery, watch: PurchaseWatch, deadlineMs: number): Promise<PurchaseStatus> {
    const { clock, metrics } = this.#ports;
    for (;;) {
      const leftMs = deadlineMs - clock.monotonicMs();
      if (leftMs <= 0 || query.signal.aborted) return { status: 'pending' };
      const notified = await watch.next(leftMs, query.signal);
      const status = await readPurchase(query, notified, this.#ports);
      if (status.status === 'pending') {
        if (notified !== null) watch.readSoon(); // MySQL has the order, and Redis will follow within milliseconds
        continue;
      }
      metrics.changeFound(notified === null ? 'read' : 'notification');
      return status;
    }
  }
}
