import type { OrderState } from '../order.js';

/** Where orders stand now. */
export interface OrderStates {
  /**
   * @returns order id → state; an order that is not there is absent
   * @throws OperationalError mysql
   */
  statesOf(orderIds: readonly string[]): Promise<Map<string, OrderState>>;

  /**
   * Those of these orders that are unpaid and past their deadline, on the time of MySQL.
   * @throws OperationalError mysql
   */
  dueOf(orderIds: readonly string[]): Promise<string[]>;
}
