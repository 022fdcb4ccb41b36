import type { Metadata } from '../core/metadata.js';
import {
  EVENTS_PER_MESSAGE_MAX,
  type MetadataByOrder,
  type OrderEvent,
  type OrderEventType,
} from '../core/order-event.js';
import { ORDERS_PER_MESSAGE_MAX } from '../core/payment-deadline.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { DeadlineChannel, OrderEventChannel } from '../core/ports/channels.js';
import type { MetadataTexts, OutboxKind } from '../core/ports/outbox.js';
import { NO_TRACING, type Span, type Tracing } from '../core/ports/tracing.js';
import { inSpan } from '../core/spans.js';
import type { OrderJobMetrics } from './metrics.js';
import type { ReadableRow } from './relay-outbox.js';

// Handles outbox rows by kind. Every row may be handled more than once.

type RecordedRow = ReadableRow<'batch_recorded'>;
type MovedRow = ReadableRow<'orders_moved'>;

/** Deadlines within this time share a message. The broker's timer is no finer. */
const SAME_DEADLINE_MS = 1_000;
/** Maximum number of rows in one message. A row becomes at most two events. */
const ROWS_PER_MESSAGE_MAX = EVENTS_PER_MESSAGE_MAX / 2;

/** Publishes orders created or failed, and their deadline as a delayed message. @param rows as from `groupRecorded` */
export function publishRecorded({
  deadlines,
  events,
  tracing = NO_TRACING,
}: {
  readonly deadlines: DeadlineChannel;
  readonly events: OrderEventChannel;
  /** If absent, nothing is traced. */
  readonly tracing?: Tracing;
}) {
  const publish = async (rows: readonly RecordedRow[], traceparent: string | undefined): Promise<void> => {
    const published = rows.flatMap((row) => [
      ...eventsOf(row, 'order.created', row.payload.orders),
      ...eventsOf(row, 'order.failed', row.payload.failed),
    ]);
    const sends = published.length > 0 ? [events.publish(published, traceparent)] : [];
    const live = rows.filter(({ payload }) => payload.orders.length > 0);
    const [first] = live;
    if (first !== undefined) {
      const orders = live.flatMap(({ payload }) => payload.orders);
      const { batchId, saleId } = first.payload;
      const deadlineAtMs = Math.max(...live.map(deadlineOf));
      sends.push(deadlines.publish({ batchId, saleId, orders, deadlineAtMs }, traceparent));
    }
    await Promise.all(sends);
  };
  return async (rows: readonly RecordedRow[]): Promise<void> => {
    const span = startSpan(rows, tracing);
    await inSpan(span, () => publish(rows, span?.traceparent));
  };
}

/** Starts the span of the message. It is a child of the first traced batch and linked to every traced batch. */
function startSpan(rows: readonly RecordedRow[], tracing: Tracing): Span | null {
  const links = rows.flatMap(({ payload }) => payload.traceparent ?? []);
  const [first] = links;
  if (first === undefined) return null;
  const orders = rows.reduce((sum, { payload }) => sum + payload.orders.length + payload.failed.length, 0);
  const fields = { 'seckill.batches': rows.length, 'seckill.orders': orders };
  return tracing.startWork(first, { name: 'publish order events', kind: 'producer', fields, links });
}

/** Groups rows into messages: batches of one sale that were recorded within the same second share a message. */
export const groupRecorded = (rows: readonly RecordedRow[]): RecordedRow[][] =>
  groupRows(
    rows,
    (row, first) =>
      row.payload.saleId === first.payload.saleId && Math.abs(deadlineOf(row) - deadlineOf(first)) <= SAME_DEADLINE_MS,
    ({ payload }) => payload.orders.length + payload.failed.length + weightOf(payload.metadata),
  );

/** @param rows as `groupMoved` groups them */
export function publishMoved({ events }: { readonly events: OrderEventChannel }) {
  return async (rows: readonly MovedRow[]): Promise<void> => {
    await events.publish(rows.flatMap((row) => eventsOf(row, `order.${row.payload.move}`, row.payload.orders)));
  };
}

/** Groups rows into messages: equal transitions of orders of one sale share a message. */
export const groupMoved = (rows: readonly MovedRow[]): MovedRow[][] =>
  groupRows(
    rows,
    ({ payload }, first) => payload.saleId === first.payload.saleId && payload.move === first.payload.move,
    ({ payload }) => payload.orders.length + weightOf(payload.metadata),
  );

/**
 * Returns the units of ended orders, as the transaction that ended them promised (protocol rule 7). A repeat finds the
 * request `released` in Redis and does nothing.
 */
export function releaseUnits(store: BatchStore, metrics: OrderJobMetrics) {
  return async (rows: readonly ReadableRow<'release'>[]): Promise<void> => {
    const words = await store.release(rows.flatMap(({ payload }) => payload));
    metrics.released(words.filter((word) => word === 'released').length);
  };
}

const deadlineOf = ({ createdAtMs, payload }: RecordedRow): number => createdAtMs + payload.paymentWindowMs;

/**
 * The id of an event is derived from its row, so a consumer recognises every copy.
 * @throws Error that names the row, if its payload has no list of orders
 */
function eventsOf(
  { outboxId, createdAtMs, payload }: RecordedRow | MovedRow,
  type: OrderEventType,
  orders: readonly string[],
): OrderEvent[] {
  if (!Array.isArray(orders)) throw new Error(`outbox row ${outboxId} has no list of orders`);
  if (orders.length === 0) return [];
  const eventId = `${outboxId}-${type.slice('order.'.length)}`;
  const event = { eventId, type, saleId: payload.saleId, orders, atMs: createdAtMs };
  const metadata = payload.metadata === undefined ? undefined : metadataOf(orders, payload.metadata);
  return [metadata === undefined ? event : { ...event, metadata }];
}

/** Returns the metadata of these orders. Undefined if no order has any. */
function metadataOf(orders: readonly string[], texts: MetadataTexts): MetadataByOrder | undefined {
  const own = orders.flatMap((orderId) => {
    const text = texts[orderId];
    return text === undefined ? [] : [[orderId, JSON.parse(text) as Metadata] as const];
  });
  return own.length === 0 ? undefined : Object.fromEntries(own);
}

/** Order ids (20 digits each) that take as much room as the metadata of one order, at most METADATA_BYTES_MAX. */
const ORDERS_PER_METADATA = 27;
const weightOf = (metadata: MetadataTexts | undefined): number =>
  metadata === undefined ? 0 : Object.keys(metadata).length * ORDERS_PER_METADATA;

/** Adds each row to the newest group of its kind if that has room; otherwise begins a group. */
function groupRows<K extends OutboxKind>(
  rows: readonly ReadableRow<K>[],
  belongs: (row: ReadableRow<K>, first: ReadableRow<K>) => boolean,
  sizeOf: (row: ReadableRow<K>) => number,
): ReadableRow<K>[][] {
  const groups: { rows: [ReadableRow<K>, ...ReadableRow<K>[]]; size: number }[] = [];
  for (const row of rows) {
    const size = sizeOf(row);
    const group = groups.findLast((one) => belongs(row, one.rows[0]));
    const hasRoom =
      group !== undefined && group.rows.length < ROWS_PER_MESSAGE_MAX && group.size + size <= ORDERS_PER_MESSAGE_MAX;
    if (hasRoom) {
      group.rows.push(row);
      group.size += size;
    } else {
      groups.push({ rows: [row], size });
    }
  }
  return groups.map((group) => group.rows);
}
