import { isSaleId } from '../../core/ids.js';
import type { Sale } from '../../core/sale.js';
import type { SaleSnapshots } from '../../sales/sale-snapshots.js';
import type { Exchange } from './router.js';

/**
 * The sale that an address names, from its card, which outlives an outage of the servers behind it. Answers itself and
 * returns null where there is none.
 * @throws OperationalError redis or mysql, for a sale that was never seen here
 */
export async function snapshotOf(exchange: Exchange, snapshots: Pick<SaleSnapshots, 'get'>): Promise<Sale | null> {
  const { req, res, replies, param } = exchange;
  const saleId = param('saleId');
  if (!isSaleId(saleId)) {
    replies.problem(req, res, 'bad_request', { detail: 'The sale id in the address must be a whole number.' });
    return null;
  }
  const snapshot = await snapshots.get(saleId);
  if (snapshot.snapshot === 'ready') return snapshot.sale;
  replies.problem(req, res, snapshot.snapshot);
  return null;
}
