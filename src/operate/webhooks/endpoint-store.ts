import { randomBytes } from 'node:crypto';
import { isoTime, isoTimeOrNull } from '../../contract/fields.js';
import type { NewWebhook, Webhook, WebhookChanges } from '../../contract/webhooks.js';
import type { OrderEventType } from '../../core/order-event.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { insertAudit } from '../../mysql/audit-log.js';
import { execute, inMs, knex, now, select } from '../../mysql/knex.js';
import type { MysqlPool, Statements, Transaction } from '../../mysql/pool.js';
import type { WebhookEndpointRow } from '../../mysql/tables.js';

/** The keeper has a loop for each endpoint. */
export const ENDPOINTS_MAX = 10;
/** An endpoint that has failed for this long is paused. */
const FAILING_MAX = 'INTERVAL 1 DAY';
/** A replaced secret signs too for this long, so that the receiver can learn the new one without losing an event. */
const SECRET_BEFORE_MS = 86_400_000;
const ERROR_MAX = 200;
/** Waiting deliveries that become due at once. The others come when their time has come. */
const WOKEN_MAX = 10_000;

const newSecret = (): string => `whsec_${randomBytes(32).toString('base64url')}`;

/**
 * Endpoints of webhooks. A change writes an entry of `actor` to the audit log, and returns the endpoint with its secret if
 * that is new. @throws OperationalError mysql
 */
export function createEndpointStore(pool: MysqlPool) {
  return {
    /** At most ENDPOINTS_MAX, oldest first. */
    list: async (): Promise<Webhook[]> => (await select(pool, endpoints())).map((row) => webhookOf(row)),

    find: (endpointId: string) => find(pool, endpointId),

    /** @returns null: there are ENDPOINTS_MAX already */
    create: ({ url, events }: NewWebhook, actor: string) =>
      pool.transaction(async (tx) => {
        if ((await select(tx, endpoints().forUpdate())).length >= ENDPOINTS_MAX) return null;
        const row = { url, secret: newSecret(), events: events.join(',') };
        const { insertId } = await execute(tx, knex('webhook_endpoints').insert(row));
        return audited(tx, insertId, { actor, action: 'created', before: null, after: { url, events } }, true);
      }),

    /** What was wrong may be mended, so the next attempt is made at once. @returns null: there is no such endpoint */
    edit: (endpointId: string, changes: WebhookChanges, actor: string) =>
      pool.transaction(async (tx) => {
        const found = await find(tx, endpointId);
        if (found === null) return null;
        const { url, events, state } = changes;
        const columns = withoutUndefined({ url, events: events?.join(','), state, state_since: state && now() });
        const anew = { failures: 0, failing_since: null, available_at: now() };
        const isRenewed = changes.newSecret === true;
        const replaced = { secret_before: found.secret, secret_before_until: inMs(SECRET_BEFORE_MS) };
        const secrets = isRenewed ? { secret: newSecret(), ...replaced } : {};
        await execute(tx, endpoint(endpointId).update({ ...columns, ...secrets, ...anew }));
        if ((state ?? found.state) === 'active') await wake(tx, endpointId);
        const before = { url: found.url, events: found.events.split(','), state: found.state };
        const after = withoutUndefined(changes);
        return audited(tx, endpointId, { actor, action: 'edited', before, after }, isRenewed);
      }),

    /** The keeper drops its undelivered events. @returns whether there was such an endpoint */
    remove: (endpointId: string, actor: string) =>
      pool.transaction(async (tx) => {
        const found = await find(tx, endpointId);
        if (found === null) return false;
        await execute(tx, endpoint(endpointId).delete());
        const before = { url: found.url, events: found.events.split(',') };
        await audited(tx, endpointId, { actor, action: 'removed', before, after: null });
        return true;
      }),

    /** Notes that the receiver works. @param lastError only this was rejected; null: something was delivered */
    async noteAnswer({ id, failures, last_error }: WebhookEndpointRow, lastError: string | null): Promise<void> {
      if (failures === 0 && last_error === lastError) return;
      const well = { failures: 0, failing_since: null, last_error: lastError, available_at: now() };
      await execute(pool, endpoint(id).update(well));
    },

    /** Notes an attempt in which the receiver failed, and lets it rest. @returns whether this has paused the endpoint */
    async noteTrouble(endpointId: string, error: string, restMs: number): Promise<boolean> {
      await pool.execute(
        `UPDATE webhook_endpoints SET failing_since = COALESCE(failing_since, UTC_TIMESTAMP(3)), last_error = ?,
            failures = failures + 1, available_at = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND WHERE id = CAST(? AS UNSIGNED)`,
        [error.slice(0, ERROR_MAX), restMs * 1000, endpointId],
      );
      const paused = `UPDATE webhook_endpoints SET state = 'failed', state_since = UTC_TIMESTAMP(3)
        WHERE id = CAST(? AS UNSIGNED) AND state = 'active' AND failing_since < UTC_TIMESTAMP(3) - ${FAILING_MAX}`;
      return (await pool.execute(paused, [endpointId])).affectedRows > 0;
    },

    /** Forgets secrets that have signed long enough beside their successors. */
    async forgetSecrets(): Promise<void> {
      const over = knex('webhook_endpoints').where('secret_before_until', '<=', now());
      await execute(pool, over.update({ secret_before: null, secret_before_until: null }));
    },
  };
}

const endpoint = (endpointId: string) => knex('webhook_endpoints').where({ id: endpointId });
const endpoints = () => knex('webhook_endpoints').select('*').orderBy('id').limit(ENDPOINTS_MAX);

async function find(on: Statements, endpointId: string): Promise<WebhookEndpointRow | null> {
  const [row] = await select(on, endpoint(endpointId).select('*').forUpdate());
  return row ?? null;
}

/** Writes the audit entry of a change. @returns the endpoint as it is now; null: it was removed */
async function audited(
  tx: Transaction,
  endpointId: string,
  { action, ...entry }: { actor: string; action: string; before: object | null; after: object | null },
  withSecret = false,
): Promise<Webhook | null> {
  await insertAudit(tx, { ...entry, action: `webhook.${action}`, subject: `webhook:${endpointId}` });
  const row = await find(tx, endpointId);
  return row === null ? null : webhookOf(row, withSecret);
}

/** Makes waiting deliveries of an endpoint due. */
const wake = (on: Statements, endpointId: string) =>
  on.execute(
    `UPDATE webhook_deliveries SET available_at = UTC_TIMESTAMP(3)
      WHERE endpoint_id = CAST(? AS UNSIGNED) AND state = 'due' AND available_at > UTC_TIMESTAMP(3) LIMIT ${WOKEN_MAX}`,
    [endpointId],
  );

const webhookOf = (row: WebhookEndpointRow, withSecret = false): Webhook => ({
  endpointId: row.id,
  url: row.url,
  events: row.events.split(',') as OrderEventType[],
  state: row.state,
  failingSince: isoTimeOrNull(row.failing_since?.getTime() ?? null),
  lastError: row.last_error,
  previousSecretUntil: isoTimeOrNull(row.secret_before_until?.getTime() ?? null),
  createdAt: isoTime(row.created_at.getTime()),
  ...(withSecret ? { secret: row.secret } : {}),
});
