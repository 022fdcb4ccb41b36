import { OperationalError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import type { Log } from '../core/ports/log.js';
import type { OrderArchive } from '../core/ports/order-archive.js';
import type { OrderCursor } from '../core/ports/reconcile-repository.js';
import type { RecoveryMetrics } from './metrics.js';

export interface ArchivePorts {
  readonly archive: OrderArchive;
  readonly log: Log;
  readonly metrics: RecoveryMetrics;
}

export interface ArchiveOptions {
  /** The orders of a sale move so long after it was retired, ms. */
  readonly afterMs: number;
  /** Orders of one run. */
  readonly ordersPerRun: number;
}

const ACTOR = 'keeper';
/** Sales of one look for those that are due. */
const DUE_MAX = 1_000;
/** Orders of one transaction: some tens of ms. */
const ORDERS_PER_STEP = 500;
/** Steps of one run. Small sales are one each; a step may be about no order where another keeper has moved them. */
const STEPS_MAX = 500;
/** A sale with an order that stays, or that cannot be moved, is looked at again after so long; one whose step failed, sooner. */
const KEPT_AGAIN_MS = 10 * 60_000;
const FAILED_AGAIN_MS = 10_000;

/** The sale under way: where it goes on, and how many of its orders stay. */
interface Underway {
  readonly saleId: string;
  from: OrderCursor | null;
  kept: number;
}

/**
 * Moves the orders of sales that were retired long ago to the archive, sale by sale: the tables that sell stay as small as
 * what is for sale. A keeper that dies leaves each order where it was or where it belongs, and the next one goes on.
 */
export function archiveOrders({ archive, log, metrics }: ArchivePorts, options: ArchiveOptions): Job {
  let current: Underway | null = null;

  /** Sales that were due when it was last empty. */
  let queue: string[] = [];

  const nextSale = async (): Promise<Underway | null> => {
    if (queue.length === 0) {
      queue = await archive.due(options.afterMs, DUE_MAX);
      metrics.salesToArchive(queue.length);
    }
    const saleId = queue.shift();
    if (saleId === undefined) return null;
    await archive.begin(saleId, ACTOR);
    return { saleId, from: null, kept: 0 };
  };
  const leave = async (saleId: string, forMs: number): Promise<void> => {
    current = null;
    await archive.later(saleId, forMs);
  };

  /** @returns how many orders the step was about */
  const step = async (sale: Underway, max: number): Promise<number> => {
    const { moved, kept, next } = await archive.move(sale.saleId, sale.from, max);
    metrics.ordersArchived(moved);
    sale.kept += kept;
    sale.from = next;
    if (next !== null) return moved + kept;
    if (sale.kept === 0 && (await archive.finish(sale.saleId))) {
      log.info({ saleId: sale.saleId }, 'the orders of a sale are in the archive');
      current = null;
    } else if (sale.kept === 0) {
      await leave(sale.saleId, FAILED_AGAIN_MS); // another keeper is at it
    } else {
      log.warn({ saleId: sale.saleId, orders: sale.kept }, 'orders of a retired sale cannot go to the archive yet');
      await leave(sale.saleId, KEPT_AGAIN_MS);
    }
    return moved + kept;
  };

  return {
    name: 'archive-orders',
    async runOnce(): Promise<'idle' | void> {
      let left = options.ordersPerRun;
      for (let steps = 0; left > 0 && steps < STEPS_MAX; steps++) {
        const sale = (current ??= await nextSale());
        if (sale === null) return 'idle';
        try {
          left -= await step(sale, Math.min(left, ORDERS_PER_STEP));
        } catch (error) {
          const isLasting = !(error instanceof OperationalError) || !error.retryable;
          if (isLasting) log.error({ saleId: sale.saleId, err: error }, 'the orders of a sale cannot be archived');
          // the others need not wait for it
          await leave(sale.saleId, isLasting ? KEPT_AGAIN_MS : FAILED_AGAIN_MS).catch(() => undefined);
          throw error;
        }
      }
    },
  };
}
