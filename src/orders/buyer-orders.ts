import { assertNever, OperationalError } from '../core/errors.js';
import { isOrderId } from '../core/ids.js';
import { mayMove, type ShownOrder } from '../core/order.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type { AttemptEnd, AttemptName, DeclineBound, PaymentAttempts } from '../core/ports/payment-attempts.js';
import { PROVIDER_ASKED_AFTER_MS, type ChargeOutcome, type PaymentProvider } from '../core/ports/payment-provider.js';
import type { RefundRepository } from '../core/ports/refund-repository.js';
import { resolveAttempt } from './resolve-payments.js';

// What buyers may do with their orders: read, pay, cancel.

/**
 * Reads one order of a buyer; null when there is none. The order of another buyer is null too, so ids cannot be probed.
 * @throws OperationalError mysql
 */
export async function getOrder(
  orderId: string,
  userId: string,
  repository: Pick<OrderRepository, 'findOrder'>,
): Promise<ShownOrder | null> {
  if (!isOrderId(orderId)) return null;
  const order = await repository.findOrder(orderId);
  return order?.userId === userId ? order : null;
}

export interface PayPorts {
  readonly repository: Pick<OrderRepository, 'findOrder'>;
  readonly transitions: Pick<OrderTransitions, 'pay'>;
  readonly attempts: Pick<PaymentAttempts, 'open' | 'close' | 'openOf' | 'postpone'>;
  readonly refunds: Pick<RefundRepository, 'refundsOf'>;
  /** Null where none is configured: then payments only come by webhook. */
  readonly provider: PaymentProvider | null;
  readonly clock: Clock;
  readonly log: Log;
  /** Read for each charge; null, or left out: any number of charges may be declined. */
  readonly declineBound?: () => DeclineBound | null;
  /** Called with the outcome of each charge. */
  readonly charged?: (outcome: ChargeOutcome['outcome']) => void;
}

export interface PayRequest {
  readonly orderId: string;
  readonly userId: string;
  /** One key is one charge; null takes the default one of the order. */
  readonly key: string | null;
  /** What the provider calls the card of the buyer; null: not given. */
  readonly method: string | null;
}

/**
 * - `paid`: now or before
 * - `wrong_state`: the order has ended, and no money was taken
 * - `refund_due`: the order ended before the money came; it goes back, or has gone
 * - `payment_in_progress`: a charge with another key is under way or not resolved; nothing was charged by this call
 * - `declined`: the provider said no; another key may try again
 * - `decline_limit_reached`: too many charges of the order or of its buyer were declined; nothing was charged by this call
 * - `action_needed`: the bank of the buyer asks them first; then the same key gives the answer, or the webhook does
 * - `payment_method_needed`: the provider takes no money without one; nothing was charged
 * - `outcome_unknown`: the money may have been taken; the same key again gives the answer, and takes it only once
 * - `payment_not_configured`: there is no provider that could take money
 */
export type PayAnswer =
  | { readonly outcome: 'paid' | 'wrong_state' | 'refund_due'; readonly order: ShownOrder }
  | { readonly outcome: 'action_needed'; readonly order: ShownOrder; readonly clientSecret: string }
  | {
      readonly outcome:
        | 'not_found'
        | 'declined'
        | 'decline_limit_reached'
        | 'outcome_unknown'
        | 'payment_in_progress'
        | 'payment_method_needed'
        | 'payment_not_configured';
    };

/** The key of a request without one: its retries are one charge. */
const DEFAULT_KEY = 'order';
/** How long a request waits, in all, for the charge of another key: most providers answer within three seconds. */
const WAITS_MS = [50, 150, 300, 500, 1000, 1000];

/**
 * Pays an order: note the attempt, charge, then the move. One key at a time may charge; the others wait for a moment, and
 * answer by what came of it. A free order is paid without a charge. An order that was paid before is not charged again. When
 * an order has ended, this first finds out what came of its earlier charges. What dies in between is resolved by a keeper.
 * @throws OperationalError mysql, only when this call has charged nothing
 */
export async function payOrder(request: PayRequest, ports: PayPorts): Promise<PayAnswer> {
  const { orderId, userId } = request;
  const { attempts, provider, clock } = ports;
  const key = request.key ?? DEFAULT_KEY;
  for (const waitMs of [...WAITS_MS, null]) {
    const order = await getOrder(orderId, userId, ports.repository);
    if (order === null) return { outcome: 'not_found' };
    if (order.state === 'paid') return { outcome: 'paid', order };
    if (!mayMove(order.state, 'paid')) return answerEnded(order, ports);
    if (order.amountCents === 0) {
      await ports.transitions.pay(orderId, { paymentId: `free-${orderId}`, amountCents: 0 });
      continue; // it is read again: it may have ended meanwhile
    }
    if (provider === null) return { outcome: 'payment_not_configured' };
    if (provider.needsMethod && request.method === null) return { outcome: 'payment_method_needed' };

    const bound = ports.declineBound?.() ?? null;
    const opened = await attempts.open(orderId, key, order.amountCents, PROVIDER_ASKED_AFTER_MS, bound);
    if (opened.outcome === 'opened') return charge(order, { key, method: request.method }, { ...ports, provider });
    if (opened.outcome === 'decline_limit_reached') return opened;
    if (opened.outcome === 'wrong_state') continue; // it was moved since it was read
    if (opened.other.ageMs >= PROVIDER_ASKED_AFTER_MS) {
      if ((await resolveAttempt(opened.other, { ...ports, provider }, true)) === 'open') break;
    } else if (waitMs !== null) await clock.sleep(waitMs);
  }
  return { outcome: 'payment_in_progress' };
}

