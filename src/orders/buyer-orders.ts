import { offerOf, type CouponRefusal } from '../core/coupon.js';
import { assertNever, OperationalError } from '../core/errors.js';
import { isOrderId } from '../core/ids.js';
import { freePaymentId, isUnpaid, type ShownOrder } from '../core/order.js';
import type { Clock } from '../core/ports/clock.js';
import type { Coupons } from '../core/ports/coupons.js';
import type { Log } from '../core/ports/log.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type {
  AttemptEnd,
  AttemptName,
  CouponUse,
  DeclineBound,
  PaymentAttempts,
} from '../core/ports/payment-attempts.js';
import {
  PROVIDER_ASKED_AFTER_MS,
  type ChargeOutcome,
  type PaymentProvider,
  type PriceFault,
} from '../core/ports/payment-provider.js';
import type { RefundRepository } from '../core/ports/refund-repository.js';
import { resolveAttempt } from './resolve-payments.js';

// The actions of buyers on their orders: read, pay, cancel.

/** Null if the order is missing or another buyer's, so ids cannot be probed. @throws OperationalError mysql */
export async function getOrder(
  orderId: string,
  userId: string,
  repository: OrderRepository,
): Promise<ShownOrder | null> {
  if (!isOrderId(orderId)) return null;
  const order = await repository.findOrder(orderId);
  return order?.userId === userId ? order : null;
}

export interface PayPorts {
  readonly repository: OrderRepository;
  readonly transitions: OrderTransitions;
  readonly attempts: PaymentAttempts;
  readonly refunds: RefundRepository;
  /** Null if no provider is configured: payments then come only by webhook. */
  readonly provider: PaymentProvider | null;
  readonly clock: Clock;
  readonly log: Log;
  /** Read before each charge. No limit if null or omitted. */
  readonly declineBound?: () => DeclineBound | null;
  /** If omitted, buyers have no coupons. */
  readonly coupons?: Coupons;
  /** Returns why the provider cannot charge the amount that remains after a coupon. */
  readonly faultOf?: PriceFault;
  readonly charged?: (outcome: ChargeOutcome['outcome']) => void;
}

export interface PayRequest {
  readonly orderId: string;
  readonly userId: string;
  /** Equal keys mean the same charge. Null stands for the default key of the order. */
  readonly key: string | null;
  /** The provider's name for the buyer's card, if given. */
  readonly method: string | null;
  readonly coupon?: string;
}

/**
 * - `paid`: by this call or before
 * - `wrong_state`: the order has ended; no money was taken
 * - `refund_due`: the order ended before the money arrived; the money is being or was returned
 * - `payment_in_progress`: a charge with another key is under way or unresolved; this call charged nothing
 * - `declined`: by the provider; the buyer may try again with another key
 * - `decline_limit_reached`: too many declined charges of the order or its buyer; this call charged nothing
 * - `action_needed`: the bank wants the buyer's confirmation; then a call with the same key or the webhook answers
 * - `payment_method_needed`: nothing was charged
 * - `outcome_unknown`: the money may be taken; a call with the same key answers and takes it only once
 * - `payment_not_configured`: no payment provider is configured
 * - `coupon_refused`: the order cannot use the coupon; nothing was charged
 */
export type PayAnswer =
  | { readonly outcome: 'paid' | 'wrong_state' | 'refund_due'; readonly order: ShownOrder }
  | { readonly outcome: 'action_needed'; readonly order: ShownOrder; readonly clientSecret: string }
  | { readonly outcome: 'coupon_refused'; readonly why: CouponRefusal }
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

/** The key of a request that names neither a key nor a coupon, so that its retries are the same charge. */
const DEFAULT_KEY = 'order';
/** Pauses while a charge with another key is under way. Most providers answer within three seconds. */
const WAITS_MS = [50, 150, 300, 500, 1000, 1000];

/**
 * Pays an order: stores the attempt, charges, then moves the order. Only one key at a time may charge; other keys wait
 * briefly, then answer with the result of that charge. Free and paid orders are not charged. If the order has ended,
 * its earlier charges are resolved first. If this process dies, a keeper resolves the payment.
 * @throws OperationalError mysql, only if this call has charged nothing
 */
