import { isSaleId } from '../../core/ids.js';
import type { Sale } from '../../core/sale.js';
import type { SaleCards } from '../../sales/sale-cards.js';
import type { Exchange } from './router.js';

/**
 * The sale that an address names, from its card, which outlives an outage of the servers behind it. Answers itself and
 * returns null where there is none.
 * @throws OperationalError redis or mysql, for a sale that was never seen here
 */
export async function cardOf(exchange: Exchange, cards: Pick<SaleCards, 'get'>): Promise<Sale | null> {
  const { req, res, replies, param } = exchange;
  const saleId = param('saleId');
  if (!isSaleId(saleId)) {
    replies.problem(req, res, 'bad_request', { detail: 'The sale id in the address must be a whole number.' });
    return null;
  }
  const card = await cards.get(saleId);
  if (card.card === 'ready') return card.sale;
  replies.problem(req, res, card.card);
  return null;
}
