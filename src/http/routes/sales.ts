import { isSaleId } from '../../core/ids.js';
import type { Body } from '../../admission/degrade/degraded-reads.js';
import type { GetSaleAnswer, SaleView } from '../../sales/get-sale.js';
import type { HttpServices } from '../services.js';
import { answerRead } from './degraded-read.js';
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
      let outcome: GetSaleAnswer['outcome'] = 'not_found';
      const source = async (): Promise<Body | null> => {
        const answer = await services.getSale.get(saleId);
        outcome = answer.outcome;
        return answer.outcome === 'found' ? saleBody(answer.view) : null;
      };
      const read = {
        ...{ endpoint: 'sale' as const, key: saleId, ids: { saleId }, source, who: () => services.addressOf(req) },
        ...{ word: () => outcome, missing: () => (outcome === 'loading' ? outcome : 'not_found') },
        headers: ['Cache-Control', 'public, max-age=1'],
      };
      await answerRead(exchange, read, services);
    },
  });
}

function saleBody({ opensAtMs, closesAtMs, nowMs, ...view }: SaleView): Body {
  return { ...view, opensAt: isoTime(opensAtMs), closesAt: isoTime(closesAtMs), serverTime: isoTime(nowMs) };
}

/** Times leave this API as ISO 8601 in UTC with milliseconds. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();
