import { randomBytes } from 'node:crypto';
import type { OrderEventType } from '../../core/order-event.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { insertAudit } from '../../mysql/audit-log.js';
import { execute, inMs, knex, now, select } from '../../mysql/knex.js';
import type { MysqlPool, Statements } from '../../mysql/pool.js';
import type { WebhookEndpointRow } from '../../mysql/tables.js';
import { NOT_ABOUT_THE_EVENT } from './send.js';

/** Times are Unix ms on the clock of MySQL. */
export interface WebhookEndpoint {
  readonly endpointId: string;
  readonly url: string;
  /** Signs events. Operators see it when it is made, and never again. */
  readonly secret: string;
  readonly events: readonly OrderEventType[];
  /** `failed`: paused by the keeper, because nothing was delivered for a day. */
  readonly state: WebhookEndpointRow['state'];
  /** Attempts in a row that the receiver itself failed. */
  readonly failures: number;
  /** Since when nothing was delivered. Null: the last attempt succeeded. */
  readonly failingSinceMs: number | null;
  readonly lastError: string | null;
  readonly createdAtMs: number;
}

interface EndpointChanges {
  readonly url?: string | undefined;
  readonly events?: readonly OrderEventType[] | undefined;
  readonly state?: 'active' | 'paused' | undefined;
  readonly newSecret?: true | undefined;
}

/** The keeper has a loop for each endpoint. */
export const ENDPOINTS_MAX = 10;
/** An endpoint that has failed for this long is paused. */
const FAILING_MAX = 'INTERVAL 1 DAY';
const ERROR_MAX = 200;
/** Waiting deliveries that become due at once. The others come when their time has come. */
const WOKEN_MAX = 10_000;

const newSecret = (): string => `whsec_${randomBytes(32).toString('base64url')}`;
const audited = (endpointId: string, actor: string, action: string) => ({
  actor,
  action: `webhook.${action}`,
  subject: `webhook:${endpointId}`,
});

/** Endpoints of webhooks. A change writes an entry of `actor` to the audit log. @throws OperationalError mysql */
export type EndpointStore = ReturnType<typeof createEndpointStore>;

export function createEndpointStore(pool: MysqlPool) {
  return {
    /** At most ENDPOINTS_MAX, oldest first. */
    list: async (): Promise<WebhookEndpoint[]> => (await select(pool, endpoints())).map(endpointOf),

    find: (endpointId: string) => find(pool, endpointId),

    /** @returns null: there are ENDPOINTS_MAX already */
    create: ({ url, events }: Pick<WebhookEndpoint, 'url' | 'events'>, actor: string) =>
      pool.transaction(async (tx) => {
        if ((await select(tx, endpoints().forUpdate())).length >= ENDPOINTS_MAX) return null;
        const row = { url, secret: newSecret(), events: events.join(',') };
        const { insertId } = await execute(tx, knex('webhook_endpoints').insert(row));
        await insertAudit(tx, { ...audited(insertId, actor, 'created'), before: null, after: { url, events } });
        return find(tx, insertId);
      }),

    /** What was wrong may be mended, so the next attempt is made at once. @returns null: there is no such endpoint */
    edit: (endpointId: string, changes: EndpointChanges, actor: string) =>
      pool.transaction(async (tx) => {
        const found = await find(tx, endpointId);
        if (found === null) return null;
        const { url, events, state } = changes;
        const columns = withoutUndefined({
          ...{ url, events: events?.join(','), state },
          state_since: state && now(),
          secret: changes.newSecret && newSecret(),
        });
        const anew = { failures: 0, failing_since: null, available_at: now() };
        await execute(tx, endpoint(endpointId).update({ ...columns, ...anew }));
        if ((state ?? found.state) === 'active') await wake(tx, endpointId);
        const before = { url: found.url, events: found.events, state: found.state };
        await insertAudit(tx, { ...audited(endpointId, actor, 'edited'), before, after: withoutUndefined(changes) });
        return find(tx, endpointId);
      }),

    /** Its events are not sent any more. @returns whether there was such an endpoint */
    remove: (endpointId: string, actor: string) =>
      pool.transaction(async (tx) => {
        const found = await find(tx, endpointId);
        if (found === null) return false;
        await execute(tx, endpoint(endpointId).delete());
        const before = { url: found.url, events: found.events };
        await insertAudit(tx, { ...audited(endpointId, actor, 'removed'), before, after: null });
        return true;
      }),

    /** Notes that the receiver works. @param lastError only this was rejected; null: something was delivered */
    async noteAnswer(
      { endpointId, failures, lastError: before }: WebhookEndpoint,
      lastError: string | null,
    ): Promise<void> {
      if (failures === 0 && before === lastError) return;
      const well = { failures: 0, failing_since: null, last_error: lastError, available_at: now() };
      await execute(pool, endpoint(endpointId).update(well));
      if (failures > 0) await wake(pool, endpointId, NOT_REJECTED);
    },

    /**
     * Notes an attempt in which the receiver failed.
     * @param restMs pause of the endpoint
     * @returns whether this has paused the endpoint
     */
    async noteTrouble(endpointId: string, error: string, restMs: number): Promise<boolean> {
      const trouble = {
        failing_since: knex.raw('COALESCE(failing_since, UTC_TIMESTAMP(3))'),
        last_error: error.slice(0, ERROR_MAX),
        failures: knex.raw('failures + 1'),
        available_at: inMs(restMs),
      };
      await execute(pool, endpoint(endpointId).update(trouble));
      const long = endpoint(endpointId)
        .where({ state: 'active' })
        .whereRaw(`failing_since < UTC_TIMESTAMP(3) - ${FAILING_MAX}`);
      return (await execute(pool, long.update({ state: 'failed', state_since: now() }))).affectedRows > 0;
    },
  };
}

const endpoint = (endpointId: string) => knex('webhook_endpoints').where({ id: endpointId });
const endpoints = () => knex('webhook_endpoints').select('*').orderBy('id').limit(ENDPOINTS_MAX);

async function find(on: Statements, endpointId: string): Promise<WebhookEndpoint | null> {
  const [row] = await select(on, endpoint(endpointId).select('*').forUpdate());
  return row === undefined ? null : endpointOf(row);
}

/** A rejected event waits for its own time: the receiver would reject it again. */
const OF_RECEIVER = [...NOT_ABOUT_THE_EVENT].map((status) => `'status ${status}'`).join(', ');
const NOT_REJECTED = `(last_error IS NULL OR last_error NOT LIKE 'status 4%' OR last_error IN (${OF_RECEIVER}))`;

/** Makes waiting deliveries of an endpoint due. */
const wake = (on: Statements, endpointId: string, which = 'TRUE') =>
  on.execute(
    `UPDATE webhook_deliveries SET available_at = UTC_TIMESTAMP(3)
      WHERE endpoint_id = CAST(? AS UNSIGNED) AND state = 'due' AND available_at > UTC_TIMESTAMP(3) AND ${which}
      LIMIT ${WOKEN_MAX}`,
    [endpointId],
  );

const endpointOf = (row: WebhookEndpointRow): WebhookEndpoint => ({
  endpointId: row.id,
  url: row.url,
  secret: row.secret,
  events: row.events.split(',') as OrderEventType[],
  state: row.state,
  failures: row.failures,
  failingSinceMs: row.failing_since?.getTime() ?? null,
  lastError: row.last_error,
  createdAtMs: row.created_at.getTime(),
});
