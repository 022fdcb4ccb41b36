import { z } from 'zod';
import {
  filterObject,
  limit,
  orderId,
  queryText,
  queryTime,
  queryWord,
  saleId,
  userId,
} from '../../contract/fields.js';
import { foundOrder, foundOrders, ordersOfBuyer, type FoundOrder } from '../../contract/orders.js';
import { ORDER_STATES, type ShownOrder } from '../../core/order.js';
import { isServed, ORDER_FILTER_NEEDS, type OrderFilter } from '../../core/ports/order-search.js';
import { json, problem } from '../../http/answer.js';
import { defineRoute } from '../../http/route.js';
import { orderBody } from '../../http/routes/orders.js';
import { withoutUndefined } from '../../core/without-undefined.js';

/** Lists orders: a buyer's own orders, and all orders for operators. */

const after = queryText(140).optional();
const NO_PLACE = 'after is not a position in this list. Pass `next` of the previous page.';

export const listMyOrders = defineRoute({
  method: 'get',
  path: '/v1/me/orders',
  label: 'order',
  operationId: 'listMyOrders',
  summary: 'Lists the orders of the buyer, newest sale first. Pass `next` as `after` to get the next page.',
  access: 'buyer',
  endpoint: 'order',
  query: z.strictObject({ after, limit }),
  answers: {
    200: { description: 'a page', schema: ordersOfBuyer },
  },
  problems: [],
  async handle({ userId, query }, { orderSearch }) {
    const page = await orderSearch.page({ userId }, query.after ?? null, query.limit);
    if (page === null) return problem('bad_request', { detail: NO_PLACE });
    return json(200, 'found', { orders: page.orders.map(orderBody), next: page.next });
  },
});

/** The filters for orders. */
export const orderFilter = {
  user: userId.optional(),
  sale: saleId.optional(),
  state: queryWord(ORDER_STATES).optional(),
  from: queryTime.optional(),
  to: queryTime.optional(),
};
type FilterQuery = z.output<z.ZodObject<typeof orderFilter>>;

export const filterOf = ({ user: userId, sale, state, from: fromMs, to: toMs }: FilterQuery): OrderFilter =>
  withoutUndefined({ userId, saleId: sale, state, fromMs, toMs });

export const findOrders = defineRoute({
  method: 'get',
  path: '/admin/v1/orders',
  label: 'admin',
  operationId: 'findOrders',
  summary:
    'Finds orders by user, sale or time, and by state. A page may be short or empty. Pass `next` as `after` until it is null.',
  access: 'viewer',
  endpoint: null,
  query: filterObject({ ...orderFilter, after, limit }),
  answers: {
    200: { description: 'a page', schema: foundOrders },
  },
  problems: [],
  async handle({ query }, { orderSearch }) {
    const filter = filterOf(query);
    if (!isServed(filter)) return problem('bad_request', { detail: ORDER_FILTER_NEEDS });
    const page = await orderSearch.page(filter, query.after ?? null, query.limit);
    if (page === null) return problem('bad_request', { detail: NO_PLACE });
    return json(200, 'found', { orders: page.orders.map(foundOrderBody), next: page.next });
  },
});

/** For a service that receives order events and looks up the order. */
export const readAnyOrder = defineRoute({
  method: 'get',
  path: '/admin/v1/orders/{orderId}',
  label: 'admin',
  operationId: 'readAnyOrder',
  summary: 'Returns an order of any buyer.',
  access: 'viewer',
  endpoint: null,
  params: z.object({ orderId }),
  answers: { 200: { description: 'the order', schema: foundOrder } },
  problems: ['order_not_found'],
  async handle({ params }, { findOrder }) {
    const order = await findOrder(params.orderId);
    return order === null ? problem('order_not_found') : json(200, 'found', foundOrderBody(order));
  },
});

/** Formats an order for operators, over HTTP and on the command line. */
export const foundOrderBody = (order: ShownOrder): FoundOrder => ({
  ...orderBody(order),
  userId: order.userId,
  batchId: order.batchId,
});
