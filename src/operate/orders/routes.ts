import { z } from 'zod';
import {
  filterObject,
  limit,
  orderId,
  queryTime,
  queryWhole,
  queryWord,
  saleId,
  userId,
} from '../../contract/fields.js';
import { foundOrder, foundOrders } from '../../contract/orders.js';
import { ORDER_STATES } from '../../core/order.js';
import { isServed, ORDER_FILTER_NEEDS, type OrderFilter } from '../../core/ports/order-search.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { json, problem } from '../../http/answer.js';
import { EXPORT_FORMATS, EXPORT_MAX } from '../../http/export-lines.js';
import { operatorRoute } from '../../http/route.js';
import { after, NO_PLACE } from '../../http/routes/orders.js';
import { EXPORT_ANSWER, sendExport } from '../../http/send-export.js';
import { foundOrderBodies, orderPages } from './order-pages.js';

const orderFilter = {
  user: userId.optional(),
  sale: saleId.optional(),
  state: queryWord(ORDER_STATES).optional().meta({ description: '`paid` includes orders refunded in part' }),
  from: queryTime.optional(),
  to: queryTime.optional(),
  paidFrom: queryTime.optional(),
  paidTo: queryTime.optional(),
};
export type FilterQuery = z.output<z.ZodObject<typeof orderFilter>>;

/** Returns the filter of a search by the words of its query or its flags. */
export const filterOf = ({ user, sale, state, from, to, paidFrom, paidTo }: FilterQuery): OrderFilter =>
  withoutUndefined({
    userId: user,
    saleId: sale,
    state,
    fromMs: from,
    toMs: to,
    paidFromMs: paidFrom,
    paidToMs: paidTo,
  });

export const findOrders = operatorRoute({
  method: 'get',
  path: '/admin/v1/orders',
  operationId: 'findOrders',
  summary:
    'Finds orders by user, sale or time, and by state; with `paidFrom` in the order in which they were paid. A page may be short or empty. Pass `next` as `after` until it is null.',
  access: 'viewer',
  query: filterObject({ ...orderFilter, after, limit }),
  answers: { 200: { description: 'a page', schema: foundOrders } },
  async handle({ query }, { orderSearch }) {
    const filter = filterOf(query);
    if (!isServed(filter)) return problem('bad_request', { detail: ORDER_FILTER_NEEDS });
    const page = await orderSearch.page(filter, query.after ?? null, query.limit);
    if (page === null) return problem('bad_request', { detail: NO_PLACE });
    return json(200, 'found', { orders: await foundOrderBodies(page.orders, orderSearch), next: page.next });
  },
});

/** Exports the same data as `seckill orders export`. */
export const exportOrders = operatorRoute({
  method: 'get',
  path: '/admin/v1/orders/export',
  operationId: 'exportOrders',
  summary:
    'Exports orders by user, sale or time, and by state; with `paidFrom` in the order in which they were paid. A response that breaks off is incomplete.',
  access: 'viewer',
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

/** For a service that receives order events and looks up the order. */
export const readAnyOrder = operatorRoute({
  method: 'get',
  path: '/admin/v1/orders/{orderId}',
  operationId: 'readAnyOrder',
  summary: 'Returns an order of any buyer.',
  access: 'viewer',
  params: z.object({ orderId }),
  answers: { 200: { description: 'the order', schema: foundOrder } },
  problems: ['order_not_found'],
  async handle({ params }, { findOrder, orderSearch }) {
    const order = await findOrder(params.orderId);
    const [body] = order === null ? [] : await foundOrderBodies([order], orderSearch);
    return body === undefined ? problem('order_not_found') : json(200, 'found', body);
  },
});
