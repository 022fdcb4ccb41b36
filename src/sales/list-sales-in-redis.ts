import type { SaleRepository } from '../core/ports/sale-repository.js';
import { LIVE_STATES, type Sale } from '../core/sale.js';

/** More live sales than this system is made for. */
const LIVE_MAX = 10_000;

/**
 * Sales that Redis has, by what MySQL says: the live ones, then the closed ones that are not retired. A sale that is
 * closed in between comes twice.
 * @param closedMax so many of the closed ones, those that closed last
 * @throws OperationalError mysql
 */
export async function listSalesInRedis(
  sales: Pick<SaleRepository, 'list'>,
  { closedMax }: { readonly closedMax: number },
): Promise<Sale[]> {
  const live = await sales.list({ states: LIVE_STATES, max: LIVE_MAX });
  const closed = await sales.list({ states: ['closed'], retired: false, max: closedMax, order: 'closed_last' });
  return [...live, ...closed];
}
