import { redeliveryDelayMs } from '../core/back-off.js';
import { OperationalError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import type { Undecodable } from '../core/message-body.js';
import type { Clock } from '../core/ports/clock.js';
import type { DeadLetterParking } from '../core/ports/dead-letters.js';
import type { Delivery, DeliverySource } from '../core/ports/channels.js';
import type { Log } from '../core/ports/log.js';
import { NO_TRACING, type Tracing } from '../core/ports/tracing.js';
import { inSpan, messageFields } from '../core/spans.js';
import { TRACEPARENT } from '../core/trace-context.js';
import type { ConsumerMetrics } from './metrics.js';

/** The result of handling a message. `later` means that the message is not due, or that its orders do not exist yet. */
export type MessageResult =
  | { readonly outcome: 'done' }
  | { readonly outcome: 'later'; readonly why: string }
  | Undecodable;

export interface ConsumerPorts {
  readonly source: DeliverySource;
  /** Rejects while a store that `handle` needs is down or takes no writes; nothing is received then. */
  readonly ready: () => Promise<void>;
  /** Handles a message body. Safe to repeat: every message arrives at least once. */
  readonly handle: (body: string) => Promise<MessageResult>;
  readonly deadLetters: DeadLetterParking;
  /** If absent, nothing is traced. */
  readonly tracing?: Tracing;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: ConsumerMetrics;
}

export interface ConsumerOptions {
  readonly group: string;
  readonly topic: string;
  /** How long the broker keeps a received or renewed message for us, ms. At least 10000. */
  readonly invisibleMs: number;
  /** Number of deliveries after which the broker makes a message a dead letter. Absent if a process collects them. */
  readonly attemptsMax?: number;
  /** Pause before the second delivery of a message, ms. Later pauses grow. Default 1000. */
  readonly retryFirstMs?: number;
}

const RECEIVE_MAX = 16;
/** Waiting messages are renewed after this fraction of their time. The rest is left to handle one message. */
const RENEW_AT = 1 / 3;

/**
 * Consumes the messages of one group, one after the other, and acks them. A message that must wait is redelivered with
 * back-off and finally becomes a dead letter. An unreadable message is parked at once. An outage costs a message at
 * most one attempt, because nothing is received while it lasts. Messages behind a slow message, which may name
 * thousands of orders, are renewed and lose no attempt.
 */
export function consumeMessages(ports: ConsumerPorts, options: ConsumerOptions): Job {
  return {
    name: `consume:${options.group}`,
    async runOnce(): Promise<void> {
      await ports.ready();
      let left = await ports.source.receive(RECEIVE_MAX);
      let oursSinceMs = ports.clock.monotonicMs();
      while (left.length > 0) {
        if (ports.clock.monotonicMs() - oursSinceMs >= options.invisibleMs * RENEW_AT) {
          oursSinceMs = ports.clock.monotonicMs();
          left = await renew(left, ports, options);
        }
        const [delivery, ...behind] = left;
        if (delivery === undefined) return;
        await handleOrGiveBack(delivery, behind, ports, options);
        left = behind;
      }
    },
  };
}

/** Returns deliveries that are still ours. Others are redelivered, and two keepers must not handle one message. */
async function renew(
  deliveries: readonly Delivery[],
  { log }: ConsumerPorts,
  { group, invisibleMs }: ConsumerOptions,
): Promise<Delivery[]> {
  const ours = await Promise.all(deliveries.map((delivery) => delivery.hold(invisibleMs)));
  const lost = ours.filter((isOurs) => !isOurs).length;
  if (lost > 0) log.warn({ group, messages: lost }, 'messages waited too long; the broker delivers them again');
  return deliveries.filter((_, index) => ours[index]);
}

/** @throws OperationalError if a dependency is down; the messages behind this one are given back too */
async function handleOrGiveBack(
  delivery: Delivery,
  behind: readonly Delivery[],
  ports: ConsumerPorts,
  options: ConsumerOptions,
): Promise<void> {
  try {
    await handle(delivery, ports, options);
  } catch (error) {
    const isLast = delivery.attempt >= (options.attemptsMax ?? Infinity);
    ports.metrics.consumed(options.group, isLast ? 'dead_letter' : 'failed');
    // An outage affects the next messages too. A bad message or a bug must not cost the others an attempt.
    const outage = error instanceof OperationalError && error.retryable;
    const givenBack = outage ? [delivery, ...behind] : [delivery];
    await Promise.all(givenBack.map((one) => retry(one, options)));
    if (outage) throw error;
    const said = isLast ? 'the last attempt failed; the message is now a dead letter' : 'message not handled';
    ports.log.error({ err: error, messageId: delivery.messageId, group: options.group }, said);
  }
}

async function handle(delivery: Delivery, ports: ConsumerPorts, options: ConsumerOptions): Promise<void> {
  const { group, topic } = options;
  const { messageId, attempt, properties } = delivery;
  const span = (ports.tracing ?? NO_TRACING).startWork(properties.get(TRACEPARENT), {
    name: `process ${topic}`,
    kind: 'consumer',
    fields: messageFields({ topic, group, messageId, attempt }),
  });
  await inSpan(span, async () => {
    const result = await ports.handle(delivery.body);
    ports.metrics.consumed(group, result.outcome);
    span?.set({ 'seckill.outcome': result.outcome });
    await end(delivery, result, ports, options);
  });
}

async function end(
  delivery: Delivery,
  result: MessageResult,
  ports: ConsumerPorts,
  options: ConsumerOptions,
): Promise<void> {
  const { messageId, attempt } = delivery;
  const { group } = options;
  switch (result.outcome) {
    case 'done':
      await delivery.ack();
      return;
    case 'later':
      ports.log.debug({ messageId, attempt, group, why: result.why }, 'the broker delivers the message again later');
      return retry(delivery, options);
    case 'undecodable':
    case 'unknown_version':
      return park(delivery, result, ports, options);
  }
}

/** Writes the row first, then acks. If the process dies in between, parking again changes nothing. */
async function park(
  delivery: Delivery,
  { outcome: reason, detail }: Undecodable,
  { deadLetters, log }: ConsumerPorts,
  { group, topic }: ConsumerOptions,
): Promise<void> {
  const { messageId, body, attempt, properties } = delivery;
  await deadLetters.park({
    messageId,
    group,
    originTopic: properties.get('topic') ?? topic,
    saleId: properties.get('saleId') ?? null,
    batchId: properties.get('batchId') ?? null,
    body,
    reason,
    detail,
    attempts: attempt,
  });
  await delivery.ack();
  log.error({ messageId, group, reason, detail }, 'parked a message as a dead letter');
}

const retry = (delivery: Delivery, { retryFirstMs }: ConsumerOptions): Promise<void> =>
  delivery.retryAfter(redeliveryDelayMs(delivery.attempt, retryFirstMs));
