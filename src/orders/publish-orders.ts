import { EVENTS_PER_MESSAGE_MAX, type OrderEvent, type OrderEventType } from '../core/order-event.js';
import { ORDERS_PER_MESSAGE_MAX } from '../core/payment-deadline.js';
import type { DeadlineChannel, OrderEventChannel } from '../core/ports/channels.js';
import type { OutboxKind } from '../core/ports/outbox.js';
import type { Promised } from './relay-outbox.js';

export interface PublishOrdersPorts {
  readonly deadlines: DeadlineChannel;
  readonly events: OrderEventChannel;
}

type Recorded = Promised<'batch_recorded'>;
type Moved = Promised<'orders_moved'>;

/** Deadlines so close to each other share a message: the timer of the broker is not finer either. */
const SAME_DEADLINE_MS = 1_000;
/** Each row is two events at the most. */
const ROWS_PER_MESSAGE_MAX = EVENTS_PER_MESSAGE_MAX / 2;

/** What one message of each kind can carry: batches of one sale that were recorded within a second. */
export const gatherRecorded = (rows: readonly Recorded[]): Recorded[][] =>
  gather(rows, {
    alike: (row, first) =>
      row.payload.saleId === first.payload.saleId && Math.abs(deadlineOf(row) - deadlineOf(first)) <= SAME_DEADLINE_MS,
    ordersOf: ({ payload }) => payload.orders.length + payload.failed.length,
  });

/** What one message can carry: the same move of orders of one sale. */
export const gatherMoved = (rows: readonly Moved[]): Moved[][] =>
  gather(rows, {
    alike: ({ payload }, first) => payload.saleId === first.payload.saleId && payload.move === first.payload.move,
    ordersOf: ({ payload }) => payload.orders.length,
  });

/**
 * Tells of batches that were recorded: what their orders are now, and later that they should have been paid.
 * @param rows as `gatherRecorded` puts them together
 */
export function publishRecorded({ deadlines, events }: PublishOrdersPorts) {
  return async (rows: readonly Recorded[]): Promise<void> => {
    const told = rows.flatMap((row) => [
      ...eventsOf(row, 'order.created', row.payload.orders),
      ...eventsOf(row, 'order.failed', row.payload.failed),
    ]);
    const sends = told.length > 0 ? [events.publish(told)] : [];
    const live = rows.filter(({ payload }) => payload.orders.length > 0);
    const [first] = live;
    if (first !== undefined) {
      const orders = live.flatMap(({ payload }) => payload.orders);
      const { batchId, saleId } = first.payload;
      const deadlineAtMs = Math.max(...live.map(deadlineOf));
      sends.push(deadlines.publish({ batchId, saleId, orders, deadlineAtMs }));
    }
    await Promise.all(sends);
  };
}

/**
 * Tells of orders that made a move.
 * @param rows as `gatherMoved` puts them together
 */
export function publishMoved({ events }: Pick<PublishOrdersPorts, 'events'>) {
  return async (rows: readonly Moved[]): Promise<void> => {
    await events.publish(rows.flatMap((row) => eventsOf(row, `order.${row.payload.move}`, row.payload.orders)));
  };
}

const deadlineOf = ({ createdAtMs, payload }: Recorded): number => createdAtMs + payload.paymentWindowMs;

/** Every copy has the same id, since it is made of the row: that is how a consumer knows it again. */
function eventsOf(
  { outboxId, createdAtMs, payload }: Recorded | Moved,
  type: OrderEventType,
  orders: readonly string[],
): OrderEvent[] {
  if (orders.length === 0) return [];
  const eventId = `${outboxId}-${type.slice('order.'.length)}`;
  return [{ eventId, type, saleId: payload.saleId, orders, atMs: createdAtMs }];
}

interface Likeness<K extends OutboxKind> {
  alike(row: Promised<K>, first: Promised<K>): boolean;
  ordersOf(row: Promised<K>): number;
}

/** Puts each row to the newest group that it is like and that has room for it, else into one of its own. */
function gather<K extends OutboxKind>(rows: readonly Promised<K>[], { alike, ordersOf }: Likeness<K>): Promised<K>[][] {
  const groups: { rows: [Promised<K>, ...Promised<K>[]]; orders: number }[] = [];
  for (const row of rows) {
    const orders = ordersOf(row);
    const group = groups.findLast((one) => alike(row, one.rows[0]));
    const hasRoom = (one: (typeof groups)[number]): boolean =>
      one.rows.length < ROWS_PER_MESSAGE_MAX && one.orders + orders <= ORDERS_PER_MESSAGE_MAX;
    if (group !== undefined && hasRoom(group)) {
      group.rows.push(row);
      group.orders += orders;
    } else {
      groups.push({ rows: [row], orders });
    }
  }
  return groups.map((group) => group.rows);
}
