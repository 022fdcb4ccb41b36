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
  /** Makes the message visible to the workers. Never rejects: the check-back makes up for a lost commit. */
  commit(): Promise<void>;
  /** Drops the message. Returns true once the broker confirmed; until then no buyer may be refused. Never rejects. */
  rollback(): Promise<boolean>;
}

/** The producer side of the purchase topic. */
export interface PurchaseChannel {
  /**
   * Stores a batch as a half message, the write-ahead record of its deduct. Never throws. Source: protocol rule 3
   * @returns `unavailable` if the broker certainly does not have it, else `outcome_unknown` on an error
   */
  sendHalf(batch: Batch): Promise<HalfMessage | 'unavailable' | 'outcome_unknown'>;
}

/** The producer side of the re-drive topic. */
export interface RedriveChannel {
  /** Sends a plain message. @throws OperationalError rocketmq; it may be stored (a duplicate does no harm) */
  publish(batch: Batch): Promise<void>;
}

/** The producer side of the topic of payment deadlines. */
export interface DeadlineChannel {
  /**
   * Stores a message that becomes visible at the deadline, or at once if that is over.
   * @param traceparent of the publishing span, if any
   * @throws OperationalError rocketmq; it may be stored (a duplicate does no harm)
   */
  publish(deadline: PaymentDeadline, traceparent?: string): Promise<void>;
}

/** The producer side of the topic of order events. */
export interface OrderEventChannel {
  /**
   * Publishes events as one message.
   * @param events 1 to EVENTS_PER_MESSAGE_MAX, all of one sale
   * @param traceparent of the publishing span, if any
   * @throws OperationalError rocketmq; it may be stored (a duplicate does no harm)
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
  /** Our own: topic, saleId, batchId, signature, traceparent. */
  readonly properties: ReadonlyMap<string, string>;
  /** Returns false if the broker refused: it then delivers the message again, which does no harm. Never rejects. */
  ack(): Promise<boolean>;
  /**
   * Keeps the message invisible for another `ms` from now, at least 10000. Repeatable, and no attempt; `ack` and
   * `retryAfter` still end it. False if the broker refused: it then delivers the message again, perhaps to another
   * consumer. Never rejects.
   */
  hold(ms: number): Promise<boolean>;
  /** Redelivers in about `delayMs` (the broker adds 2 to 5 s), or after the time-out if this fails. Never rejects. */
  retryAfter(delayMs: number): Promise<void>;
}

/** The consumer side of one topic and group. */
export interface DeliverySource {
  /**
   * Waits some seconds at most. Empty if nothing arrived. @throws OperationalError rocketmq
   * @param max 1 to 32
   */
  receive(max: number): Promise<Delivery[]>;
}

/** A source, with the number of loops needed to wait at every broker. */
export interface LoopedSource extends DeliverySource {
  readonly loops: number;
}

/** Where the queues that workers read ended at one moment: an offset per queue. */
export type QueueEnds = ReadonlyMap<string, number>;

/** How far the workers have received. Methods throw OperationalError rocketmq. */
export interface WorkerProgress {
  ends(): Promise<QueueEnds>;
  /** Whether workers have received every message before these ends; the broker cannot tell whether they wrote it. */
  haveReceived(ends: QueueEnds): Promise<boolean>;
  /**
   * Returns sales of messages before these ends that no worker has received. Null if there are too many messages, or if
   * a message names no sale.
   */
  unreceivedSales(ends: QueueEnds): Promise<ReadonlySet<string> | null>;
}
