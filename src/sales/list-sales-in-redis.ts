import type { SaleRepository } from '../core/ports/sale-repository.js';
import { LIVE_STATES, type Sale } from '../core/sale.js';

/** More live sales than this system is designed for. */
const LIVE_MAX = 10_000;
/** Every caller reads the same list, so the jobs of the keeper share it. */
const CLOSED_MAX = 10_000;

/**
 * Lists the sales that Redis should have: live sales, then closed sales that are not retired, last closed first. A sale
 * that closes in between is listed twice.
 * @throws OperationalError mysql
 */
export async function listSalesInRedis(
  sales: SaleRepository,
  { closedMax = CLOSED_MAX }: { readonly closedMax?: number } = {},
): Promise<Sale[]> {
  const live = await sales.list({ states: LIVE_STATES, max: LIVE_MAX });
  const closed = await sales.list({ states: ['closed'], retired: false, max: CLOSED_MAX, order: 'closed_last' });
  return [...live, ...closed.slice(0, closedMax)];
}
