import { cancelAnyOrder, listOrderRefunds, refundOrder, voidSale } from './money-routes.js';
import { exportOrders, findOrders, readAnyOrder } from './routes.js';

export const orderRoutes = [
  findOrders,
  exportOrders,
  readAnyOrder,
  cancelAnyOrder,
  refundOrder,
  listOrderRefunds,
  voidSale,
];
export { openOrders, type OrderServices } from './services.js';
