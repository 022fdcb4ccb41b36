import type { Batch } from '../../../src/core/batch.js';
import { assert, OperationalError } from '../../../src/core/errors.js';
import { encodeOrderEvents } from '../../../src/core/order-event.js';
import { SIGNATURE_PROPERTY } from '../../../src/core/message-signatures.js';
import { encodePaymentDeadline } from '../../../src/core/payment-deadline.js';
import { TOPICS, WRITER_RETRIES_MAX } from '../../../src/core/topics.js';
import { traceProperty } from '../../../src/core/trace-context.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type {
  WorkerProgress,
  CheckBack,
  DeadlineChannel,
  Delivery,
  DeliverySource,
  HalfMessage,
  OrderEventChannel,
  PurchaseChannel,
  OpenHalf,
  RedriveChannel,
} from '../../../src/core/ports/channels.js';
import { TEST_SIGNATURES } from '../signatures.js';
import { ManualClock } from './manual-clock.js';
import { MemoryConsumerGroup, type InFlight, type StoredMessage } from './memory-consumer-group.js';

/** Faults that a test can inject, each for the next call of its kind. */
export type MemoryFault =
  | 'half_unavailable' // refused, not stored
  | 'half_reply_lost' // stored, but the sender gets no answer
  | 'half_lost' // not stored, but the sender cannot know that
  | 'commit_lost'
  | 'rollback_lost'
  | 'publish_fails' // the re-drive message is not stored
  | 'publish_reply_lost' // stored, but the call throws
  | 'receive_fails'
  | 'ack_lost';

export interface MemoryBrokerOptions {
  /** Defaults to a ManualClock. */
  readonly clock?: Clock;
  /** Half messages older than this are checked back. Defaults to 10000, as in our broker. */
  readonly transactionTimeOutMs?: number;
  /** Retries before a message of a group is dead. Defaults to 5, as for the writer groups. */
  readonly retryMaxTimes?: (group: string) => number;
}

interface Half extends OpenHalf {
  readonly topic: string;
  readonly sentAtMs: number;
  checks: number;
}

/**
 * A broker in memory with the rules that our code may rely on: half messages are not delivered, the proxy forgets a
 * half message at its first commit or rollback, a delivery without an ack in time is repeated, and after its last retry
 * a message becomes a dead letter. Time moves only with the clock, and only `runChecks()` makes check-backs.
 */
export class MemoryBroker {
  readonly clock: Clock;
  readonly #options: Required<Omit<MemoryBrokerOptions, 'clock'>>;
  readonly #topics = new Map<string, StoredMessage[]>();
  readonly #groups = new Map<string, MemoryConsumerGroup>();
  readonly #halves = new Map<string, Half>();
  readonly #delayed: { readonly topic: string; readonly message: StoredMessage; readonly dueMs: number }[] = [];
  readonly #faults: MemoryFault[] = [];
  readonly #checkBacks = new Set<CheckBack>();
  #nextId = 1;

