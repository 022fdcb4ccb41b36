import { OperationalError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import type { Log } from '../core/ports/log.js';
import type { OrderArchive } from '../core/ports/order-archive.js';
import type { OrderCursor } from '../core/ports/reconcile-repository.js';
import type { RecoveryMetrics } from './metrics.js';

const ACTOR = 'keeper';
const DUE_MAX = 1_000;
/** Maximum number of orders per transaction, which takes some tens of ms. */
const ORDERS_PER_STEP = 500;
/** Maximum number of steps per run. A small sale is one step, and a step may find no orders. */
const STEPS_MAX = 500;
/** Pause if some orders of a sale stay or cannot be moved. A failed step is retried sooner. */
const KEPT_AGAIN_MS = 10 * 60_000;
const FAILED_AGAIN_MS = 10_000;

/** The sale that is being moved: the position of its next step, and how many of its orders stay. */
interface Underway {
  readonly saleId: string;
  from: OrderCursor | null;
  kept: number;
}

/**
 * Moves the orders of sales retired long ago to the archive, sale by sale, so `orders` holds little more than the sales
 * that still sell. If a keeper dies, each order is in one of both places, and the next keeper continues.
 * @param afterMs since the retirement of the sale
 * @param ordersPerRun maximum number of orders that one run moves
 */
export function archiveOrders(
  { archive, log, metrics }: { readonly archive: OrderArchive; readonly log: Log; readonly metrics: RecoveryMetrics },
  { afterMs, ordersPerRun }: { readonly afterMs: number; readonly ordersPerRun: number },
): Job {
  let current: Underway | null = null;

  /** Sales that are due. Refilled when empty. */
  let queue: string[] = [];

  const nextSale = async (): Promise<Underway | null> => {
    if (queue.length === 0) {
      queue = await archive.due(afterMs, DUE_MAX);
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

  /** @returns how many orders were moved or kept */
  const step = async (sale: Underway, max: number): Promise<number> => {
    const { moved, kept, next } = await archive.move(sale.saleId, sale.from, max);
    metrics.ordersArchived(moved);
    sale.kept += kept;
    sale.from = next;
    if (next !== null) return moved + kept;
    if (sale.kept === 0 && (await archive.finish(sale.saleId))) {
      log.info({ saleId: sale.saleId }, 'moved the orders of a sale to the archive');
      current = null;
    } else if (sale.kept === 0) {
      await leave(sale.saleId, FAILED_AGAIN_MS); // another keeper is moving these orders
    } else {
      log.warn({ saleId: sale.saleId, orders: sale.kept }, 'orders of a retired sale cannot be archived yet');
      await leave(sale.saleId, KEPT_AGAIN_MS);
    }
    return moved + kept;
  };

  return {
    name: 'archive-orders',
    async runOnce(): Promise<'idle' | void> {
      let left = ordersPerRun;
      for (let steps = 0; left > 0 && steps < STEPS_MAX; steps++) {
        const sale = (current ??= await nextSale());
        if (sale === null) return 'idle';
        try {
          left -= await step(sale, Math.min(left, ORDERS_PER_STEP));
        } catch (error) {
          const isLasting = !(error instanceof OperationalError) || !error.retryable;
          if (isLasting) log.error({ saleId: sale.saleId, err: error }, 'could not archive the orders of a sale');
          // this must not block the other sales
          await leave(sale.saleId, isLasting ? KEPT_AGAIN_MS : FAILED_AGAIN_MS).catch(() => undefined);
          throw error;
        }
      }
    },
  };
}
