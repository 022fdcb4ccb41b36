import type { Batch } from '../core/batch.js';
import type { Order } from '../core/order.js';
import type { Purchase } from '../core/purchase.js';
import type { OrderRepository, SaleTerms } from '../core/ports/order-repository.js';
import { buyerName, requestName, type Known } from './draft-rows.js';

/**
 * Who of these purchases has a row, and which buyers stand in the way of a second one.
 * @throws OperationalError mysql
 */
export async function lookUp(
  batches: readonly Batch[],
  terms: ReadonlyMap<string, SaleTerms>,
  repository: Pick<OrderRepository, 'findByPurchases' | 'liveBuyers'>,
): Promise<Known> {
  const rows = await lookUpRows(batches, repository);
  const liveBuyers = new Set<string>();
  for (const [saleId, purchases] of purchasesBySale(batches)) {
    if (terms.get(saleId)?.limitPerBuyer !== 1) continue;
    const users = [...new Set(purchases.map(({ userId }) => userId))];
    for (const userId of await repository.liveBuyers(saleId, users)) liveBuyers.add(buyerName(saleId, userId));
  }
  return { rows, liveBuyers };
}

/**
 * Who of these purchases has a row, by request name.
 * @throws OperationalError mysql
 */
export async function lookUpRows(
  batches: readonly Batch[],
  repository: Pick<OrderRepository, 'findByPurchases'>,
): Promise<Map<string, Order>> {
  const rows = new Map<string, Order>();
  for (const [saleId, purchases] of purchasesBySale(batches)) {
    for (const row of await repository.findByPurchases(saleId, purchases)) rows.set(requestName(saleId, row), row);
  }
  return rows;
}

function purchasesBySale(batches: readonly Batch[]): Map<string, Purchase[]> {
  const bySale = new Map<string, Purchase[]>();
  for (const { saleId, purchases } of batches) bySale.set(saleId, [...(bySale.get(saleId) ?? []), ...purchases]);
  return bySale;
}
