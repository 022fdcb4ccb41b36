import { DELIVERY_STATES, type WebhookDelivery } from '../../contract/webhooks.js';
import { groupBy } from '../../core/group-by.js';
import { insertAudit } from '../../mysql/audit-log.js';
import { bigint, execute, inMs, knex, now, select } from '../../mysql/knex.js';
import { idIn } from '../../mysql/move-orders.js';
import type { MysqlPool } from '../../mysql/pool.js';
import type { WebhookDeliveryRow } from '../../mysql/tables.js';
import { DELIVERIES_DUE, WEBHOOKS_DUE } from '../../mysql/webhook-queue.js';
import { entryOf } from './endpoint-store.js';

/** The events of one order that can be sent now, in their order. */
export type DueOrder = readonly [WebhookDelivery, ...WebhookDelivery[]];

/** Lists deliveries in this state, older than this one. If absent: in any state, from the newest on. */
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

/** @throws OperationalError mysql */
export function createDeliveryStore(pool: MysqlPool) {
  return {
    /** Endpoints that may be called and have something to send. */
    endpointsDue: async (): Promise<string[]> =>
      (await pool.query<{ readonly id: string }>(`SELECT e.id FROM ${WEBHOOKS_DUE} ORDER BY e.id`)).map(({ id }) => id),

    /** @param max orders @returns `isFull`: more may be due */
    async due(endpointId: string, max: number): Promise<{ orders: DueOrder[]; isFull: boolean }> {
      const values = [endpointId, max, endpointId];
      const rows = await pool.query<WebhookDeliveryRow & { readonly is_over: number | string }>(DELIVERIES_DUE, values);
      const orders: DueOrder[] = [];
      for (const [head, ...more] of groupBy(rows, (row) => row.order_id).values()) {
        if (head === undefined) continue;
        if (Number(head.is_over) === 1) orders.push([deliveryOf(head), ...more.map(deliveryOf)]);
        // It came while an earlier event of its order waits for another attempt, and waits as long.
        else await execute(pool, dueOf(endpointId, head.order_id).update({ available_at: head.available_at }));
      }
      return { orders, isFull: rows.length >= max };
    },

    async markDelivered(deliveryIds: readonly string[]): Promise<void> {
      if (deliveryIds.length === 0) return;
      const changes = { state: 'delivered', attempts: knex.raw('attempts + 1'), last_error: null } as const;
      await execute(pool, knex('webhook_deliveries').whereRaw(idIn(deliveryIds)).update(changes));
    },

    /** Notes a failed attempt. All later events of the order wait with it. */
    async postpone(endpointId: string, failed: WebhookDelivery, delayMs: number, error: string): Promise<void> {
      const isFailed = idIn([failed.deliveryId]);
      const changes = {
        attempts: knex.raw(`attempts + (${isFailed})`),
        last_error: knex.raw(`IF(${isFailed}, ?, last_error)`, [error]),
      };
      await execute(pool, dueOf(endpointId, failed.orderId).update({ ...changes, available_at: inMs(delayMs) }));
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
        // Resets the age, because an old event would be dropped at once.
        await execute(tx, rows.update({ state: 'due', attempts: 0, available_at: now(), created_at: now() }));
        const after = { deliveries: found };
        await insertAudit(tx, { ...entryOf(endpointId, actor, 'resent'), before: null, after });
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

const dueOf = (endpointId: string, orderId: string) =>
  knex('webhook_deliveries')
    .where({ endpoint_id: endpointId, state: 'due' })
    .whereRaw(idIn([orderId], 'order_id'));

const deliveryOf = (row: WebhookDeliveryRow): WebhookDelivery => ({
  deliveryId: row.id,
  eventId: `${row.sequence}-${row.type.slice('order.'.length)}-${row.order_id}`,
  type: row.type,
  orderId: row.order_id,
  saleId: row.sale_id,
  at: row.happened_at.toISOString(),
  state: row.state,
  attempts: row.attempts,
  lastError: row.last_error,
  nextTry: row.state === 'due' ? row.available_at.toISOString() : null,
});
