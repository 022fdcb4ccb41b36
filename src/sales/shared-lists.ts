import type { Clock } from '../core/ports/clock.js';
import type { SaleFilter, SaleRepository } from '../core/ports/sale-repository.js';
import { recent } from '../core/recent.js';
import type { Sale } from '../core/sale.js';

/** Shares equal lists between jobs for `keptMs`. Jobs use few filters, and read a sale again before they change it. */
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
