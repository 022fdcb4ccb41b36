import { isoTime } from '../../contract/fields.js';
import { DELIVERY_STATES, type WebhookDelivery } from '../../contract/webhooks.js';
import { assert } from '../../core/errors.js';
import { groupBy } from '../../core/group-by.js';
import type { OrderEvent } from '../../core/order-event.js';
import { insertAudit } from '../../mysql/audit-log.js';
import { WEBHOOK_OVER as OVER, WEBHOOKS_DUE } from '../../mysql/due-work.js';
import { bigint, execute, knex, now, select } from '../../mysql/knex.js';
import { idIn } from '../../mysql/move-orders.js';
import type { MysqlPool } from '../../mysql/pool.js';
import type { WebhookDeliveryRow } from '../../mysql/tables.js';

/** The events of one order that can be sent now, in their order. */
export type DueOrder = readonly [WebhookDelivery, ...WebhookDelivery[]];

/** Deliveries in this state, before this one; absent: in any state, the newest. */
export interface DeliveryFilter {
  readonly state?: WebhookDelivery['state'] | undefined;
  readonly before?: string | undefined;
  readonly limit: number;
}

/** Why an event is dropped: it could not be delivered in time, or its endpoint was removed. */
export const DROP_REASONS = ['too_old', 'removed'] as const;
export type DropReason = (typeof DROP_REASONS)[number];

const DELIVER_WITHIN_DAYS = 7;
const KEPT_DAYS = 30;
const ERROR_MAX = 200;
const ROWS_PER_INSERT = 1_000;
/** Events of all orders of one take. An order has about ten. */
const ROWS_PER_TAKE = 2_000;

/** What was sent to endpoints and what will be. @throws OperationalError mysql */
export function createDeliveryStore(pool: MysqlPool) {
  return {
    /** Stores what each endpoint must get. Has no effect on what is stored already. */
    async plan(
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
    },

    /** Endpoints that may be called and have something to send. */
    endpointsDue: async (): Promise<string[]> =>
      (await pool.query<{ readonly id: string }>(`SELECT e.id FROM ${WEBHOOKS_DUE} ORDER BY e.id`)).map(({ id }) => id),

    /** @param max orders @returns `isFull`: more may be due */
    async due(endpointId: string, max: number): Promise<{ orders: DueOrder[]; isFull: boolean }> {
      const values = [endpointId, max, endpointId];
      const rows = await pool.query<WebhookDeliveryRow & { readonly is_over: number | string }>(DUE, values);
      const orders: DueOrder[] = [];
      for (const [head, ...more] of groupBy(rows, (row) => row.order_id).values()) {
        if (head === undefined) continue;
        if (Number(head.is_over) === 1) orders.push([deliveryOf(head), ...more.map(deliveryOf)]);
        else await waitFor(pool, head);
      }
      return { orders, isFull: rows.length >= max };
    },

    async markDelivered(deliveryIds: readonly string[]): Promise<void> {
      if (deliveryIds.length === 0) return;
      const changes = "state = 'delivered', attempts = attempts + 1, last_error = NULL";
      await pool.execute(`UPDATE webhook_deliveries SET ${changes} WHERE ${idIn(deliveryIds)}`);
    },

    /** Notes a failed attempt. All later events of the order wait with it. */
    async postpone(endpointId: string, failed: WebhookDelivery, delayMs: number, error: string): Promise<void> {
      const { deliveryId, orderId } = failed;
      await pool.execute(
        `UPDATE webhook_deliveries SET attempts = attempts + (${idIn([deliveryId])}),
            last_error = IF(${idIn([deliveryId])}, ?, last_error),
            available_at = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND
          WHERE endpoint_id = CAST(? AS UNSIGNED) AND ${idIn([orderId], 'order_id')} AND state = 'due'`,
        [error.slice(0, ERROR_MAX), Math.round(delayMs * 1000), endpointId],
      );
    },

    /** Newest first. */
    async list(endpointId: string, { state, before, limit }: DeliveryFilter): Promise<WebhookDelivery[]> {
      // A part per state: across states no index has the order, and MySQL would scan the table.
      const parts = (state === undefined ? DELIVERY_STATES : [state]).map((one) => {
        const table = knex.raw('webhook_deliveries FORCE INDEX (list)');
        const page = knex.select('*').from(table).where('endpoint_id', bigint(endpointId)).where({ state: one });
        if (before !== undefined) void page.where('id', '<', bigint(before));
        return page.orderBy('id', 'desc').limit(limit);
      });
      const rows = await Promise.all(parts.map((page): Promise<WebhookDeliveryRow[]> => select(pool, page)));
      const newestFirst = rows.flat().toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? 1 : -1));
      return newestFirst.slice(0, limit).map(deliveryOf);
    },

    /** Sends events again, at once. @returns the number of deliveries that belong to this endpoint */
    resend: (endpointId: string, deliveryIds: readonly string[], actor: string): Promise<number> =>
      pool.transaction(async (tx) => {
        const rows = knex('webhook_deliveries').where({ endpoint_id: endpointId }).whereRaw(idIn(deliveryIds));
        const found = (await select(tx, rows.clone().select('id').forUpdate())).map(({ id }) => id);
        if (found.length === 0) return 0;
        // With a new age, or an old event would be dropped at once.
        await execute(tx, rows.update({ state: 'due', attempts: 0, available_at: now(), created_at: now() }));
        const [action, subject] = ['webhook.resent', `webhook:${endpointId}`];
        await insertAudit(tx, { actor, action, subject, before: null, after: { deliveries: found } });
        return found.length;
      }),

    /** Drops events that will not be sent. @returns the endpoint of each */
    async drop(reason: DropReason, max: number): Promise<string[]> {
      const rows = await pool.query<{ readonly id: string; readonly endpoint_id: string }>(DROPPED[reason], [max]);
      if (rows.length === 0) return [];
      // an operator may have sent one of them again in between
      const these = `${idIn(rows.map(({ id }) => id))} AND state = 'due' AND ${STILL[reason]}`;
      await pool.execute(`UPDATE webhook_deliveries SET state = 'dropped' WHERE ${these}`);
      return rows.map(({ endpoint_id }) => endpoint_id);
    },

    /** Removes what was delivered or dropped a month ago. @returns the number of rows */
    removeOld: async (max: number): Promise<number> => (await pool.execute(REMOVE_OLD, [max])).affectedRows,
  };
}

