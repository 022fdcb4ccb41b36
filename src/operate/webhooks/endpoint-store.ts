import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { NewWebhook, Webhook, WebhookChanges } from '../../contract/webhooks.js';
import { assert } from '../../core/errors.js';
import type { OrderEventType } from '../../core/order-event.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { insertAudit } from '../../mysql/audit-log.js';
import { execute, inMs, knex, msAgo, now, select } from '../../mysql/knex.js';
import type { MysqlPool, Statements, Transaction } from '../../mysql/pool.js';
import type { WebhookEndpointRow } from '../../mysql/tables.js';

/** The keeper has a loop for each endpoint. */
export const ENDPOINTS_MAX = 10;
const TOO_MANY = `There are ${ENDPOINTS_MAX} endpoints already. Remove one first.`;
/** An endpoint that has failed for this long is paused. */
const FAILING_MAX_MS = 86_400_000;
/** A replaced secret also signs for this long, so the receiver can switch to the new secret without losing an event. */
const SECRET_BEFORE_MS = 86_400_000;
/** Maximum number of waiting deliveries that become due at once. The others stay due at their own time. */
const WOKEN_MAX = 10_000;

const newSecret = (): string => `whsec_${randomBytes(32).toString('base64url')}`;

/** Audits changes. Returns the endpoint (with a new secret), or why nothing changed. @throws OperationalError mysql */
export function createEndpointStore(pool: MysqlPool) {
  return {
    /** At most ENDPOINTS_MAX, oldest first. */
    list: async (): Promise<Webhook[]> => (await select(pool, endpoints())).map((row) => webhookOf(row)),

    find: (endpointId: string) => find(pool, endpointId),

    create: ({ url, events }: NewWebhook, actor: string): Promise<Webhook | string> =>
      pool.transaction(async (tx) => {
        if ((await select(tx, endpoints().forUpdate())).length >= ENDPOINTS_MAX) return TOO_MANY;
        const row = { url, secret: newSecret(), events: events.join(',') };
        const { insertId } = await execute(tx, knex('webhook_endpoints').insert(row));
        await insertAudit(tx, { ...entryOf(insertId, actor, 'created'), before: null, after: { url, events } });
        return changed(tx, insertId, true);
      }),

    /** The fault may be repaired, so the next attempt is made at once. @returns null: there is no such endpoint */
    edit: (endpointId: string, changes: WebhookChanges, actor: string): Promise<Webhook | string | null> =>
      pool.transaction(async (tx) => {
        const isRenewed = changes.newSecret === true;
        if (isRenewed) await forgetSecrets(tx);
        const found = await find(tx, endpointId);
        if (found === null) return null;
        if (isRenewed && found.secret_before_until !== null) return tooSoon(found.secret_before_until);
        const { url, events, state } = changes;
        const columns = withoutUndefined({ url, events: events?.join(','), state, state_since: state && now() });
        const anew = { failures: 0, failing_since: null, available_at: now() };
        const replaced = { secret_before: found.secret, secret_before_until: inMs(SECRET_BEFORE_MS) };
        const secrets = isRenewed ? { secret: newSecret(), ...replaced } : {};
        await execute(tx, endpoint(endpointId).update({ ...columns, ...secrets, ...anew }));
        if ((state ?? found.state) === 'active') await wake(tx, endpointId);
        const before = settings(found);
        if (isRenewed || !isDeepStrictEqual(before, settings({ ...found, ...columns })))
          await insertAudit(tx, { ...entryOf(endpointId, actor, 'edited'), before, after: withoutUndefined(changes) });
        return changed(tx, endpointId, isRenewed);
      }),

    /** The keeper drops its undelivered events. @returns whether there was such an endpoint */
    remove: (endpointId: string, actor: string) =>
      pool.transaction(async (tx) => {
        const found = await find(tx, endpointId);
        if (found === null) return false;
        await execute(tx, endpoint(endpointId).delete());
        await insertAudit(tx, { ...entryOf(endpointId, actor, 'removed'), before: settings(found), after: null });
        return true;
      }),

    /** Notes that the receiver works. @param lastError only this was rejected; null: something was delivered */
    async noteAnswer({ id, failures, last_error }: WebhookEndpointRow, lastError: string | null): Promise<void> {
      if (failures === 0 && last_error === lastError) return;
      const well = { failures: 0, failing_since: null, last_error: lastError, available_at: now() };
      await execute(pool, endpoint(id).update(well));
    },

    /** Notes a failed attempt and pauses the endpoint for a while. @returns whether this has paused the endpoint */
    async noteTrouble(endpointId: string, lastError: string, restMs: number): Promise<boolean> {
      const since = knex.raw('COALESCE(failing_since, UTC_TIMESTAMP(3))');
      const failing = { failing_since: since, failures: knex.raw('failures + 1'), last_error: lastError };
      await execute(pool, endpoint(endpointId).update({ ...failing, available_at: inMs(restMs) }));
      const failed = endpoint(endpointId).where({ state: 'active' }).where('failing_since', '<', msAgo(FAILING_MAX_MS));
      return (await execute(pool, failed.update({ state: 'failed', state_since: now() }))).affectedRows > 0;
    },

    /** Forgets secrets that have signed long enough beside their successors. */
    forgetSecrets: () => forgetSecrets(pool),
  };
}

const endpoint = (endpointId: string) => knex('webhook_endpoints').where({ id: endpointId });
const endpoints = () => knex('webhook_endpoints').select('*').orderBy('id').limit(ENDPOINTS_MAX);

async function find(on: Statements, endpointId: string): Promise<WebhookEndpointRow | null> {
  const [row] = await select(on, endpoint(endpointId).select('*').forUpdate());
  return row ?? null;
}

async function forgetSecrets(on: Statements): Promise<void> {
  const over = knex('webhook_endpoints').where('secret_before_until', '<=', now());
  await execute(on, over.update({ secret_before: null, secret_before_until: null }));
}

/** A third secret would end the first, which may be the only secret that the receiver knows. */
const tooSoon = (until: Date): string =>
  `The previous secret still signs, so no other secret can be made before ${until.toISOString()}.`;

async function changed(tx: Transaction, endpointId: string, withSecret: boolean): Promise<Webhook> {
  const row = await find(tx, endpointId);
  assert(row !== null, `endpoint ${endpointId} is gone`);
  return webhookOf(row, withSecret);
}

export const entryOf = (endpointId: string, actor: string, action: string) => ({
  actor,
  action: `webhook.${action}`,
  subject: `webhook:${endpointId}`,
});

function wake(on: Statements, endpointId: string) {
  const waiting = knex('webhook_deliveries').where({ endpoint_id: endpointId, state: 'due' });
  return execute(on, waiting.where('available_at', '>', now()).limit(WOKEN_MAX).update({ available_at: now() }));
}

const settings = ({ url, events, state }: Pick<WebhookEndpointRow, 'url' | 'events' | 'state'>) => ({
  url,
  events: events.split(',') as OrderEventType[],
  state,
});

const webhookOf = (row: WebhookEndpointRow, withSecret = false): Webhook => ({
  endpointId: row.id,
  ...settings(row),
  failingSince: row.failing_since?.toISOString() ?? null,
  lastError: row.last_error,
  previousSecretUntil: row.secret_before_until?.toISOString() ?? null,
  createdAt: row.created_at.toISOString(),
  ...(withSecret ? { secret: row.secret } : {}),
});
