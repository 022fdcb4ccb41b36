import { Counter, type Registry } from 'prom-client';
import { doublingDelayMs, jittered } from '../../core/back-off.js';
import type { Job, PlannedJob } from '../../core/job.js';
import type { OrderEventChannel } from '../../core/ports/channels.js';
import type { Clock } from '../../core/ports/clock.js';
import type { DueWork } from '../../core/ports/due-work.js';
import type { JobLeases } from '../../core/ports/job-leases.js';
import type { Log } from '../../core/ports/log.js';
import { recent } from '../../core/recent.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { createDeliveryStore, type DueOrder, type WebhookDelivery } from './delivery-store.js';
import { createEndpointStore, ENDPOINTS_MAX } from './endpoint-store.js';
import type { SendWebhook, Sent } from './send.js';

/** Orders of one take, and how many of them are sent at the same time. */
const ORDERS_PER_TAKE = 64;
const LANES = 8;
/** The most takes of one run. A backlog is worked off in one run, but no run is endless. */
const TAKES_MAX = 50;
/** One keeper delivers, so that two do not send events of one order at once. */
const LEASE = 'deliver-webhooks';
const LEASE_MS = 15_000;
/** A take begins no call after this time, so that its last call and its writes end before its lease. */
const TAKE_MAX_MS = 8_000;
/** An event is tried again after 1, 2, 4 … s, and every day at the latest. */
const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 86_400_000;
/** An endpoint in trouble gets one event after 1, 2, 4 … s, and every minute at the latest. */
const REST_MAX_MS = 60_000;
/** An endpoint gets all events from this time after its creation. */
const ENDPOINTS_KEPT_MS = 1_000;
const TIDY_EVERY_MS = 60_000;
const TIDY_ROWS = 1_000;
const TIDY_STEPS_MAX = 600;

export type WebhookMetrics = ReturnType<typeof createWebhookMetrics>;

export function createWebhookMetrics(registry: Registry) {
  const tries = new Counter({
    name: 'seckill_webhook_tries_total',
    help: 'Attempts to deliver an event to a webhook endpoint, by outcome.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  return { webhookTried: (outcome: Sent['outcome']): void => tries.labels(outcome).inc() };
}

interface Keeper {
  readonly mysql: MysqlPool;
  readonly leases: JobLeases;
  readonly owner: string;
  readonly sendWebhook: SendWebhook;
  readonly config: { readonly keeper: { readonly outboxEveryMs: number } };
  readonly due: (work: DueWork, job: Job) => Job;
  readonly clock: Clock;
  readonly metrics: WebhookMetrics;
  readonly log: Log;
}

/** Stores what each endpoint must get, before the events are published. A failure of either repeats both. */
export function planningWebhooks(events: OrderEventChannel, { mysql, clock }: Keeper): OrderEventChannel {
  const deliveries = createDeliveryStore(mysql);
  const endpoints = recent(createEndpointStore(mysql).list, ENDPOINTS_KEPT_MS, clock);
  return {
    async publish(published, traceparent) {
      await deliveries.plan(published, await endpoints());
      await events.publish(published, traceparent);
    },
  };
}

/** Delivers events, with a loop for each endpoint, so that a slow endpoint delays no other. */
export function webhookJobs(keeper: Keeper): PlannedJob[] {
  const { mysql, due, config } = keeper;
  const deliveries = createDeliveryStore(mysql);
  const busy = new Set<string>();
  const deliver: Job = {
    name: 'deliver-webhooks',
    async runOnce(): Promise<'idle' | void> {
      const endpointId = (await deliveries.endpointsDue()).find((id) => !busy.has(id));
      if (endpointId === undefined) return;
      busy.add(endpointId);
      try {
        for (let takes = 1; takes <= TAKES_MAX; takes++) {
          const taken = await take(endpointId, keeper);
          if (taken !== 'more') return taken === 'nothing' ? 'idle' : undefined;
        }
      } finally {
        busy.delete(endpointId);
      }
    },
  };
  const tidy: Job = {
    name: 'tidy-webhooks',
    async runOnce(): Promise<void> {
      for (let steps = 1; steps <= TIDY_STEPS_MAX; steps++) if ((await deliveries.tidy(TIDY_ROWS)) < TIDY_ROWS) return;
    },
  };
  return [
    ...Array.from({ length: ENDPOINTS_MAX }, (): PlannedJob => [config.keeper.outboxEveryMs, due('webhook', deliver)]),
    [TIDY_EVERY_MS, tidy],
  ];
}

/** Sends the events of some orders. @returns `more` if more can be sent at once, `nothing` if no event could be sent */
async function take(endpointId: string, keeper: Keeper): Promise<'more' | 'some' | 'nothing'> {
  const { mysql, leases, owner, sendWebhook, clock, metrics, log } = keeper;
  const deliveries = createDeliveryStore(mysql);
  const endpoints = createEndpointStore(mysql);
  const startedMs = clock.monotonicMs();
  if (!(await leases.hold(LEASE, owner, LEASE_MS))) return 'nothing';
  const endpoint = await endpoints.find(endpointId);
  if (endpoint?.state !== 'active') return 'nothing';
  const max = endpoint.failures > 0 ? 1 : ORDERS_PER_TAKE; // a receiver in trouble is only probed
  const { orders, isFull } = await deliveries.due(endpointId, max);
  const delivered: string[] = [];
  const undelivered: { readonly delivery: WebhookDelivery; readonly sent: Sent }[] = [];
  const isDown = (): boolean => delivered.length === 0 && undelivered.some(({ sent }) => sent.outcome === 'failed');

  /** Sends the events of one order, one after the other, up to the first that is not delivered. */
  const sendOrder = async (order: DueOrder): Promise<void> => {
    for (const delivery of order) {
      if (isDown() || clock.monotonicMs() - startedMs > TAKE_MAX_MS) return;
      const { eventId: id, type, saleId, orderId, atMs: at } = delivery;
      const sent = await sendWebhook(endpoint, { id, type, saleId, orderId, at });
      metrics.webhookTried(sent.outcome);
      if (sent.outcome !== 'delivered') return void undelivered.push({ delivery, sent });
      delivered.push(delivery.deliveryId);
    }
  };
  const queue = orders.values();
  const lane = async (): Promise<void> => {
    for (const order of queue) await sendOrder(order);
  };
  await Promise.all(Array.from({ length: LANES }, lane));

  await deliveries.markDelivered(delivered);
  for (const { delivery, sent } of undelivered) {
    const delayMs = jittered(doublingDelayMs(delivery.attempts + 1, RETRY_FIRST_MS, RETRY_MAX_MS));
    await deliveries.postpone(endpointId, delivery, delayMs, sent.detail);
  }
  if (isDown()) {
    const detail = undelivered.find(({ sent }) => sent.outcome === 'failed')?.sent.detail ?? '';
    const restMs = doublingDelayMs(endpoint.failures + 1, RETRY_FIRST_MS, REST_MAX_MS);
    if (await endpoints.noteTrouble(endpointId, detail, restMs)) log.error({ endpointId, detail }, PAUSED);
    return 'some';
  }
  const hasAnswered = delivered.length + undelivered.length > 0;
  if (hasAnswered)
    await endpoints.noteAnswer(endpoint, delivered.length > 0 ? null : (undelivered[0]?.sent.detail ?? null));
  if (isFull) return 'more';
  return hasAnswered ? 'some' : 'nothing';
}

const PAUSED = 'nothing was delivered to a webhook endpoint for a day, so it is paused; run seckill webhooks list';
