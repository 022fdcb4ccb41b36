import { filterObject, queryWhole, queryWord } from '../../contract/fields.js';
import { isServed, ORDER_FILTER_NEEDS } from '../../core/ports/order-search.js';
import { problem } from '../answer.js';
import { EXPORT_FORMATS, EXPORT_MAX } from '../export-lines.js';
import { orderPages } from '../../operate/orders/order-pages.js';
import { defineRoute } from '../route.js';
import { EXPORT_ANSWER, sendExport } from '../send-export.js';
import { filterOf, orderFilter } from '../../operate/orders/routes.js';

/** Exports the same data as `seckill orders export`. */
export const exportOrders = defineRoute({
  method: 'get',
  path: '/admin/v1/orders/export',
  label: 'admin',
  operationId: 'exportOrders',
  summary: 'Exports orders by user, sale or time, and by state. A response that breaks off is incomplete.',
  access: 'viewer',
  endpoint: null,
  query: filterObject({
    ...orderFilter,
    limit: queryWhole(1, EXPORT_MAX).default(EXPORT_MAX),
    format: queryWord(EXPORT_FORMATS).default('csv'),
  }),
  answers: { 200: EXPORT_ANSWER },
  problems: ['overloaded'],
  async handle(call, services) {
    const filter = filterOf(call.query);
    if (!isServed(filter)) return problem('bad_request', { detail: ORDER_FILTER_NEEDS });
    return sendExport(call, 'orders', orderPages(services.orderSearch, filter, call.query), services);
  },
});
