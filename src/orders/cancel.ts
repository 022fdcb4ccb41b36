import { assertNever } from '../core/errors.js';
import type { Order } from '../core/order.js';
import type { OrderBook } from '../core/ports/order-book.js';
import type { OrderMoves } from '../core/ports/order-moves.js';
import { getOrder } from './get-order.js';

export interface CancelPorts {
  readonly book: Pick<OrderBook, 'findOrder'>;
  readonly moves: Pick<OrderMoves, 'cancel'>;
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
  if ((await getOrder(orderId, userId, ports.book)) === null) return { outcome: 'not_found' };
  const outcome = await ports.moves.cancel(orderId);
  const order = await getOrder(orderId, userId, ports.book);
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
