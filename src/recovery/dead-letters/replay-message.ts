import { decodeOrderEvents, type OrderEvent } from '../../core/order-event.js';
import { decodePaymentDeadline, type PaymentDeadline } from '../../core/payment-deadline.js';
import { GROUPS, TOPICS } from '../../core/topics.js';
import type { Clock } from '../../core/ports/clock.js';
import type { CouponBook } from '../../core/ports/coupon-book.js';
import type { DeadLetterBook, StoredDeadLetter } from '../../core/ports/dead-letters.js';
import type { DeadlineChannel, OrderEventChannel } from '../../core/ports/order-channels.js';
import type { OrderStates } from '../../core/ports/order-states.js';
import { followUntil } from './follow-until.js';
import { closeReplayed, type ReplayAnswer, type ReplayOptions } from './replay-answer.js';

export interface ReplayMessagePorts {
  readonly letters: Pick<DeadLetterBook, 'find' | 'beginReplay' | 'close' | 'keepParked'>;
  readonly deadlines: DeadlineChannel;
  readonly events: OrderEventChannel;
  readonly states: Pick<OrderStates, 'dueOf'>;
  readonly coupons: Pick<CouponBook, 'withoutCoupon'>;
  readonly clock: Clock;
}

/**
 * Publishes a message again that follows from orders, a deadline or events, and follows it to what shows that it was
 * worked on. Every group of the topic gets it, and none does anything a second time. Safe to repeat after a death at any
 * point.
 * @throws OperationalError; the letter is still `parked` and may be replayed again
 */
export function replayMessage(
  topic: typeof TOPICS.paymentDeadline | typeof TOPICS.orderEvent,
  letter: StoredDeadLetter,
  ports: ReplayMessagePorts,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  return topic === TOPICS.paymentDeadline
    ? replayDeadline(letter, ports, options)
    : replayEvents(letter, ports, options);
}

async function replayEvents(
  { letterId, group, body }: StoredDeadLetter,
  ports: ReplayMessagePorts,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  const { letters, events, coupons, clock } = ports;
  const { actor } = options;
  const decoded = decodeOrderEvents(body);
  if (decoded.outcome !== 'decoded') return unreadable(letterId, decoded.detail, letters, actor);
  await letters.beginReplay(letterId, actor);
  await events.publish(decoded.events);
  if (group !== GROUPS.coupon) {
    // News leave no trace: who still waits has found out by a look, long before somebody replays a letter.
    const note = `published again: ${decoded.events.length} events; what comes of news is not followed`;
    return closeReplayed(letterId, 'replayed', note, letters, actor);
  }

  const paid = paidIn(decoded.events);
  const open = async (): Promise<number> => (await coupons.withoutCoupon(paid)).length;
  const left = await followUntil(open, (count) => count === 0, clock, options);
  if (left === 0) {
    const note = `published again: each of ${paid.length} paid orders has its coupon`;
    return closeReplayed(letterId, 'replayed', note, letters, actor);
  }
  return unfinished(letterId, `${left} of ${paid.length} paid orders have no coupon`, letters, actor);
}

const paidIn = (events: readonly OrderEvent[]): string[] => [
  ...new Set(events.flatMap(({ type, orders }) => (type === 'order.paid' ? orders : []))),
];

async function replayDeadline(
  { letterId, body }: StoredDeadLetter,
  ports: ReplayMessagePorts,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  const { letters, deadlines, states, clock } = ports;
  const { actor } = options;
  const decoded = decodePaymentDeadline(body);
  if (decoded.outcome !== 'decoded') return unreadable(letterId, decoded.detail, letters, actor);
  // At once, but never before its time: there it would only come again and again, and be a dead letter once more.
  const deadlineAtMs = Math.max(clock.nowMs(), decoded.deadline.deadlineAtMs);
  const deadline: PaymentDeadline = { ...decoded.deadline, deadlineAtMs };
  await letters.beginReplay(letterId, actor);
  await deadlines.publish(deadline);

  const open = async (): Promise<number> => (await states.dueOf(deadline.orders)).length;
  const left = await followUntil(open, (count) => count === 0, clock, options);
  const total = deadline.orders.length;
  if (left === 0) {
    return closeReplayed(letterId, 'replayed', `published again: none of ${total} orders is overdue`, letters, actor);
  }
  return unfinished(letterId, `${left} of ${total} orders are unpaid and past their deadline`, letters, actor);
}

async function unfinished(
  letterId: string,
  what: string,
  letters: ReplayMessagePorts['letters'],
  actor: string,
): Promise<ReplayAnswer> {
  const note = `published again, ${what}`;
  await letters.keepParked(letterId, actor, note);
  return { outcome: 'unfinished', note };
}

async function unreadable(
  letterId: string,
  detail: string,
  letters: ReplayMessagePorts['letters'],
  actor: string,
): Promise<ReplayAnswer> {
  const note = `cannot be read, so not replayed: ${detail}`;
  await letters.keepParked(letterId, actor, note);
  return { outcome: 'unreadable', note };
}