const OLDER = (days: number): string => `created_at < UTC_TIMESTAMP(3) - INTERVAL ${days} DAY`;
const REMOVE_OLD = `DELETE FROM webhook_deliveries
  WHERE state IN ('delivered', 'dropped') AND ${OLDER(KEPT_DAYS)} ORDER BY state, created_at LIMIT ?`;
const STILL: Readonly<Record<DropReason, string>> = { too_old: OLDER(DELIVER_WITHIN_DAYS), removed: 'TRUE' };
const DROPPED: Readonly<Record<DropReason, string>> = {
  too_old: `SELECT id, endpoint_id FROM webhook_deliveries
    WHERE state = 'due' AND ${OLDER(DELIVER_WITHIN_DAYS)} ORDER BY created_at LIMIT ?`,
  removed: `SELECT d.id, d.endpoint_id FROM (SELECT DISTINCT endpoint_id FROM webhook_deliveries) AS named
    STRAIGHT_JOIN webhook_deliveries AS d FORCE INDEX (due) ON d.endpoint_id = named.endpoint_id AND d.state = 'due'
    WHERE named.endpoint_id NOT IN (SELECT id FROM webhook_endpoints) LIMIT ?`,
};

function rowsOf(endpointId: string, { eventId, type, saleId, orders, atMs }: OrderEvent) {
  const [, sequence] = /^([1-9][0-9]*)-/.exec(eventId) ?? [];
  assert(sequence !== undefined, `event ${eventId} has no number`);
  const event = { endpoint_id: endpointId, sequence, type, sale_id: saleId, happened_at: new Date(atMs) };
  return orders.map((orderId) => ({ ...event, order_id: orderId }));
}

/**
 * All earlier events of the order are here too. The numbers of an order in the outbox grow with its changes, and an event
 * is written here before its row of the outbox is done. So none is missing once no lower number of its sale is
 * undone, in the same snapshot. A row of the outbox without a sale may be of any sale.
 */
const COMPLETE = `NOT EXISTS (SELECT 1 FROM undone
  WHERE undone.first_id <= d.sequence AND (undone.sale_id = d.sale_id OR undone.sale_id IS NULL))`;

const DUE = `WITH undone AS (
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
  ORDER BY d.order_id, d.sequence LIMIT ${ROWS_PER_TAKE}`;

/** Events that came while an earlier event of their order waits for another attempt wait as long. */
async function waitFor(pool: MysqlPool, head: WebhookDeliveryRow): Promise<void> {
  const { endpoint_id: endpointId, order_id: orderId, available_at: at } = head;
  const order = knex('webhook_deliveries').where({ endpoint_id: endpointId, state: 'due' });
  await execute(pool, order.whereRaw(idIn([orderId], 'order_id')).update({ available_at: at }));
}

const deliveryOf = (row: WebhookDeliveryRow): WebhookDelivery => ({
  deliveryId: row.id,
  eventId: `${row.sequence}-${row.type.slice('order.'.length)}-${row.order_id}`,
  type: row.type,
  orderId: row.order_id,
  saleId: row.sale_id,
  at: isoTime(row.happened_at.getTime()),
  state: row.state,
  attempts: row.attempts,
  lastError: row.last_error,
  nextTry: row.state === 'due' ? isoTime(row.available_at.getTime()) : null,
});
