import { decodeOrderEvents } from '../domain/order-event.js';
import { decodePaymentDeadline, type PaymentDeadline } from '../domain/payment-deadline.js';
import { TOPICS } from '../domain/topics.js';
import type { Clock } from '../ports/clock.js';
import type { DeadLetterBook, StoredDeadLetter } from '../ports/dead-letters.js';
import type { DeadlineChannel, OrderEventChannel } from '../ports/order-channels.js';
import type { OrderStates } from '../ports/order-states.js';
import { followUntil } from './follow-until.js';
import { closeReplayed, type ReplayAnswer, type ReplayOptions } from './replay-answer.js';

export interface ReplayMessagePorts {
  readonly letters: Pick<DeadLetterBook, 'find' | 'beginReplay' | 'close' | 'keepParked'>;
  readonly deadlines: DeadlineChannel;
  readonly events: OrderEventChannel;
  readonly states: Pick<OrderStates, 'dueOf'>;
  readonly clock: Clock;
}

/**
 * Publishes a message again that follows from orders: a deadline, which shows itself at once, or events. Every group of
 * the topic gets it, and none does anything a second time. Safe to repeat after a death at any point.
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
  { letterId, body }: StoredDeadLetter,
  { letters, events }: ReplayMessagePorts,
  { actor }: ReplayOptions,
): Promise<ReplayAnswer> {
  const decoded = decodeOrderEvents(body);
  if (decoded.outcome !== 'decoded') return unreadable(letterId, decoded.detail, letters, actor);
  await letters.beginReplay(letterId, actor);
  await events.publish(decoded.events);
  return closeReplayed(letterId, 'replayed', `published again: ${decoded.events.length} events`, letters, actor);
}

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
  const note = `published again, ${left} of ${total} orders are unpaid and past their deadline`;
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
