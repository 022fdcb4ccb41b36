import { assert } from '../core/errors.js';
import type { OrderEvent } from '../core/order-event.js';
import { execute, knex, waitOver } from './knex.js';
import type { MysqlPool } from './pool.js';

const ROWS_PER_INSERT = 1_000;

/** Stores the deliveries of each endpoint. Leaves stored deliveries unchanged. @throws OperationalError mysql */
export async function planDeliveries(
  pool: MysqlPool,
  events: readonly OrderEvent[],
  endpoints: readonly { readonly endpointId: string; readonly events: readonly string[] }[],
): Promise<void> {
  const rows = endpoints.flatMap(({ endpointId, events: types }) =>
    events.filter(({ type }) => types.includes(type)).flatMap((event) => rowsOf(endpointId, event)),
  );
  for (let from = 0; from < rows.length; from += ROWS_PER_INSERT) {
    const some = knex('webhook_deliveries').insert(rows.slice(from, from + ROWS_PER_INSERT));
    await execute(pool, some.onConflict().ignore());
  }
}

function rowsOf(endpointId: string, { eventId, type, saleId, orders, atMs }: OrderEvent) {
  const [, sequence] = /^([1-9][0-9]*)-/.exec(eventId) ?? [];
  assert(sequence !== undefined, `event ${eventId} has no number`);
  const event = { endpoint_id: endpointId, sequence, type, sale_id: saleId, happened_at: new Date(atMs) };
  return orders.map((orderId) => ({ ...event, order_id: orderId }));
}

/** A day, with room for jitter. */
const PAUSE_MAX_MS = 2 * 86_400_000;
const OVER = waitOver('available_at', PAUSE_MAX_MS);
/** Rows of all orders that are read together. An order has about ten. */
const ROWS_MAX = 2_000;

/** Endpoints that may be called and have something to send. */
export const WEBHOOKS_DUE = `webhook_endpoints AS e WHERE e.state = 'active' AND ${OVER} AND EXISTS (
  SELECT 1 FROM webhook_deliveries AS d WHERE d.endpoint_id = e.id AND d.state = 'due' AND ${OVER})`;

/**
 * Whether all earlier events of the order are here. They have lower outbox numbers, and an event is written here before
 * its outbox row is done. So none is missing once the same snapshot shows no lower undone number of the sale, or of an
 * unknown sale.
 */
const COMPLETE = `NOT EXISTS (SELECT 1 FROM undone
  WHERE undone.first_id <= d.sequence AND (undone.sale_id = d.sale_id OR undone.sale_id IS NULL))`;

/** Finds due deliveries in event order. Values: the endpoint, the number of orders, the endpoint. */
export const DELIVERIES_DUE = `WITH undone AS (
    SELECT sale_id, MIN(id) AS first_id FROM outbox
      WHERE kind IN ('batch_recorded', 'orders_moved') AND done_at IS NULL GROUP BY sale_id)
  SELECT d.*, ${OVER} AS is_over
  FROM (SELECT DISTINCT order_id FROM (
      SELECT d.order_id FROM webhook_deliveries AS d
        WHERE d.endpoint_id = CAST(? AS UNSIGNED) AND d.state = 'due' AND ${OVER} AND ${COMPLETE}
        ORDER BY d.available_at, d.id LIMIT ?
    ) AS first_due) AS orders_due
  JOIN webhook_deliveries AS d ON d.endpoint_id = CAST(? AS UNSIGNED) AND d.order_id = orders_due.order_id
  WHERE d.state = 'due' AND ${COMPLETE}
  ORDER BY d.order_id, d.sequence LIMIT ${ROWS_MAX}`;