export async function payOrder(request: PayRequest, ports: PayPorts): Promise<PayAnswer> {
  const { orderId, userId } = request;
  const { attempts, provider, clock } = ports;
  const key = request.key ?? (request.coupon === undefined ? DEFAULT_KEY : `coupon-${request.coupon}`);
  for (const waitMs of [...WAITS_MS, null]) {
    const order = await getOrder(orderId, userId, ports.repository);
    if (order === null) return { outcome: 'not_found' };
    if (order.state === 'paid') return { outcome: 'paid', order };
    if (!isUnpaid(order.state)) return answerEnded(order, ports);
    if (order.amountCents === 0) {
      await ports.transitions.pay(orderId, { paymentId: freePaymentId(orderId), amountCents: 0 });
      continue; // read the order again, because it may have ended in the meantime
    }
    const coupon = request.coupon === undefined ? null : await couponFor(order, request.coupon, ports);
    if (typeof coupon === 'string') return { outcome: 'coupon_refused', why: coupon };
    const amountCents = order.amountCents - (coupon?.discountCents ?? 0);
    if (amountCents > 0) {
      if (provider === null) return { outcome: 'payment_not_configured' };
      if (provider.needsMethod && request.method === null) return { outcome: 'payment_method_needed' };
    }

    const bound = amountCents > 0 ? (ports.declineBound?.() ?? null) : null;
    const opened = await attempts.open(orderId, key, amountCents, PROVIDER_ASKED_AFTER_MS, bound, coupon);
    if (opened.outcome === 'decline_limit_reached' || opened.outcome === 'coupon_refused') return opened;
    if (opened.outcome === 'wrong_state') continue; // the order was moved after it was read
    if (opened.outcome === 'paid') {
      const paid = await getOrder(orderId, userId, ports.repository);
      return paid === null ? { outcome: 'not_found' } : { outcome: 'paid', order: paid };
    }
    if (provider === null) return { outcome: 'payment_in_progress' };
    if (opened.outcome === 'opened') {
      return charge({ ...order, amountCents }, { key, method: request.method }, { ...ports, provider });
    }
    if (opened.other.ageMs >= PROVIDER_ASKED_AFTER_MS) {
      if ((await resolveAttempt(opened.other, { ...ports, provider }, true)) === 'open') break;
    } else if (waitMs !== null) await clock.sleep(waitMs);
  }
  return { outcome: 'payment_in_progress' };
}

async function couponFor(
  order: ShownOrder,
  code: string,
  { coupons, faultOf }: PayPorts,
): Promise<CouponUse | CouponRefusal> {
  const discountCents = offerOf((await coupons?.find(code)) ?? null, order);
  if (typeof discountCents === 'string') return discountCents;
  const left = { amountCents: order.amountCents - discountCents, currency: order.currency };
  return (faultOf?.(left) ?? null) === null ? { code, discountCents } : 'not_chargeable';
}

/** Charges the order. No other charge of the order may be under way. */
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
    if ((moved !== 'paid' && moved !== 'refund_due') || now === null) {
      const fields = { orderId, outcome: moved, ...answer.payment };
      ports.log.error(fields, 'money was taken that cannot be recorded; ask the provider');
      return { outcome: 'outcome_unknown' };
    }
    await closeAttempt({ orderId, key }, 'charged', ports);
    switch (moved) {
      case 'paid':
        return { outcome: 'paid', order: now };
      case 'refund_due': // another payment may have been faster; then the order is paid anyway
        return { outcome: now.state === 'paid' ? 'paid' : 'refund_due', order: now };
      default:
        return assertNever(moved);
    }
  } catch (error) {
    // The money is taken but may not be recorded. A call with the same key finds the same payment and records it.
    if (error instanceof OperationalError) return { outcome: 'outcome_unknown' };
    throw error;
  }
}

/** Closes an attempt. If this fails, a keeper finds the attempt open and closes it. */
async function closeAttempt(attempt: AttemptName, end: AttemptEnd, { attempts, log }: PayPorts): Promise<void> {
  try {
    await attempts.close(attempt, end);
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    log.debug({ ...attempt, error: error.message }, 'a payment attempt stays open: a keeper closes it');
  }
}

/** The answer for an ended order depends on whether money was taken. @throws OperationalError mysql */
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
  // A buyer may have opened more attempts than one read returns. The outcome of the others is not known yet.
  const hasMore = open.length > 0 && (await attempts.openOf(order.orderId)).length > 0;
  return hasMore ? { outcome: 'outcome_unknown' } : { outcome: 'wrong_state', order };
}

/**
 * - `cancelled`: by this call or before; the units go back
 * - `wrong_state`: the order is paid or has ended otherwise
 * - `cancel_limit_reached`: the buyer has used up the cancellations in this sale; the order stays
 */
export type CancelAnswer =
  | { readonly outcome: 'cancelled' | 'wrong_state'; readonly order: ShownOrder }
  | { readonly outcome: 'not_found' | 'cancel_limit_reached' };

export interface CancelPorts {
  readonly repository: OrderRepository;
  readonly transitions: OrderTransitions;
  /** Limits how many orders of a sale a buyer may cancel. No limit if omitted. */
  readonly limit?: {
    /** Null: no limit. */
    maxOf(saleId: string): number | null;
    /** Returns whether a buyer who has reached the limit is refused. */
    refuses(): boolean;
  };
}

/**
 * Cancels an unpaid order. Safe to repeat. Concurrent cancellations do not count each other, so a buyer may exceed the
 * limit by the number of orders they may have at a time.
 * @throws OperationalError mysql; the order may be cancelled, so call again
 */
export async function cancelOrder(
  orderId: string,
  userId: string,
  { repository, transitions, limit }: CancelPorts,
): Promise<CancelAnswer> {
  const before = await getOrder(orderId, userId, repository);
  if (before === null) return { outcome: 'not_found' };
  const max = isUnpaid(before.state) ? (limit?.maxOf(before.saleId) ?? null) : null;
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
