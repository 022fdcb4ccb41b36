import { OperationalError } from '../core/errors.js';
import type { Undecodable } from '../core/message-body.js';
import { retryDelayMs } from '../core/back-off.js';
import type { Clock } from '../core/ports/clock.js';
import type { DeadLetterRepository } from '../core/ports/dead-letter-repository.js';
import type { Delivery, DeliverySource } from '../core/ports/delivery-source.js';
import type { ConsumeVerdict, KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { Log } from '../core/ports/log.js';
import type { Job } from '../core/job.js';

/** What became of one message. `later`: its time has not come, or what it speaks of is not there yet. */
export type Consumed = { readonly outcome: 'done' } | { readonly outcome: 'later'; readonly why: string } | Undecodable;

export interface ConsumePorts {
  readonly source: DeliverySource;
  /** Rejects while MySQL is out: then nothing is received. */
  readonly ready: () => Promise<void>;
  /** Works on one body. Every message comes at least once, so once more may do nothing. */
  readonly handle: (body: string) => Promise<Consumed>;
  readonly deadLetters: DeadLetterRepository;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<KeeperMetrics, 'consumed'>;
}

export interface ConsumeOptions {
  readonly group: string;
  /** Where its messages come from. */
  readonly topic: string;
  /** How long a message is ours after its receive or its renewal, ms; at least 10000. */
  readonly invisibleMs: number;
  /** Pause before the second delivery of a message, ms; later ones grow. Default 1000. */
  readonly retryFirstMs?: number;
}

const RECEIVE_MAX = 16;
/** When so much of their time is over, all that still wait are renewed: two thirds of it are left for any one message. */
const RENEW_AT = 1 / 3;

/**
 * Works for one consumer group: receive, handle one message after the other, ack. What must wait comes again with
 * back-off and is a dead letter in the end; what nobody can read is parked at once. An outage costs a message at most
 * one attempt, since nothing is received while it lasts; messages that take long (one may speak of thousands of orders)
 * cost those behind them none, since they are renewed.
 */
export function consume(ports: ConsumePorts, options: ConsumeOptions): Job {
  return {
    name: `consume:${options.group}`,
    async runOnce(): Promise<void> {
      await ports.ready();
      let left = await ports.source.receive(RECEIVE_MAX);
      let oursSinceMs = ports.clock.nowMs();
      while (left.length > 0) {
        if (ports.clock.nowMs() - oursSinceMs >= options.invisibleMs * RENEW_AT) {
          oursSinceMs = ports.clock.nowMs();
          left = await renewed(left, ports, options);
        }
        const [delivery, ...behind] = left;
        if (delivery === undefined) return;
        await takeOrGiveBack(delivery, behind, ports, options);
        left = behind;
      }
    },
  };
}

/** Those that are still ours. The others come again, maybe to another keeper: two must not work on one message. */
async function renewed(
  deliveries: readonly Delivery[],
  { log }: ConsumePorts,
  { group, invisibleMs }: ConsumeOptions,
): Promise<Delivery[]> {
  const ours = await Promise.all(deliveries.map((delivery) => delivery.hold(invisibleMs)));
  const lost = ours.filter((isOurs) => !isOurs).length;
  if (lost > 0) log.warn({ group, messages: lost }, 'messages waited too long for their turn and come again');
  return deliveries.filter((_, index) => ours[index]);
}

/** @throws OperationalError when a dependency is out; then those behind it are given back as well */
async function takeOrGiveBack(
  delivery: Delivery,
  behind: readonly Delivery[],
  ports: ConsumePorts,
  options: ConsumeOptions,
): Promise<void> {
  try {
    await take(delivery, ports, options);
  } catch (error) {
    ports.metrics.consumed(options.group, 'failed');
    // Who comes after it would meet the same outage; but poison, or a mistake of ours, must cost nobody else an attempt.
    const outage = error instanceof OperationalError && error.retryable;
    const back = outage ? [delivery, ...behind] : [delivery];
    await Promise.all(back.map((one) => retry(one, options)));
    if (outage) throw error;
    ports.log.error({ err: error, messageId: delivery.messageId, group: options.group }, 'message not handled');
  }
}

async function take(delivery: Delivery, ports: ConsumePorts, options: ConsumeOptions): Promise<void> {
  const { group } = options;
  const { messageId, attempt } = delivery;
  const consumed = await ports.handle(delivery.body);
  const verdict: ConsumeVerdict = consumed.outcome;
  ports.metrics.consumed(group, verdict);
  switch (consumed.outcome) {
    case 'done':
      await delivery.ack();
      return;
    case 'later':
      ports.log.debug({ messageId, attempt, group, why: consumed.why }, 'message comes again later');
      return retry(delivery, options);
    case 'undecodable':
    case 'unknown_version':
      return park(delivery, consumed, ports, options);
  }
}

/** Row first, then the ack: a death in between parks the same row again, which changes nothing. */
async function park(
  delivery: Delivery,
  { outcome: reason, detail }: Undecodable,
  { deadLetters, log }: ConsumePorts,
  { group, topic }: ConsumeOptions,
): Promise<void> {
  const { messageId, body, attempt: attempts, properties } = delivery;
  await deadLetters.park({
    ...{ messageId, group, originTopic: properties.get('topic') ?? topic, body, reason, detail, attempts },
    saleId: properties.get('saleId') ?? null,
    batchId: properties.get('batchId') ?? null,
  });
  await delivery.ack();
  log.error({ messageId, group, reason, detail }, 'message parked as a dead letter');
}

const retry = (delivery: Delivery, { retryFirstMs }: ConsumeOptions): Promise<void> =>
  delivery.retryAfter(retryDelayMs(delivery.attempt, retryFirstMs));
