import type { Clock } from '../core/ports/clock.js';
import type { SaleFilter, SaleRepository } from '../core/ports/sale-repository.js';
import { recent } from '../core/recent.js';
import type { Sale } from '../core/sale.js';

/**
 * Lists sales only once for all jobs that ask for the same list at about the same time. The jobs use a few fixed
 * filters, and read a sale again before they change it.
 * @param keptMs how long a list is shared
 */
export function shareLists<R extends Pick<SaleRepository, 'list'>>(sales: R, keptMs: number, clock: Clock): R {
  const lists = new Map<string, () => Promise<Sale[]>>();
  const list = (filter: SaleFilter): Promise<Sale[]> => {
    const name = JSON.stringify(filter);
    const shared = lists.get(name) ?? recent(() => sales.list(filter), keptMs, clock);
    lists.set(name, shared);
    return shared();
  };
  return { ...sales, list };
}
