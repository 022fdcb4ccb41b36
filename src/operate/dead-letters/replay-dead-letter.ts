import { type Batch, decodeBatch } from '../../core/batch.js';
import { assertNever } from '../../core/errors.js';
import { decodeOrderEvents, type OrderEvent } from '../../core/order-event.js';
import { isLive, type Order } from '../../core/order.js';
import { decodePaymentDeadline } from '../../core/payment-deadline.js';
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
  { waitMs, signal }: ReplayOptions,
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

/** How a replay of one dead letter proceeds and ends. */
interface Replaying {
  begin(): Promise<unknown>;
  closed(outcome: 'replayed' | 'already_recorded', note: string): Promise<ReplayAnswer>;
  /** The dead letter stays `parked`. */
  kept(outcome: KeptOutcome, note: string): Promise<ReplayAnswer>;
  /** Reads how many items are open until there are none, or the wait is over. */
  follow(open: () => Promise<number>): Promise<number>;
}

export interface ReplayPorts {
  readonly deadLetters: DeadLetterStore;
  readonly store: BatchStore;
  readonly repository: OrderRepository;
  readonly channel: RedriveChannel;
  readonly deadlines: DeadlineChannel;
  readonly events: OrderEventChannel;
  readonly dueOf: OrderStates['dueOf'];
  readonly withoutCoupon: CouponRepository['withoutCoupon'];
  readonly clock: Clock;
}

const TOPIC_OF: ReadonlyMap<string, Topic> = new Map(Object.entries(GROUP_TOPICS));

/** A batch goes to the workers, other messages to their own topics. @throws OperationalError; it is still `parked` */
export async function replayDeadLetter(
  deadLetterId: string,
  ports: ReplayPorts,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  const { deadLetters, clock } = ports;
  const { actor } = options;
  const deadLetter = await deadLetters.find(deadLetterId);
  if (deadLetter === null) return { outcome: 'not_found' };
  if (deadLetter.state !== 'parked') return { outcome: 'already_closed', state: deadLetter.state };
  const replaying: Replaying = {
    begin: () => deadLetters.beginReplay(deadLetterId, actor),
    closed: async (outcome, note) =>
      (await closeDeadLetter(deadLetterId, 'replayed', note, deadLetters, actor)) ?? { outcome, note },
    async kept(outcome, note) {
      await deadLetters.keepParked(deadLetterId, actor, note);
      return { outcome, note };
    },
    follow: (open) => followUntil(open, (count) => count === 0, clock, options),
  };
  if (deadLetter.reason === 'forged') return replaying.kept('forged', 'forged, so it cannot be replayed');
  const topic = TOPIC_OF.get(deadLetter.group);
  if (topic === TOPICS.paymentDeadline) return replayDeadline(deadLetter, ports, replaying);
  if (topic === TOPICS.orderEvent) return replayEvents(deadLetter, ports, replaying);
  return replayBatch(deadLetter, ports, replaying, options);
}

const unreadable = (replaying: Replaying, detail: string): Promise<ReplayAnswer> =>
  replaying.kept('unreadable', `not replayed, because it cannot be read: ${detail}`);

/** Waits until the events take effect. Groups ignore handled events, so a repeat is safe. @throws OperationalError */
async function replayEvents(
  { group, body }: StoredDeadLetter,
  { events, withoutCoupon }: ReplayPorts,
  replaying: Replaying,
): Promise<ReplayAnswer> {
  const decoded = decodeOrderEvents(body);
  if (decoded.outcome !== 'decoded') return unreadable(replaying, decoded.detail);
  await replaying.begin();
  await events.publish(decoded.events);
  if (group !== GROUPS.coupon) {
    // Notifications leave no trace. Buyers who were waiting have polled the result long before a replay.
    const note = `published again: ${decoded.events.length} events; notifications are not followed`;
    return replaying.closed('replayed', note);
  }
  const paid = paidIn(decoded.events);
  const left = await replaying.follow(async () => (await withoutCoupon(paid)).length);
  return left === 0
    ? replaying.closed('replayed', `published again: each of ${paid.length} paid orders has its coupon`)
    : replaying.kept('unfinished', `published again, ${left} of ${paid.length} paid orders have no coupon`);
}

const paidIn = (events: readonly OrderEvent[]): string[] => [
  ...new Set(events.flatMap(({ type, orders }) => (type === 'order.paid' ? orders : []))),
];

async function replayDeadline(
  { body }: StoredDeadLetter,
  { deadlines, dueOf, clock }: ReplayPorts,
  replaying: Replaying,
): Promise<ReplayAnswer> {
  const decoded = decodePaymentDeadline(body);
  if (decoded.outcome !== 'decoded') return unreadable(replaying, decoded.detail);
  const { orders } = decoded.deadline;
  // Publishes no earlier than the deadline, because an early message would end as a dead letter again.
  const deadlineAtMs = Math.max(clock.nowMs(), decoded.deadline.deadlineAtMs);
  await replaying.begin();
  await deadlines.publish({ ...decoded.deadline, deadlineAtMs });
  const left = await replaying.follow(async () => (await dueOf(orders)).length);
  if (left === 0) return replaying.closed('replayed', `published again: none of ${orders.length} orders is overdue`);
  const note = `published again, ${left} of ${orders.length} orders are unpaid and past their deadline`;
  return replaying.kept('unfinished', note);
}

/** Waits for the rows. Repeatable: in `pending` before it is published (protocol rule 8). @throws OperationalError */
async function replayBatch(
  { body }: StoredDeadLetter,
  ports: ReplayPorts,
  replaying: Replaying,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  const { store, channel, clock } = ports;
  const decoded = decodeBatch(body);
  if (decoded.outcome !== 'decoded')
    return replaying.kept('unreadable', `not a batch, so it cannot be replayed: ${decoded.detail}`);
  const { batch } = decoded;
  /** Marks the batch as recorded in Redis in case the worker did not, because no keeper would find it later. */
  const known = async (rows: readonly Order[]): Promise<ReplayAnswer> => {
    await store.markRecorded([{ batch, orders: rows.filter((row) => isLive(row.state)) }]);
    return replaying.closed('already_recorded', `was already recorded: ${livesOf(rows)}`);
  };

  const before = await rowsOf(batch, ports);
  if (before !== null && before.every((row) => row.batchId === batch.batchId)) return known(before);
  await replaying.begin();
  const word = await store.unpark(batch);
  switch (word) {
    case 'unparked':
    case 'already_pending':
      await channel.publish(batch);
      break;
    case 'recorded':
    case 'aborted':
    case 'unknown':
      if (before !== null) return known(before);
      return replaying.kept('not_held', `its units are not held (${word}), so it cannot be replayed`);
    default:
      return assertNever(word);
  }
  const rows = await followUntil(
    () => rowsOf(batch, ports),
    (found) => found !== null,
    clock,
    options,
  );
  if (rows !== null) return replaying.closed('replayed', `recorded: ${livesOf(rows)}`);
  return replaying.kept('unfinished', `published again, but not every purchase has its row yet`);
}

const livesOf = (rows: readonly Order[]): string => {
  const live = rows.filter((row) => isLive(row.state)).length;
  return `${live} live, ${rows.length - live} ended`;
};

/** Finds the rows of the batch, or null while a purchase has no row. */
async function rowsOf(batch: Batch, { repository }: ReplayPorts): Promise<Order[] | null> {
  const rows = await repository.findByPurchases(batch.saleId, batch.purchases);
  return rows.length === batch.purchases.length ? rows : null;
}
