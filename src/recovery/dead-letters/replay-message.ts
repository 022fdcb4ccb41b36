import { decodeOrderEvents, type OrderEvent } from '../../core/order-event.js';
import { decodePaymentDeadline, type PaymentDeadline } from '../../core/payment-deadline.js';
import { GROUPS, TOPICS } from '../../core/topics.js';
import type { Clock } from '../../core/ports/clock.js';
import type { CouponRepository } from '../../core/ports/coupon-repository.js';
import type { DeadLetterRepository, StoredDeadLetter } from '../../core/ports/dead-letter-repository.js';
import type { DeadlineChannel, OrderEventChannel } from '../../core/ports/order-channels.js';
import type { OrderStates } from '../../core/ports/order-states.js';
import { followUntil } from './follow-until.js';
import { closeReplayed, type ReplayAnswer, type ReplayOptions } from './replay-answer.js';

export interface ReplayMessagePorts {
  readonly deadLetters: Pick<DeadLetterRepository, 'find' | 'beginReplay' | 'close' | 'keepParked'>;
  readonly deadlines: DeadlineChannel;
  readonly events: OrderEventChannel;
  readonly states: Pick<OrderStates, 'dueOf'>;
  readonly coupons: Pick<CouponRepository, 'withoutCoupon'>;
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
  deadLetter: StoredDeadLetter,
  ports: ReplayMessagePorts,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  return topic === TOPICS.paymentDeadline
    ? replayDeadline(deadLetter, ports, options)
    : replayEvents(deadLetter, ports, options);
}

async function replayEvents(
  { deadLetterId, group, body }: StoredDeadLetter,
  ports: ReplayMessagePorts,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  const { deadLetters, events, coupons, clock } = ports;
  const { actor } = options;
  const decoded = decodeOrderEvents(body);
  if (decoded.outcome !== 'decoded') return unreadable(deadLetterId, decoded.detail, deadLetters, actor);
  await deadLetters.beginReplay(deadLetterId, actor);
  await events.publish(decoded.events);
  if (group !== GROUPS.coupon) {
    // News leave no trace: who still waits has found out by a look, long before somebody replays a letter.
    const note = `published again: ${decoded.events.length} events; what comes of news is not followed`;
    return closeReplayed(deadLetterId, 'replayed', note, deadLetters, actor);
  }

  const paid = paidIn(decoded.events);
  const open = async (): Promise<number> => (await coupons.withoutCoupon(paid)).length;
  const left = await followUntil(open, (count) => count === 0, clock, options);
  if (left === 0) {
    const note = `published again: each of ${paid.length} paid orders has its coupon`;
    return closeReplayed(deadLetterId, 'replayed', note, deadLetters, actor);
  }
  return unfinished(deadLetterId, `${left} of ${paid.length} paid orders have no coupon`, deadLetters, actor);
}

const paidIn = (events: readonly OrderEvent[]): string[] => [
  ...new Set(events.flatMap(({ type, orders }) => (type === 'order.paid' ? orders : []))),
];

async function replayDeadline(
  { deadLetterId, body }: StoredDeadLetter,
  ports: ReplayMessagePorts,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  const { deadLetters, deadlines, states, clock } = ports;
  const { actor } = options;
  const decoded = decodePaymentDeadline(body);
  if (decoded.outcome !== 'decoded') return unreadable(deadLetterId, decoded.detail, deadLetters, actor);
  // At once, but never before its time: there it would only come again and again, and be a dead letter once more.
  const deadlineAtMs = Math.max(clock.nowMs(), decoded.deadline.deadlineAtMs);
  const deadline: PaymentDeadline = { ...decoded.deadline, deadlineAtMs };
  await deadLetters.beginReplay(deadLetterId, actor);
  await deadlines.publish(deadline);

  const open = async (): Promise<number> => (await states.dueOf(deadline.orders)).length;
  const left = await followUntil(open, (count) => count === 0, clock, options);
  const total = deadline.orders.length;
  if (left === 0) {
    return closeReplayed(
      deadLetterId,
      'replayed',
      `published again: none of ${total} orders is overdue`,
      deadLetters,
      actor,
    );
  }
  return unfinished(deadLetterId, `${left} of ${total} orders are unpaid and past their deadline`, deadLetters, actor);
}

async function unfinished(
  deadLetterId: string,
  what: string,
  deadLetters: ReplayMessagePorts['deadLetters'],
  actor: string,
): Promise<ReplayAnswer> {
  const note = `published again, ${what}`;
  await deadLetters.keepParked(deadLetterId, actor, note);
  return { outcome: 'unfinished', note };
}

async function unreadable(
  deadLetterId: string,
  detail: string,
  deadLetters: ReplayMessagePorts['deadLetters'],
  actor: string,
): Promise<ReplayAnswer> {
  const note = `cannot be read, so not replayed: ${detail}`;
  await deadLetters.keepParked(deadLetterId, actor, note);
  return { outcome: 'unreadable', note };
}
