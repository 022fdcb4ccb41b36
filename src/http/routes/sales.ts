import { isSaleId } from '../../domain/ids.js';
import type { SaleView } from '../../sale/get-sale.js';
import type { HttpServices } from '../services.js';
import { isLetIn, type Router } from './router.js';

/** The page of a sale, for everybody. A second in shared caches keeps a crowd of reloads away from us. */
export function mountSales(router: Router, services: HttpServices): void {
  router.mount('sale', '/v1/sales/{saleId}', {
    get: async (exchange) => {
      const { req, res, replies, param } = exchange;
      if (!(await isLetIn(exchange, 'sale', services))) return;
      const saleId = param('saleId');
      if (!isSaleId(saleId)) {
        return replies.problem(req, res, 'bad_request', { detail: 'The sale id must be a whole number.' });
      }
      const answer = await services.getSale.get(saleId);
      if (answer.outcome !== 'found') return replies.problem(req, res, answer.outcome);
      replies.json(req, res, 200, answer.outcome, saleBody(answer.view), ['Cache-Control', 'public, max-age=1']);
    },
  });
}

function saleBody({ opensAtMs, closesAtMs, nowMs, ...view }: SaleView): object {
  return { ...view, opensAt: isoTime(opensAtMs), closesAt: isoTime(closesAtMs), serverTime: isoTime(nowMs) };
}

/** Times leave this API as ISO 8601 in UTC with milliseconds. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();
