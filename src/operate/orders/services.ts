import type { OrderRefunds } from '../../core/ports/order-refunds.js';
import { createOrderRefunds } from '../../mysql/order-refunds.js';
import type { Connections } from '../../process/connections.js';
import { systemClock as clock } from '../../process/system-clock.js';

export interface OrderServices {
  readonly orderRefunds: OrderRefunds;
}

export const openOrders = (connections: Connections<'mysql' | 'redis'>): OrderServices => ({
  orderRefunds: createOrderRefunds(connections.mysql(), { clock }),
});
