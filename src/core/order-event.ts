import { isId, isSaleId } from './ids.js';
import { isMetadata, type Metadata } from './metadata.js';
import { isCount, openBody, undecodable as bad, type Undecodable } from './message-body.js';
import { areOrderIds } from './payment-deadline.js';

const ORDER_EVENT_VERSION = 1;
/** Version of a message with an event about the money of paid orders. The format is the same as in version 1. */
const MONEY_EVENT_VERSION = 2;

export const EVENTS_PER_MESSAGE_MAX = 64;

export const ORDER_EVENT_TYPES = [
  'order.created',
  'order.failed',
  'order.paid',
  'order.cancelled',
  'order.expired',
  'order.refunding',
  'order.refunded',
  'order.returned',
  'order.refund_failed',
  'order.disputed',
  'order.dispute_won',
] as const;
/** The types that every release knows. */
export const FIRST_TYPES: readonly OrderEventType[] = ORDER_EVENT_TYPES.slice(0, 5);
export type OrderEventType = (typeof ORDER_EVENT_TYPES)[number];

/** Some orders of one sale changed in one transaction. Events may arrive twice, and in any order. */
export interface OrderEvent {
  /** Identifies the event: all its copies have the same id. */
  readonly eventId: string;
  readonly type: OrderEventType;
  readonly saleId: string;
  /** Ids of 1 to ORDERS_PER_MESSAGE_MAX orders. */
  readonly orders: readonly string[];
  /** Time of the change, Unix ms on the clock of MySQL. */
  readonly atMs: number;
  /** Metadata of these orders. Absent if no order has metadata. */
  readonly metadata?: MetadataByOrder;
}

/** Metadata by order id, for at least one order. */
export type MetadataByOrder = Readonly<Record<string, Metadata>>;

export type DecodedOrderEvents = { readonly outcome: 'decoded'; readonly events: readonly OrderEvent[] } | Undecodable;

/** @param events 1 to EVENTS_PER_MESSAGE_MAX */
export function encodeOrderEvents(events: readonly OrderEvent[]): string {
  const short = events.map(({ atMs: at, eventId, type, saleId, orders, metadata }) => {
    return { eventId, type, saleId, at, orders, metadata };
  });
  const isFirst = events.every(({ type }) => FIRST_TYPES.includes(type));
  return JSON.stringify({ v: isFirst ? ORDER_EVENT_VERSION : MONEY_EVENT_VERSION, events: short });
}

/** Reads a message body and checks everything in it. Returns a reason for a bad body; never throws. */
export function decodeOrderEvents(body: string): DecodedOrderEvents {
  const opened = openBody(body, ORDER_EVENT_VERSION, MONEY_EVENT_VERSION);
  if (opened.outcome !== 'opened') return opened;
  const raw = opened.fields.events;
  if (!Array.isArray(raw) || raw.length === 0 || raw.length > EVENTS_PER_MESSAGE_MAX)
    return bad('events is not a short, non-empty list');
  const events: OrderEvent[] = [];
  for (const [index, item] of raw.entries()) {
    const event = readEvent(item);
    if (typeof event === 'string') return bad(`event ${index}: ${event}`);
    events.push(event);
  }
  return { outcome: 'decoded', events };
}

/** Returns the event, or what is wrong with it. */
function readEvent(item: unknown): OrderEvent | string {
  if (typeof item !== 'object' || item === null) return 'not an object';
  const { eventId, type, saleId, at, orders, metadata } = item as Record<string, unknown>;
  if (!isId(eventId)) return 'eventId is not an id';
  if (!isEventType(type)) return 'type is not a known value';
  if (!isSaleId(saleId)) return 'saleId is not a sale id';
  if (!isCount(at)) return 'at is not a time in ms';
  if (!areOrderIds(orders)) return 'orders is not a non-empty list of order ids';
  if (metadata === undefined) return { eventId, type, saleId, orders, atMs: at };
  if (!isMetadataOf(metadata, orders)) return 'metadata does not belong to these orders';
  return { eventId, type, saleId, orders, atMs: at, metadata };
}

const isEventType = (value: unknown): value is OrderEventType => ORDER_EVENT_TYPES.some((type) => type === value);

function isMetadataOf(value: unknown, orders: readonly string[]): value is MetadataByOrder {
  if (typeof value !== 'object' || value === null) return false;
  const ofOrder = Object.entries(value);
  const known = new Set(orders);
  return ofOrder.length > 0 && ofOrder.every(([orderId, metadata]) => known.has(orderId) && isMetadata(metadata));
}
