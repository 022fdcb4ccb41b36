import { type Batch, decodeBatch } from '../../core/batch.js';
import { assertNever } from '../../core/errors.js';
import { decodeOrderEvents, type OrderEvent } from '../../core/order-event.js';
import { isLive, type Order } from '../../core/order.js';
import { decodePaymentDeadline, type PaymentDeadline } from '../../core/payment-deadline.js';
import type { BatchStore } from '../../core/ports/batch-store.js';
import type { Clock } from '../../core/ports/clock.js';
import type { CouponRepository, OrderRepository } from '../../core/ports/order-repository.js';
import type { DeadlineChannel, OrderEventChannel, RedriveChannel } from '../../core/ports/channels.js';
import type { OrderStates } from '../../core/ports/order-transitions.js';
import { GROUP_TOPICS, GROUPS, type Topic, TOPICS } from '../../core/topics.js';
import { closeDeadLetter, type DeadLetterStore, type NotParked, type StoredDeadLetter } from './dead-letter-store.js';

/** Pause before the first read. A worker needs milliseconds. While it is busy, the pause doubles with each read. */
const READ_FIRST_MS = 25;
const READ_PAUSE_MAX_MS = 500;

/** Reads until `isDone` is true, the wait is over or the signal aborts. @returns the last value read */
async function followUntil<T>(
  read: () => Promise<T>,
  isDone: (seen: T) => boolean,
  clock: Clock,
  { waitMs, signal }: Pick<ReplayOptions, 'waitMs' | 'signal'>,
): Promise<T> {
  const deadlineMs = clock.monotonicMs() + waitMs;
  let pauseMs = READ_FIRST_MS;
  for (;;) {
    const seen = await read();
    if (isDone(seen) || clock.monotonicMs() >= deadlineMs || signal?.aborted === true) return seen;
    await clock.sleep(Math.min(pauseMs, deadlineMs - clock.monotonicMs()), signal);
    pauseMs = Math.min(pauseMs * 2, READ_PAUSE_MAX_MS);
  }
}

export interface ReplayOptions {
  readonly actor: string;
  /** How long to wait until consumers have processed the published message, ms. */
  readonly waitMs: number;
  /** Ends the wait early. The dead letter can then be replayed again. */
  readonly signal?: AbortSignal;
}

/**
 * - `replayed`: published and processed: purchases have rows, deadlines ended orders, paid orders have coupons. Other
 *   effects of order events cannot be observed
 * - `already_recorded`: every purchase had its row, so nothing was published
 * - `already_closed`: replayed or discarded before
 * - `unfinished`: published, but not processed in time. This one and the following stay `parked`
 * - `unreadable`: no consumer could process the body
 * - `not_held`: Redis holds no units for the batch, so it must not become orders
 * - `forged`: none of our programs signed it, and a replay would sign it
 */
export type ReplayAnswer =
  | { readonly outcome: 'replayed' | 'already_recorded' | KeptOutcome; readonly note: string }
  | NotParked;
type KeptOutcome = 'unfinished' | 'unreadable' | 'not_held' | 'forged';

async function closeReplayed(
  deadLetterId: string,
  outcome: 'replayed' | 'already_recorded',
  note: string,
  deadLetters: Pick<DeadLetterStore, 'find' | 'close'>,
  actor: string,
): Promise<ReplayAnswer> {
  return (await closeDeadLetter(deadLetterId, 'replayed', note, deadLetters, actor)) ?? { outcome, note };
}

async function keepParked(
  deadLetterId: string,
  outcome: KeptOutcome,
  note: string,
  deadLetters: Pick<DeadLetterStore, 'keepParked'>,
  actor: string,
): Promise<ReplayAnswer> {
  await deadLetters.keepParked(deadLetterId, actor, note);
  return { outcome, note };
}

const unreadable = (
  deadLetterId: string,
  detail: string,
  deadLetters: Pick<DeadLetterStore, 'keepParked'>,
  actor: string,
): Promise<ReplayAnswer> =>
  keepParked(deadLetterId, 'unreadable', `not replayed, because it cannot be read: ${detail}`, deadLetters, actor);

interface ReplayMessagePorts {
  readonly deadLetters: Pick<DeadLetterStore, 'find' | 'beginReplay' | 'close' | 'keepParked'>;
  readonly deadlines: DeadlineChannel;
  readonly events: OrderEventChannel;
  readonly states: Pick<OrderStates, 'dueOf'>;
  readonly coupons: Pick<CouponRepository, 'withoutCoupon'>;
  readonly clock: Clock;
}

