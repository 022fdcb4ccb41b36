import type { Registry } from 'prom-client';
import { metricMakers } from '../../core/metric-makers.js';
import type { DropReason } from './delivery-store.js';
import type { Sent } from './send.js';

export type WebhookMetrics = ReturnType<typeof createWebhookMetrics>;

export function createWebhookMetrics(registry: Registry) {
  const { counter } = metricMakers(registry);
  const tries = counter('seckill_webhook_tries_total', 'Attempts to deliver an event to an endpoint.', ['outcome']);
  const dropped = counter('seckill_webhook_dropped_total', 'Events that an endpoint will not get.', ['reason']);
  return {
    webhookTried: (outcome: Sent['outcome']): void => tries.inc({ outcome }),
    webhooksDropped: (reason: DropReason, events: number): void => dropped.inc({ reason }, events),
  };
}
