import { cancelAnyOrder, listOrderRefunds, refundOrder, voidSale } from './money-routes.js';
import { exportOrders, findOrders, readAnyOrder } from './routes.js';

// The entry point for programs. The command line loads `commands.ts`, only when the command is named.

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
