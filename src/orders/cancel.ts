import { assertNever } from '../core/errors.js';
import type { Order } from '../core/order.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import { getOrder } from './get-order.js';

export interface CancelPorts {
  readonly repository: Pick<OrderRepository, 'findOrder'>;
  readonly moves: Pick<OrderTransitions, 'cancel'>;
}

/**
 * - `cancelled`: now or before; the units go back
 * - `wrong_state`: it is paid or has ended otherwise
 */
export type CancelAnswer =
  { readonly outcome: 'cancelled' | 'wrong_state'; readonly order: Order } | { readonly outcome: 'not_found' };

/**
 * A buyer gives up an order that is not paid. Safe to repeat.
 * @throws OperationalError mysql; it may be cancelled, so ask again
 */
export async function cancelOrder(orderId: string, userId: string, ports: CancelPorts): Promise<CancelAnswer> {
  if ((await getOrder(orderId, userId, ports.repository)) === null) return { outcome: 'not_found' };
  const outcome = await ports.moves.cancel(orderId);
  const order = await getOrder(orderId, userId, ports.repository);
  if (order === null) return { outcome: 'not_found' };
  switch (outcome) {
    case 'cancelled':
    case 'wrong_state':
      return { outcome, order };
    case 'not_found':
      return { outcome };
    default:
      return assertNever(outcome);
  }
}
