import { OperationalError } from '../core/errors.js';
import { isLive } from '../core/order.js';
import type { Clock } from '../core/ports/clock.js';
import type { AgedOrder, OrderCursor, OrderPage, SaleRows } from '../core/ports/reconcile-repository.js';
import type { Sale } from '../core/sale.js';

/** Pauses between attempts of one step. During a failover of MySQL, all rows read so far would be lost without them. */
const RETRY_MS = [100, 250, 500, 1000, 2000, 4000] as const;

export const liveUnitsOf = (rows: readonly AgedOrder[]): number =>
  rows.reduce((sum, { state, quantity }) => sum + (isLive(state) ? quantity : 0), 0);

/**
 * Reads every row of a sale in chunks, in time proportional to this sale. If `sold` stays the same during the read and
 * the live orders do not add up to it, rows are missing from the ranges that writers record, and all of `orders` is
 * searched. If `sold` changes, only a sum below both values starts the search; a smaller gap may stay until the next
 * comparison.
 * @param sale the sale as it was read before its rows
 * @throws OperationalError mysql, after some attempts
 */
export async function* rowsOfSale(
  sale: Sale,
  { repository, clock }: { readonly repository: SaleRows; readonly clock: Clock },
): AsyncGenerator<readonly AgedOrder[]> {
  const read = (from: OrderCursor | null): Promise<OrderPage> => {
    const page = retried(() => repository.orderPage(sale.saleId, from), clock);
    page.catch(() => undefined); // awaited later, or never if the reader has stopped
    return page;
  };
  let liveUnits = 0;
  let reading: Promise<OrderPage> | null = read(null);
  while (reading !== null) {
    const { rows, next }: OrderPage = await reading;
    reading = next === null ? null : read(next); // read the next page while the reader works on this one
    liveUnits += liveUnitsOf(rows);
    if (rows.length > 0) yield rows;
  }
  if (liveUnits === sale.sold) return;
  const after = await retried(() => repository.findSale(sale.saleId), clock);
  if (after === null) return;
  const stoodStill = after.sold === sale.sold;
  if (stoodStill || liveUnits < Math.min(sale.sold, after.sold)) yield* repository.unlistedOrders(sale);
}

/** @throws a lasting error of `call`, or its last temporary fault after some seconds */
export async function retried<T>(call: () => Promise<T>, clock: Clock): Promise<T> {
  for (const pauseMs of RETRY_MS) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof OperationalError) || !error.retryable) throw error;
      await clock.sleep(pauseMs);
    }
  }
  return call();
}
