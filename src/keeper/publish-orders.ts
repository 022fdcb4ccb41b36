import type { OrderEvent, OrderEventType } from '../domain/order-event.js';
import type { DeadlineChannel, OrderEventChannel } from '../ports/order-channels.js';
import type { Promised } from './relay-outbox.js';

export interface PublishOrdersPorts {
  readonly deadlines: DeadlineChannel;
  readonly events: OrderEventChannel;
}

/** Tells of a batch that was recorded: what its orders are now, and later that they should have been paid. */
export function publishRecorded({ deadlines, events }: PublishOrdersPorts) {
  return async (row: Promised<'batch_recorded'>): Promise<void> => {
    const { batchId, saleId, orders, failed, paymentWindowMs } = row.payload;
    const told: OrderEvent[] = [];
    if (orders.length > 0) told.push(eventOf(row, 'order.created', saleId, orders));
    if (failed.length > 0) told.push(eventOf(row, 'order.failed', saleId, failed));
    const sends: Promise<void>[] = [];
    if (told.length > 0) sends.push(events.publish(told));
    if (orders.length > 0) {
      sends.push(deadlines.publish({ batchId, saleId, orders, deadlineAtMs: row.createdAtMs + paymentWindowMs }));
    }
    await Promise.all(sends);
  };
}

/** Tells of orders that made a move. */
export function publishMoved({ events }: Pick<PublishOrdersPorts, 'events'>) {
  return async (row: Promised<'orders_moved'>): Promise<void> => {
    const { move, saleId, orders } = row.payload;
    await events.publish([eventOf(row, `order.${move}`, saleId, orders)]);
  };
}

/** Every copy has the same id, since it is made of the row: that is how a consumer knows it again. */
function eventOf(
  { outboxId, createdAtMs }: Pick<Promised<'orders_moved'>, 'outboxId' | 'createdAtMs'>,
  type: OrderEventType,
  saleId: string,
  orders: readonly string[],
): OrderEvent {
  return { eventId: `${outboxId}-${type.slice('order.'.length)}`, type, saleId, orders, atMs: createdAtMs };
}