/** Waits until the events take effect. Groups ignore handled events, so a repeat is safe. @throws OperationalError */
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
    // Notifications leave no trace. Buyers who were waiting have polled the result long before a replay.
    const note = `published again: ${decoded.events.length} events; notifications are not followed`;
    return closeReplayed(deadLetterId, 'replayed', note, deadLetters, actor);
  }

  const paid = paidIn(decoded.events);
  const open = async (): Promise<number> => (await coupons.withoutCoupon(paid)).length;
  const left = await followUntil(open, (count) => count === 0, clock, options);
  if (left === 0) {
    const note = `published again: each of ${paid.length} paid orders has its coupon`;
    return closeReplayed(deadLetterId, 'replayed', note, deadLetters, actor);
  }
  const note = `published again, ${left} of ${paid.length} paid orders have no coupon`;
  return keepParked(deadLetterId, 'unfinished', note, deadLetters, actor);
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
  // Publishes no earlier than the deadline, because an early message would end as a dead letter again.
  const deadlineAtMs = Math.max(clock.nowMs(), decoded.deadline.deadlineAtMs);
  const deadline: PaymentDeadline = { ...decoded.deadline, deadlineAtMs };
  await deadLetters.beginReplay(deadLetterId, actor);
  await deadlines.publish(deadline);

  const open = async (): Promise<number> => (await states.dueOf(deadline.orders)).length;
  const left = await followUntil(open, (count) => count === 0, clock, options);
  const total = deadline.orders.length;
  if (left === 0) {
    const note = `published again: none of ${total} orders is overdue`;
    return closeReplayed(deadLetterId, 'replayed', note, deadLetters, actor);
  }
  const note = `published again, ${left} of ${total} orders are unpaid and past their deadline`;
  return keepParked(deadLetterId, 'unfinished', note, deadLetters, actor);
}

export interface ReplayPorts extends ReplayMessagePorts {
  readonly store: Pick<BatchStore, 'unpark' | 'markRecorded'>;
  readonly repository: Pick<OrderRepository, 'findByPurchases'>;
  readonly channel: RedriveChannel;
}

const TOPIC_OF: ReadonlyMap<string, Topic> = new Map(Object.entries(GROUP_TOPICS));

/** A batch goes to the workers, other messages to their own topics. @throws OperationalError; it is still `parked` */
export async function replayDeadLetter(
  deadLetterId: string,
  ports: ReplayPorts,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  const deadLetter = await ports.deadLetters.find(deadLetterId);
  if (deadLetter === null) return { outcome: 'not_found' };
  if (deadLetter.state !== 'parked') return { outcome: 'already_closed', state: deadLetter.state };
  if (deadLetter.reason === 'forged') {
    const note = 'forged, so it cannot be replayed';
    return keepParked(deadLetterId, 'forged', note, ports.deadLetters, options.actor);
  }
  const topic = TOPIC_OF.get(deadLetter.group);
  if (topic === TOPICS.paymentDeadline) return replayDeadline(deadLetter, ports, options);
  if (topic === TOPICS.orderEvent) return replayEvents(deadLetter, ports, options);
  return replayBatch(deadLetter, ports, options);
}

/** Waits for the rows. Repeatable: in `pending` before it is published (protocol rule 8). @throws OperationalError */
async function replayBatch(
  { deadLetterId, body }: StoredDeadLetter,
  ports: ReplayPorts,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  const keep = (outcome: KeptOutcome, note: string): Promise<ReplayAnswer> =>
    keepParked(deadLetterId, outcome, note, ports.deadLetters, options.actor);
  const decoded = decodeBatch(body);
  if (decoded.outcome !== 'decoded')
    return keep('unreadable', `not a batch, so it cannot be replayed: ${decoded.detail}`);
  const { batch } = decoded;

  const before = await rowsOf(batch, ports);
  if (before !== null && before.every((row) => row.batchId === batch.batchId)) {
    return closed(deadLetterId, batch, before, 'already_recorded', ports, options);
  }
  await ports.deadLetters.beginReplay(deadLetterId, options.actor);
  const word = await ports.store.unpark(batch);
  switch (word) {
    case 'unparked':
    case 'already_pending':
      await ports.channel.publish(batch);
      break;
    case 'recorded':
    case 'aborted':
    case 'unknown':
      if (before !== null) return closed(deadLetterId, batch, before, 'already_recorded', ports, options);
      return keep('not_held', `its units are not held (${word}), so it cannot be replayed`);
    default:
      return assertNever(word);
  }
  const rows = await followUntil(
    () => rowsOf(batch, ports),
    (found) => found !== null,
    ports.clock,
    options,
  );
  if (rows !== null) return closed(deadLetterId, batch, rows, 'replayed', ports, options);
  return keep('unfinished', `published again, but not every purchase has its row yet`);
}

/** Finds the rows of the batch, or null while a purchase has no row. */
async function rowsOf(batch: Batch, { repository }: ReplayPorts): Promise<Order[] | null> {
  const rows = await repository.findByPurchases(batch.saleId, batch.purchases);
  return rows.length === batch.purchases.length ? rows : null;
}

/** Marks the batch as recorded in Redis in case the worker did not, because no keeper would find it later. */
async function closed(
  deadLetterId: string,
  batch: Batch,
  rows: readonly Order[],
  outcome: 'replayed' | 'already_recorded',
  { deadLetters, store }: ReplayPorts,
  { actor }: ReplayOptions,
): Promise<ReplayAnswer> {
  const live = rows.filter((row) => isLive(row.state));
  if (outcome === 'already_recorded') await store.markRecorded([{ batch, orders: live }]);
  const when = outcome === 'replayed' ? 'recorded' : 'was already recorded';
  const note = `${when}: ${live.length} live, ${rows.length - live.length} ended`;
  return closeReplayed(deadLetterId, outcome, note, deadLetters, actor);
}
