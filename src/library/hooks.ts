import { LRUCache } from 'lru-cache';
import type { Registry } from 'prom-client';
import type { Config } from '../core/config/schema.js';
import { keepRunning } from '../core/job.js';
import type { SignedMessages } from '../core/message-signatures.js';
import { decodeOrderEvents, type OrderEventType } from '../core/order-event.js';
import type { Delivery, DeliverySource } from '../core/ports/channels.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import { TOPICS } from '../core/topics.js';
import { consumeMessages, type MessageResult } from '../orders/consume-messages.js';
import { createConsumerMetrics } from '../orders/metrics.js';
import { brokerConnection } from '../process/servers.js';
import { systemClock as clock } from '../process/system-clock.js';
import { createJobMetrics } from '../process/telemetry.js';
import { OWN_GROUP_RETRIES } from '../rocketmq/admin/topic-lists.js';
import { createDeliverySource } from '../rocketmq/delivery-source.js';
import type { Hooks, OrderHook } from './options.js';

/** Renewed while the hooks of a message run. If this process dies, another gets the message after this time. */
const INVISIBLE_MS = 30_000;
/** Pause after a failed receive. A successful receive itself waits for messages. */
const RECEIVE_EVERY_MS = 200;
/** Events remembered as done. A message is delivered again if another of its events failed. */
const DONE_MAX = 10_000;

const HOOK_OF = {
  'order.created': 'onOrdered',
  'order.failed': 'onFailed',
  'order.paid': 'onPaid',
  'order.cancelled': 'onCancelled',
  'order.expired': 'onExpired',
  'order.refunding': 'onRefunding',
  'order.refunded': 'onRefunded',
  'order.returned': 'onReturned',
  'order.refund_failed': 'onRefundFailed',
  'order.disputed': 'onDisputed',
  'order.dispute_won': 'onDisputeWon',
} as const satisfies Record<OrderEventType, keyof Hooks>;

/** Calls all hooks, even if one throws. @throws the first error; the redelivered message calls only failed hooks */
export function callHooks(hooks: Partial<Record<(typeof HOOK_OF)[OrderEventType], OrderHook>>) {
  const done = new LRUCache<string, true>({ max: DONE_MAX });
  return async (body: string): Promise<MessageResult> => {
    const decoded = decodeOrderEvents(body);
    // Events of a newer version wait for an app that knows that version. No event may be lost.
    if (decoded.outcome !== 'decoded') throw new Error(`order events cannot be read: ${decoded.detail}`);
    const errors: unknown[] = [];
    for (const event of decoded.events) {
      const hook = hooks[HOOK_OF[event.type]];
      if (hook === undefined || done.has(event.eventId)) continue;
      try {
        await hook(event);
        done.set(event.eventId, true);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
    return { outcome: 'done' };
  };
}

/** Keeps every message ours until it is done or given back, no matter how long its hooks take. */
export function renewedByTimer(source: DeliverySource, invisibleMs: number, timer: Clock): DeliverySource {
  const renewed = (delivery: Delivery): Delivery => {
    const ended = new AbortController();
    const keep = async (): Promise<void> => {
      do await timer.sleep(invisibleMs / 3, ended.signal);
      while (!ended.signal.aborted && (await delivery.hold(invisibleMs)));
    };
    void keep(); // never rejects
    return {
      ...delivery,
      ack: () => (ended.abort(), delivery.ack()),
      retryAfter: (delayMs) => (ended.abort(), delivery.retryAfter(delayMs)),
    };
  };
  return { receive: async (max) => (await source.receive(max)).map(renewed) };
}

/** Listens as a consumer group of the app. @returns stops listening. @throws OperationalError rocketmq */
export async function listenToOrders(
  config: Config<'rocketmq' | 'brokerAccess' | 'messages'>,
  hooks: Hooks,
  parts: { readonly messages: SignedMessages; readonly registry: Registry; readonly log: Log },
): Promise<() => Promise<void>> {
  const { messages, registry, log } = parts;
  const { group } = hooks;
  const topic = TOPICS.orderEvent;
  const source = await createDeliverySource({
    ...brokerConnection(config, log),
    topic,
    group,
    invisibleMs: INVISIBLE_MS,
    awaitMs: config.rocketmq.receiveWaitMs,
  });
  // The keeper gets the same message in a group of ours, and parks it where operators look.
  const deadLetters = { park: () => Promise.resolve('parked' as const) };
  const job = consumeMessages(
    {
      source: renewedByTimer(messages.parkedBy(deadLetters).of(source, { group, topic }), INVISIBLE_MS, clock),
      ready: () => Promise.resolve(),
      handle: callHooks(hooks),
      deadLetters,
      clock,
      log,
      metrics: createConsumerMetrics(registry, group),
    },
    { group, topic, invisibleMs: INVISIBLE_MS, attemptsMax: OWN_GROUP_RETRIES + 1 },
  );
  const stopping = new AbortController();
  const metrics = createJobMetrics(registry);
  const loops = Array.from({ length: source.brokers }, () =>
    keepRunning(job, RECEIVE_EVERY_MS, stopping.signal, { clock, log, metrics }),
  );
  return async () => {
    stopping.abort();
    await Promise.all([...loops, source.close()]);
  };
}
