import type { PurchaseStatus } from '../core/outcome.js';
import type { NotificationsMetrics } from '../core/ports/notifications-metrics.js';
import type { PurchaseRef } from '../core/ports/purchase-notifications.js';
import { PurchaseWatch, type WatchPorts } from './purchase-watch.js';
import { readPurchase, type ReadPurchasePorts } from './read-purchase.js';

export interface GetPurchasePorts extends ReadPurchasePorts, WatchPorts {
  readonly metrics: NotificationsMetrics;
}

export interface GetPurchaseOptions {
  /** Who waits looks this often at least, ms, also when no news come. */
  readonly lookMaxMs: number;
}

/** The user id is from the token: nobody can ask for another buyer's purchase. */
export interface PurchaseQuery extends PurchaseRef {
  /** How long to wait while the status is still `pending`; 0 answers at once. */
  readonly waitMs: number;
  /** Aborts when the asker has gone. */
  readonly signal: AbortSignal;
}

/** Long polls that may wait at the same time; one more is answered at once. Each costs one Redis read per look. */
const WAITERS_MAX = 2000;

/** Says how a purchase stands, at once or as soon as it is more than `pending`. */
export class GetPurchase {
  readonly #ports: GetPurchasePorts;
  readonly #options: GetPurchaseOptions;
  #waiting = 0;

  constructor(ports: GetPurchasePorts, options: GetPurchaseOptions) {
    this.#ports = ports;
    this.#options = options;
  }

  /** @throws OperationalError redis or mysql */
  async get(query: PurchaseQuery): Promise<PurchaseStatus> {
    const { clock } = this.#ports;
    const deadlineMs = clock.nowMs() + query.waitMs;
    const status = await readPurchase(query, null, this.#ports);
    if (status.status !== 'pending' || query.waitMs === 0 || this.#waiting >= WAITERS_MAX) return status;
    this.#waiting++;
    const watch = new PurchaseWatch(query, this.#ports, this.#options.lookMaxMs);
    try {
      return await this.#wait(query, watch, deadlineMs);
    } finally {
      watch.close();
      this.#waiting--;
    }
  }

  async #wait(query: PurchaseQuery, watch: PurchaseWatch, deadlineMs: number): Promise<PurchaseStatus> {
    const { clock, metrics } = this.#ports;
    for (;;) {
      const leftMs = deadlineMs - clock.nowMs();
      if (leftMs <= 0 || query.signal.aborted) return { status: 'pending' };
      const told = await watch.next(leftMs, query.signal);
      const status = await readPurchase(query, told, this.#ports);
      if (status.status === 'pending') {
        if (told !== null) watch.lookSoon(); // MySQL has it, Redis follows within milliseconds
        continue;
      }
      metrics.changeFound(told === null ? 'look' : 'news');
      return status;
    }
  }
}
