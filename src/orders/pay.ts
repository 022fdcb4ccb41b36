import { assertNever, OperationalError } from '../core/errors.js';
import { mayMove, type Order } from '../core/order.js';
import type { Log } from '../core/ports/log.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type { PaymentProvider } from '../core/ports/payment-provider.js';
import { getOrder } from './get-order.js';

export interface PayPorts {
  readonly repository: Pick<OrderRepository, 'findOrder'>;
  readonly moves: Pick<OrderTransitions, 'pay'>;
  /** Null where none is configured: payments are only told, by webhook. */
  readonly provider: PaymentProvider | null;
  readonly log: Log;
}

export interface PayRequest {
  readonly orderId: string;
  readonly userId: string;
  /** One key is one charge; null takes the one that an order has by itself. */
  readonly key: string | null;
}

/**
 * - `paid`: now or before
 * - `wrong_state`: the order has ended; no money was taken
 * - `refund_due`: the order ended while the money was on its way; it goes back
 * - `declined`: the provider said no; another key may try again
 * - `outcome_unknown`: the money may have been taken; the same key asked again tells, and takes it only once
 * - `payment_not_configured`: nobody here can take money
 */
export type PayAnswer =
  | { readonly outcome: 'paid' | 'wrong_state' | 'refund_due'; readonly order: Order }
  | { readonly outcome: 'not_found' | 'declined' | 'outcome_unknown' | 'payment_not_configured' };

/** The key of a buyer who names none: his retries are one charge. */
const DEFAULT_KEY = 'order';

/**
 * A buyer pays his order: charge, then the move. An order that was paid before is not charged again.
 * @throws OperationalError mysql, only when nothing was charged
 */
export async function payOrder(request: PayRequest, ports: PayPorts): Promise<PayAnswer> {
  const { orderId, userId } = request;
  const order = await getOrder(orderId, userId, ports.repository);
  if (order === null) return { outcome: 'not_found' };
  if (order.state === 'paid') return { outcome: 'paid', order };
  if (!mayMove(order.state, 'paid')) return { outcome: 'wrong_state', order };
  if (ports.provider === null) return { outcome: 'payment_not_configured' };

  const charge = await ports.provider.charge(orderId, order.amountCents, request.key ?? DEFAULT_KEY);
  if (charge.outcome === 'declined') return { outcome: 'declined' };
  if (charge.outcome === 'unknown') return { outcome: 'outcome_unknown' };
  try {
    const told = await ports.moves.pay(orderId, charge.payment);
    const now = await getOrder(orderId, userId, ports.repository);
    if (told === 'not_found' || told === 'payment_conflict' || now === null) {
      ports.log.error({ orderId, told, ...charge.payment }, 'money was taken that cannot be booked: ask the provider');
      return { outcome: 'outcome_unknown' };
    }
    switch (told) {
      case 'paid':
        return { outcome: 'paid', order: now };
      case 'refund_due': // another payment may have been quicker: then the order is paid all the same
        return { outcome: now.state === 'paid' ? 'paid' : 'refund_due', order: now };
      default:
        return assertNever(told);
    }
  } catch (error) {
    // The money is taken and perhaps not recorded. The same key finds the same payment and records it.
    if (error instanceof OperationalError) return { outcome: 'outcome_unknown' };
    throw error;
  }
}
