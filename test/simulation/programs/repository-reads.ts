import type { OrderNotificationRows } from '../../../src/core/ports/purchase-notifications.js';
import type { OrderStates } from '../../../src/core/ports/order-transitions.js';
import type { SimulatedProcess } from '../engine/simulated-process.js';
import { withFaults } from '../engine/with-faults.js';
import type { SimulatedSystem } from '../simulated-system.js';

/** Reads states of orders, and orders that are due to expire. */
export function orderStatesOf(proc: SimulatedProcess, { repositories }: SimulatedSystem): OrderStates {
  const states: OrderStates = {
    statesOf: async (orderIds) => {
      const found = repositories.allOrders.filter(({ orderId }) => orderIds.includes(orderId));
      return new Map(found.map(({ orderId, state }) => [orderId, state]));
    },
    dueOf: async (orderIds) => {
      const nowMs = repositories.clock.nowMs();
      const due = repositories.allOrders.filter(
        ({ orderId, state, expiresAtMs }) =>
          orderIds.includes(orderId) && state === 'pending_payment' && expiresAtMs !== null && expiresAtMs <= nowMs,
      );
      return due.map(({ orderId }) => orderId);
    },
  };
  return withFaults(proc, 'mysql', states, ['statesOf', 'dueOf']);
}

/** Reads the rows about which waiting buyers are notified. */
export function notificationsRowsOf(proc: SimulatedProcess, { repositories }: SimulatedSystem): OrderNotificationRows {
  const rows: OrderNotificationRows = {
    notificationsOf: async (orderIds) => repositories.allOrders.filter(({ orderId }) => orderIds.includes(orderId)),
  };
  return withFaults(proc, 'mysql', rows, ['notificationsOf']);
}
