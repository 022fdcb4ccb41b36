import { randomBytes } from 'node:crypto';
import { NetworkSet } from '../../admission/lists/network-set.js';
import type { Section } from '../../core/config/schema.js';
import type { OrderEventChannel } from '../../core/ports/channels.js';
import { recent } from '../../core/recent.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { planDeliveries } from '../../mysql/webhook-queue.js';
import type { Connections } from '../../process/connections.js';
import { systemClock as clock } from '../../process/system-clock.js';
import { flawOfUrl } from './addresses.js';
import { createDeliveryStore } from './delivery-store.js';
import { createEndpointStore } from './endpoint-store.js';
import { createWebhookSender, type SendWebhook, type Sent } from './send.js';

const networksOf = ({ webhookNetworks }: Section<'keeper'>): NetworkSet =>
  new NetworkSet(webhookNetworks.split(',').filter((text) => text !== ''));

export const openSender = (config: Section<'keeper'>): SendWebhook =>
  createWebhookSender(networksOf(config), () => clock.nowMs());

export type WebhookServices = ReturnType<typeof openWebhooks>;

export function openWebhooks(connections: Connections<'mysql' | 'redis' | 'keeper'>) {
  const mysql = connections.mysql();
  const { keeper } = connections.config;
  const networks = networksOf(keeper);
  const send = openSender(keeper);
  const webhooks = createEndpointStore(mysql);
  return {
    webhooks,
    webhookDeliveries: createDeliveryStore(mysql),
    /** Says why a URL cannot be an endpoint, as a predicate. Null: it can. */
    flawOfWebhook: (url: string) => flawOfUrl(url, networks),
    /** Sends an event of type `webhook.test` now. @returns null: there is no such endpoint */
    async testWebhook(endpointId: string): Promise<Sent | null> {
      const endpoint = await webhooks.find(endpointId);
      const id = `test-${randomBytes(9).toString('base64url')}`;
      return endpoint && send(endpoint, { id, type: 'webhook.test', at: clock.nowMs() });
    },
  };
}

/** An endpoint gets all events from this time after its creation. */
const ENDPOINTS_KEPT_MS = 1_000;

/** Stores the deliveries of each endpoint before the events are published. If either fails, both are repeated. */
export function planningWebhooks(events: OrderEventChannel, mysql: MysqlPool): OrderEventChannel {
  const endpoints = recent(createEndpointStore(mysql).list, ENDPOINTS_KEPT_MS, clock);
  return {
    async publish(published, traceparent) {
      await planDeliveries(mysql, published, await endpoints());
      await events.publish(published, traceparent);
    },
  };
}
