import type { Batch } from '../batch.js';
import type { OrderEvent } from '../order-event.js';
import type { PaymentDeadline } from '../payment-deadline.js';

/** The answer to a check-back. After `no_answer`, the broker asks again later. */
export type CheckBackAnswer = 'commit' | 'rollback' | 'no_answer';

/** A half message that is neither committed nor rolled back. */
export type OpenHalf = Pick<Delivery, 'messageId' | 'body' | 'properties'>;

/** Called for every half message that stays open. Must not throw; a throw counts as `no_answer`. */
export type CheckBack = (half: OpenHalf) => Promise<CheckBackAnswer>;

/** A half message that the broker has stored but does not deliver yet. */
export interface HalfMessage {
  /** Makes the message visible to the workers. Never rejects, because the check-back makes up for a lost commit. */
  commit(): Promise<void>;
  /**
   * Drops the message. Resolves true only if the broker confirmed it; until then no buyer may be refused. Never
   * rejects.
   */
  rollback(): Promise<boolean>;
}

/** The producer side of the purchase topic. */
export interface PurchaseChannel {
  /**
   * Stores a batch as a half message, which is the write-ahead record of its deduct. Never throws.
   * @returns the half message; `unavailable` if the broker certainly does not have it; `outcome_unknown` otherwise
   * Source: protocol rule 3
   */
  sendHalf(batch: Batch): Promise<HalfMessage | 'unavailable' | 'outcome_unknown'>;
}

/** The producer side of the re-drive topic. */
export interface RedriveChannel {
  /**
   * Publishes a batch again, as a plain message.
   * @throws OperationalError rocketmq; the message may have been stored (a duplicate does no harm)
   */
  publish(batch: Batch): Promise<void>;
}

/** The producer side of the topic of payment deadlines. */
export interface DeadlineChannel {
  /**
   * Stores a message that becomes visible at the deadline, or at once if the deadline is over.
   * @param traceparent of the publishing span, if there is one
   * @throws OperationalError rocketmq; the message may have been stored (a duplicate does no harm)
   */
  publish(deadline: PaymentDeadline, traceparent?: string): Promise<void>;
}

/** The producer side of the topic of order events. */
export interface OrderEventChannel {
  /**
   * Publishes events as one message.
   * @param events 1 to EVENTS_PER_MESSAGE_MAX, all of one sale
   * @param traceparent of the publishing span, if there is one
   * @throws OperationalError rocketmq; the message may have been stored (a duplicate does no harm)
   */
  publish(events: readonly OrderEvent[], traceparent?: string): Promise<void>;
}

/** A copy of a message. The broker delivers no other copy before `invisibleMs` is over. */
export interface Delivery {
  readonly messageId: string;
  readonly body: string;
  /** 1 at the first delivery. */
  readonly attempt: number;
  /** Whether a check-back ended the half message. */
  readonly checkedBack: boolean;
  /** Our own properties: topic, saleId, batchId, signature, traceparent. */
  readonly properties: ReadonlyMap<string, string>;
  /**
   * Acknowledges the message. Resolves false if the broker did not accept the ack: it then delivers the message again,
   * which does no harm. Never rejects.
   */
  ack(): Promise<boolean>;
  /**
   * Keeps the message invisible for another `ms` from now, at least 10000. May be called repeatedly. This is not a
   * redelivery, so it does not count as an attempt, and `ack` and `retryAfter` still end it. Resolves false if the
   * broker refused: it then delivers the message again, possibly to another consumer. Never rejects.
   */
  hold(ms: number): Promise<boolean>;
  /**
   * Asks for redelivery in about `delayMs` (the broker adds 2 to 5 s). Never rejects. If the call is lost, the time-out
   * applies.
   */
  retryAfter(delayMs: number): Promise<void>;
}

/** The consumer side of one topic and group. */
export interface DeliverySource {
  /**
   * Waits for messages, at most some seconds. Returns an empty list if none arrived.
   * @param max 1 to 32
   * @throws OperationalError rocketmq
   */
  receive(max: number): Promise<Delivery[]>;
}

/** A source, with the number of loops needed to wait at every broker. */
export interface LoopedSource extends DeliverySource {
  readonly loops: number;
}

/** Where the queues that workers read ended at one moment: an offset per queue. */
export type QueueEnds = ReadonlyMap<string, number>;

/** How far the workers have received. */
export interface WorkerProgress {
  /** @throws OperationalError rocketmq */
  ends(): Promise<QueueEnds>;
  /**
   * Returns whether workers have received every message before these ends. A received message may not be written yet:
   * the broker cannot tell what a worker still holds.
   * @throws OperationalError rocketmq
   */
  haveReceived(ends: QueueEnds): Promise<boolean>;
  /**
   * Returns the sales of the messages before these ends that no worker has received. Null if there are too many
   * messages, or if one names no sale.
   * @throws OperationalError rocketmq
   */
  unreceivedSales(ends: QueueEnds): Promise<ReadonlySet<string> | null>;
}
