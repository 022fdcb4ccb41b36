import type { OrderNotificationRows } from '../../../src/core/ports/purchase-notifications.js';
import type { OrderStates } from '../../../src/core/ports/order-transitions.js';
import type { Life } from '../engine/simulated-process.js';
import { through } from '../engine/with-faults.js';
import type { Site } from '../simulated-system.js';

/** Where orders stand, as one plain read each. */
export function orderStatesOf(life: Life, { books }: Site): OrderStates {
  const states: OrderStates = {
    statesOf: async (orderIds) => {
      const found = books.allOrders.filter(({ orderId }) => orderIds.includes(orderId));
      return new Map(found.map(({ orderId, state }) => [orderId, state]));
    },
    dueOf: async (orderIds) => {
      const nowMs = books.clock.nowMs();
      const due = books.allOrders.filter(
        ({ orderId, state, expiresAtMs }) =>
          orderIds.includes(orderId) && state === 'pending_payment' && expiresAtMs !== null && expiresAtMs <= nowMs,
      );
      return due.map(({ orderId }) => orderId);
    },
  };
  return through(life, 'mysql', states, ['statesOf', 'dueOf']);
}

/** What buyers who wait are told of, read from the rows. */
export function notificationsRowsOf(life: Life, { books }: Site): OrderNotificationRows {
  const rows: OrderNotificationRows = {
    notificationsOf: async (orderIds) => books.allOrders.filter(({ orderId }) => orderIds.includes(orderId)),
  };
  return through(life, 'mysql', rows, ['notificationsOf']);
}
