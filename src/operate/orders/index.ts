import { exportOrders, findOrders, readAnyOrder } from './routes.js';

// The door for programs. The command line loads `commands.ts`, and only when it is named.

export const orderRoutes = [findOrders, exportOrders, readAnyOrder];
