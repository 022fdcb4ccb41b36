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
import { createDeliveryStore, DROP_REASONS, type DropReason, type DueOrder } from './delivery-store.js';
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
  const counter = <L extends string>(name: string, label: L, help: string): Counter<L> =>
    new Counter({ name, help, labelNames: [label], registers: [registry] });
  const tries = counter('seckill_webhook_tries_total', 'outcome', 'Attempts to deliver an event to an endpoint.');
  const dropped = counter('seckill_webhook_dropped_total', 'reason', 'Events that an endpoint will not get.');
  return {
    webhookTried: (outcome: Sent['outcome']): void => tries.inc({ outcome }),
    webhooksDropped: (reason: DropReason, events: number): void => dropped.inc({ reason }, events),
  };
}

interface Keeper {
  readonly mysql: MysqlPool;
  readonly leases: JobLeases;
  readonly owner: string;
  readonly sendWebhook: SendWebhook;
  readonly config: { readonly keeper: { readonly outboxEveryMs: number } };
  readonly due: (work: DueWork, job: Job, otherwise?: 'idle') => Job;
  /** Aborts when the keeper stops: no call begins any more. */
  readonly stopping: AbortSignal;
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

/**
 * Delivers events, with a loop for each endpoint, so that a slow endpoint delays no other. The first loop finds new work
 * soon. The others look less often while there is none.
 */
export function webhookJobs(keeper: Keeper): PlannedJob[] {
  const { mysql, due, config, stopping } = keeper;
  const deliveries = createDeliveryStore(mysql);
  const busy = new Set<string>();
  const deliver: Job = {
    name: 'deliver-webhooks',
    async runOnce(): Promise<'idle' | void> {
      const endpointId = (await deliveries.endpointsDue()).find((id) => !busy.has(id));
      if (endpointId === undefined) return;
      busy.add(endpointId);
      try {
        for (let takes = 1; takes <= TAKES_MAX && !stopping.aborted; takes++) {
          const taken = await take(endpointId, keeper);
          if (taken !== 'more') return taken;
        }
      } finally {
        busy.delete(endpointId);
      }
    },
  };
  const tidy: Job = { name: 'tidy-webhooks', runOnce: () => tidyUp(keeper) };
  const { outboxEveryMs } = config.keeper;
  const further = due('webhook', deliver, 'idle');
  return [
    [outboxEveryMs, due('webhook', deliver)],
    ...Array.from({ length: ENDPOINTS_MAX - 1 }, (): PlannedJob => [outboxEveryMs, further]),
    [TIDY_EVERY_MS, tidy],
  ];
}

/** Sends the events of some orders. @returns `more` if more can be sent at once, `idle` if no event could be sent */
async function take(endpointId: string, keeper: Keeper): Promise<'more' | 'idle' | void> {
  const { mysql, leases, owner, sendWebhook, stopping, clock, metrics, log } = keeper;
  const deliveries = createDeliveryStore(mysql);
  const endpoints = createEndpointStore(mysql);
  const startedMs = clock.monotonicMs();
  if (!(await leases.hold(LEASE, owner, LEASE_MS))) return 'idle';
  const endpoint = await endpoints.find(endpointId);
  if (endpoint?.state !== 'active') return 'idle';
  const max = endpoint.failures > 0 ? 1 : ORDERS_PER_TAKE; // a receiver in trouble is only probed
  const { orders, isFull } = await deliveries.due(endpointId, max);
  const delivered: string[] = [];
  const undelivered: { readonly delivery: DueOrder[0]; readonly sent: Sent }[] = [];
  const failure = (): Sent | undefined =>
    delivered.length > 0 ? undefined : undelivered.find(({ sent }) => sent.outcome === 'failed')?.sent;
  const isOver = (): boolean =>
    stopping.aborted || failure() !== undefined || clock.monotonicMs() - startedMs > TAKE_MAX_MS;

  const queue = orders.values();
  /** Sends the events of each order one after the other, up to the first that is not delivered. */
  const lane = async (): Promise<void> => {
    for (const order of queue) {
      for (const delivery of order) {
        if (isOver()) return;
        const { eventId: id, type, saleId, orderId, at } = delivery;
        const sent = await sendWebhook(endpoint, { id, type, saleId, orderId, at: Date.parse(at) });
        metrics.webhookTried(sent.outcome);
        if (sent.outcome === 'delivered') delivered.push(delivery.deliveryId);
        else undelivered.push({ delivery, sent });
        if (sent.outcome !== 'delivered') break;
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));

  await deliveries.markDelivered(delivered);
  const down = failure();
  for (const { delivery, sent } of undelivered) {
    // If the receiver is down, this says nothing about the event, which must be due again when the receiver is back.
    const maxMs = down !== undefined && sent.outcome === 'failed' ? REST_MAX_MS : RETRY_MAX_MS;
    const delayMs = jittered(doublingDelayMs(delivery.attempts + 1, RETRY_FIRST_MS, maxMs));
    await deliveries.postpone(endpointId, delivery, delayMs, sent.detail);
  }
  if (down !== undefined) {
    const restMs = doublingDelayMs(endpoint.failures + 1, RETRY_FIRST_MS, REST_MAX_MS);
    const { detail } = down;
    if (await endpoints.noteTrouble(endpointId, detail, restMs)) log.error({ endpointId, detail }, PAUSED);
    return;
  }
  const lastError = delivered.length > 0 ? null : undelivered[0]?.sent.detail;
  if (lastError !== undefined) await endpoints.noteAnswer(endpoint, lastError);
  return isFull ? 'more' : lastError === undefined ? 'idle' : undefined;
}

/** Drops events that will not be sent, removes old rows, and forgets replaced secrets. One keeper counts what is dropped. */
async function tidyUp({ mysql, leases, owner, stopping, metrics, log }: Keeper): Promise<void> {
  if (!(await leases.hold('tidy-webhooks', owner, TIDY_EVERY_MS))) return;
  const { drop, removeOld } = createDeliveryStore(mysql);
  /** @param step returns the number of rows that it changed */
  const repeat = async (step: () => Promise<number>): Promise<void> => {
    for (let steps = 1; steps <= TIDY_STEPS_MAX && !stopping.aborted; steps++) if ((await step()) < TIDY_ROWS) return;
  };
  for (const reason of DROP_REASONS) {
    const events = new Map<string, number>();
    await repeat(async () => {
      const dropped = await drop(reason, TIDY_ROWS);
      for (const endpointId of dropped) events.set(endpointId, (events.get(endpointId) ?? 0) + 1);
      metrics.webhooksDropped(reason, dropped.length);
      return dropped.length;
    });
    for (const [endpointId, count] of events) log.warn({ endpointId, reason, events: count }, DROPPED);
  }
  await repeat(() => removeOld(TIDY_ROWS));
  await createEndpointStore(mysql).forgetSecrets();
}

const PAUSED = 'nothing was delivered to a webhook endpoint for a day, so it is paused; run seckill webhooks list';
const DROPPED = 'events of a webhook endpoint are dropped';