  constructor(options: MemoryBrokerOptions = {}) {
    this.clock = options.clock ?? new ManualClock();
    this.#options = {
      transactionTimeOutMs: options.transactionTimeOutMs ?? 10_000,
      retryMaxTimes: options.retryMaxTimes ?? (() => WRITER_RETRIES_MAX),
    };
  }

  /** Injects faults for the next call of each kind. Several faults of one kind hit successive calls. */
  breakNext(...faults: MemoryFault[]): void {
    this.#faults.push(...faults);
  }

  /** Returns the bodies of the half messages that are neither committed nor rolled back. */
  get openHalves(): readonly string[] {
    return [...this.#halves.values()].map(({ body }) => body);
  }

  /** Returns all bodies ever made visible on a topic. */
  published(topic: string): readonly string[] {
    return this.#topic(topic).map((message) => message.body);
  }

  /** Counts messages of the topic that the group has neither acked nor turned into dead letters. */
  unfinished(topic: string, group: string): number {
    return this.#group(topic, group).unfinished;
  }

  /** Returns when the group can next receive a message, Unix ms, or null if no message can come. */
  nextMs(topic: string, group: string): number | null {
    let next = this.#group(topic, group).nextMs;
    for (const { topic: of, dueMs } of this.#delayed) {
      if (of === topic) next = next === null ? dueMs : Math.min(next, dueMs);
    }
    return next;
  }

  purchaseChannel(checkBack: CheckBack, topic: string = TOPICS.purchase): PurchaseChannel & { close(): Promise<void> } {
    this.#checkBacks.add(checkBack);
    let open = true;
    return {
      sendHalf: async (batch) => (open ? this.#storeHalf(topic, batch) : 'unavailable'),
      close: async () => {
        open = false;
        this.#checkBacks.delete(checkBack);
      },
    };
  }

  redriveChannel(topic: string = TOPICS.redrive): RedriveChannel & { close(): Promise<void> } {
    return {
      publish: async (batch) => {
        this.send(topic, batch.body, propertiesOf(topic, batch));
      },
      close: async () => undefined,
    };
  }

  /** Returns the producers of payment deadlines and order events. */
  orderChannels(): { readonly deadlines: DeadlineChannel; readonly events: OrderEventChannel } {
    return {
      deadlines: {
        publish: async (deadline, traceparent) => {
          const { saleId, batchId, deadlineAtMs } = deadline;
          const topic = TOPICS.paymentDeadline;
          const body = encodePaymentDeadline(deadline);
          this.send(topic, body, signed(topic, body, { saleId, batchId, ...traceProperty(traceparent) }), deadlineAtMs);
        },
      },
      events: {
        publish: async (events, traceparent) => {
          const topic = TOPICS.orderEvent;
          const body = encodeOrderEvents(events);
          this.send(
            topic,
            body,
            signed(topic, body, { saleId: events[0]?.saleId ?? '', ...traceProperty(traceparent) }),
          );
        },
      },
    };
  }

  /** Makes any body visible, at once or at `dueMs`, for messages that our programs would not write. */
  publishRaw(topic: string, body: string, properties: Record<string, string> = {}, dueMs = 0): void {
    const messageId = this.#newId();
    const message = { messageId, body, properties: new Map(Object.entries(properties)), checks: 0, firstAttempt: 1 };
    if (dueMs > this.clock.nowMs()) this.#delayed.push({ topic, message, dueMs });
    else this.#topic(topic).push(message);
  }

  /** Sends a message without a transaction. @throws OperationalError if the test injected a fault */
  send(topic: string, body: string, properties: Record<string, string>, dueMs?: number): void {
    if (this.#isBroken('publish_fails')) throw fault('publish_fails');
    this.publishRaw(topic, body, properties, dueMs);
    if (this.#isBroken('publish_reply_lost')) throw fault('publish_reply_lost');
  }

  /** @param awaitMs how long an empty receive sleeps on the clock; default 0 */
  source(topic: string, group: string, invisibleMs = 10_000, awaitMs = 0): DeliverySource & { close(): Promise<void> } {
    const consumers = this.#group(topic, group);
    let open = true;
    return {
      receive: async (max) => {
        assert(max >= 1 && max <= 32, 'max must be 1 to 32');
        if (this.#isBroken('receive_fails')) throw fault('receive_fails');
        if (!open) return [];
        this.#showDue();
        const received = consumers.receive(max, this.clock.nowMs(), invisibleMs);
        if (received.length === 0) await this.clock.sleep(awaitMs);
        return received.map((one) => this.#delivery(consumers, one));
      },
      close: async () => {
        open = false;
      },
    };
  }

  /** Returns how far these groups have received. */
  progress(queues: readonly { readonly topic: string; readonly group: string }[]): WorkerProgress {
    return {
      ends: async () => {
        this.#showDue();
        return new Map(queues.map(({ topic }) => [topic, this.#topic(topic).length]));
      },
      haveReceived: async (ends) =>
        queues.every(({ topic, group }) => this.#group(topic, group).received >= (ends.get(topic) ?? 0)),
      unreceivedSales: async (ends) =>
        new Set(
          queues.flatMap(({ topic, group }) => {
            const waiting = this.#topic(topic).slice(this.#group(topic, group).received, ends.get(topic) ?? 0);
            return waiting.map(({ properties }) => properties.get('saleId') ?? '');
          }),
        ),
    };
  }

  /** Checks back every half message that is old enough, one after another. Returns their number. */
  async runChecks(): Promise<number> {
    const [checkBack] = this.#checkBacks;
    const dueMs = this.clock.nowMs() - this.#options.transactionTimeOutMs;
    const due = [...this.#halves.values()].filter((half) => half.sentAtMs <= dueMs);
    for (const half of due) {
      half.checks += 1; // even if no producer can answer
      const answer = await checkBack?.(half).catch(() => 'no_answer' as const);
      if (answer === 'commit') this.#makeVisible(half);
      if (answer === 'rollback') this.#halves.delete(half.messageId);
    }
    return due.length;
  }

  #storeHalf(topic: string, batch: Batch): HalfMessage | 'unavailable' | 'outcome_unknown' {
    if (this.#isBroken('half_unavailable')) return 'unavailable';
    if (this.#isBroken('half_lost')) return 'outcome_unknown';
    const properties = new Map(Object.entries(propertiesOf(topic, batch)));
    const sentAtMs = this.clock.nowMs();
    const half: Half = { messageId: this.#newId(), topic, body: batch.body, properties, sentAtMs, checks: 0 };
    this.#halves.set(half.messageId, half);
    if (this.#isBroken('half_reply_lost')) return 'outcome_unknown';
    let known = true; // the proxy forgets a half message at its first commit or rollback
    const end = (lost: MemoryFault): boolean => {
      if (!known || this.#isBroken(lost)) return false;
      known = false;
      return true;
    };
    return {
      commit: async () => {
        if (end('commit_lost')) this.#makeVisible(half);
      },
      rollback: async () => {
        if (!end('rollback_lost')) return false;
        this.#halves.delete(half.messageId);
        return true;
      },
    };
  }

  /** A commit delivers a half message again even if a check-back has ended it: the broker does not deduplicate. */
  #makeVisible(half: Half): void {
    const { topic, messageId, body, properties, checks } = half;
    this.#halves.delete(messageId);
    this.#topic(topic).push({ messageId, body, properties, checks, firstAttempt: 1 });
  }

  #showDue(): void {
    const due = this.#delayed.filter(({ dueMs }) => dueMs <= this.clock.nowMs());
    for (const one of due) {
      this.#delayed.splice(this.#delayed.indexOf(one), 1);
      this.#topic(one.topic).push(one.message);
    }
  }

  #delivery(group: MemoryConsumerGroup, { message, attempt, receipt: first }: InFlight): Delivery {
    let receipt: number | null = first;
    const hideFor = (ms: number): number | null =>
      receipt === null ? null : group.hideFor(receipt, this.clock.nowMs(), ms);
    return {
      messageId: message.messageId,
      body: message.body,
      attempt,
      checkedBack: message.checks > 0,
      properties: message.properties,
      ack: async () => !this.#isBroken('ack_lost') && receipt !== null && group.ack(receipt, this.clock.nowMs()),
      hold: async (ms) => {
        receipt = hideFor(ms);
        return receipt !== null;
      },
      retryAfter: async (delayMs) => {
        hideFor(delayMs);
        receipt = null;
      },
    };
  }

  #topic(topic: string): StoredMessage[] {
    let log = this.#topics.get(topic);
    if (!log) this.#topics.set(topic, (log = []));
    return log;
  }

  #group(topic: string, group: string): MemoryConsumerGroup {
    const key = `${topic} ${group}`;
    let found = this.#groups.get(key);
    if (!found) {
      const deadLetters = this.#topic(`%DLQ%${group}`);
      const retryMaxTimes = this.#options.retryMaxTimes(group);
      const firstAttempt = retryMaxTimes + 3; // counts as the real broker does
      const toDeadLetters = (message: StoredMessage): void => void deadLetters.push({ ...message, firstAttempt });
      found = new MemoryConsumerGroup(this.#topic(topic), retryMaxTimes, toDeadLetters);
      this.#groups.set(key, found);
    }
    return found;
  }

  #isBroken(kind: MemoryFault): boolean {
    const index = this.#faults.indexOf(kind);
    if (index >= 0) this.#faults.splice(index, 1);
    return index >= 0;
  }

  #newId(): string {
    return `memory-${this.#nextId++}`;
  }
}

const signed = (topic: string, body: string, properties: Record<string, string>): Record<string, string> => ({
  topic,
  ...properties,
  [SIGNATURE_PROPERTY]: TEST_SIGNATURES.sign(topic, body),
});

const propertiesOf = (topic: string, { saleId, batchId, epoch, body, traceparent }: Batch): Record<string, string> =>
  signed(topic, body, { saleId, batchId, epoch: String(epoch), ...traceProperty(traceparent) });

const fault = (kind: MemoryFault): OperationalError => new OperationalError('rocketmq', kind, { retryable: true });