/** The one charge of this moment. */
async function charge(
  order: ShownOrder,
  { key, method }: { readonly key: string; readonly method: string | null },
  ports: PayPorts & { readonly provider: PaymentProvider },
): Promise<PayAnswer> {
  const { orderId, userId, amountCents, currency } = order;
  const answer = await ports.provider.charge(orderId, { amountCents, currency }, key, method ?? undefined);
  ports.charged?.(answer.outcome);
  if (answer.outcome === 'unknown') return { outcome: 'outcome_unknown' };
  if (answer.outcome === 'action_needed') return { ...answer, order };
  try {
    if (answer.outcome === 'declined') {
      await closeAttempt({ orderId, key }, 'declined', ports);
      return { outcome: 'declined' };
    }
    const moved = await ports.transitions.pay(orderId, answer.payment);
    const now = await getOrder(orderId, userId, ports.repository);
    if (moved === 'not_found' || moved === 'payment_conflict' || now === null) {
      const fields = { orderId, outcome: moved, ...answer.payment };
      ports.log.error(fields, 'money was taken that cannot be recorded: ask the provider');
      return { outcome: 'outcome_unknown' };
    }
    await closeAttempt({ orderId, key }, 'charged', ports);
    switch (moved) {
      case 'paid':
        return { outcome: 'paid', order: now };
      case 'refund_due': // another payment may have been faster: then the order is paid all the same
        return { outcome: now.state === 'paid' ? 'paid' : 'refund_due', order: now };
      default:
        return assertNever(moved);
    }
  } catch (error) {
    // The money is taken and perhaps not recorded. The same key finds the same payment and records it.
    if (error instanceof OperationalError) return { outcome: 'outcome_unknown' };
    throw error;
  }
}

/** A keeper finds it open otherwise, and closes it. */
async function closeAttempt(
  attempt: AttemptName,
  end: AttemptEnd,
  { attempts, log }: Pick<PayPorts, 'attempts' | 'log'>,
): Promise<void> {
  try {
    await attempts.close(attempt, end);
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    log.debug({ ...attempt, error: error.message }, 'a payment attempt stays open: a keeper closes it');
  }
}

/** An order that has ended: whether money was taken for it. @throws OperationalError mysql */
async function answerEnded(order: ShownOrder, ports: PayPorts): Promise<PayAnswer> {
  const { attempts, provider, refunds } = ports;
  const open = await attempts.openOf(order.orderId);
  for (const attempt of open) {
    if (provider === null) return { outcome: 'outcome_unknown' };
    const resolved = await resolveAttempt(attempt, { ...ports, provider }, true);
    if (resolved === 'open') return { outcome: 'outcome_unknown' };
  }
  const owed = (await refunds.refundsOf(order.orderId)).filter(({ amountCents: cents }) => cents > 0);
  if (owed.length > 0) return { outcome: 'refund_due', order };
  // A buyer may have opened more than are read at once: what became of those is not known yet.
  const hasMore = open.length > 0 && (await attempts.openOf(order.orderId)).length > 0;
  return hasMore ? { outcome: 'outcome_unknown' } : { outcome: 'wrong_state', order };
}

/**
 * - `cancelled`: now or before; the units go back
 * - `wrong_state`: it is paid or has ended otherwise
 * - `cancel_limit_reached`: the buyer has cancelled as many of this sale as they may; it stays until it is paid or expires
 */
export type CancelAnswer =
  | { readonly outcome: 'cancelled' | 'wrong_state'; readonly order: ShownOrder }
  | { readonly outcome: 'not_found' | 'cancel_limit_reached' };

export interface CancelPorts {
  readonly repository: Pick<OrderRepository, 'findOrder' | 'countCancelled'>;
  readonly transitions: Pick<OrderTransitions, 'cancel'>;
  /** How many orders of a sale a buyer may cancel; left out: any number. */
  readonly limit?: {
    /** Null: any number. */
    maxOf(saleId: string): number | null;
    /** Whether a buyer who has cancelled so many is refused. */
    refuses(): boolean;
  };
}

/**
 * Cancels an order that is not paid. Safe to repeat. Cancels of one buyer that arrive together are not counted for each
 * other, so the bound may be passed by as many orders as a buyer may have at a time.
 * @throws OperationalError mysql; it may be cancelled, so ask again
 */
export async function cancelOrder(
  orderId: string,
  userId: string,
  { repository, transitions, limit }: CancelPorts,
): Promise<CancelAnswer> {
  const before = await getOrder(orderId, userId, repository);
  if (before === null) return { outcome: 'not_found' };
  const max = mayMove(before.state, 'cancelled') ? (limit?.maxOf(before.saleId) ?? null) : null;
  if (max !== null && (await repository.countCancelled(before.saleId, userId)) >= max && limit?.refuses() === true) {
    return { outcome: 'cancel_limit_reached' };
  }
  const outcome = await transitions.cancel(orderId);
  const order = await getOrder(orderId, userId, repository);
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
