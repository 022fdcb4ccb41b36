import type { Batch } from '../batch.js';
import type { OrderEvent } from '../order-event.js';
import type { PaymentDeadline } from '../payment-deadline.js';

/** The answer to a check-back. `no_answer`: the broker asks again later. */
export type CheckBackAnswer = 'commit' | 'rollback' | 'no_answer';

/** A half message that is neither committed nor rolled back. */
export type OpenHalf = Pick<Delivery, 'messageId' | 'body' | 'properties'>;

/** Called for every half message that stays open. Must not throw; a throw counts as `no_answer`. */
export type CheckBack = (half: OpenHalf) => Promise<CheckBackAnswer>;

/** A half message that the broker has stored and does not deliver yet. */
export interface HalfMessage {
  /** Makes the message visible to the workers. Never rejects: the check-back heals a lost commit. */
  commit(): Promise<void>;
  /** Drops the message. True only when the broker said OK: until then no buyer may be refused. Never rejects. */
  rollback(): Promise<boolean>;
}

/** The producer side of the purchase topic. */
export interface PurchaseChannel {
  /**
   * Stores a batch as a half message: the write-ahead record of its deduct. Never throws.
   * @returns the half message; `unavailable` when the broker certainly does not have it; `outcome_unknown` otherwise
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
  /** 1 for the first delivery. */
  readonly attempt: number;
  /** True when a check-back ended the half message. */
  readonly checkedBack: boolean;
  /** Our own properties: topic, saleId, batchId, signature, traceparent. */
  readonly properties: ReadonlyMap<string, string>;
  /**
   * Acknowledges the message. Resolves false when the broker did not accept the ack: the broker then delivers the
   * message again, which does no harm. Never rejects.
   */
  ack(): Promise<boolean>;
  /**
   * Keeps the message invisible for another `ms` from now, at least 10000. May be called repeatedly. Moving the
   * redelivery time is not a redelivery, so no attempt is counted. `ack` and `retryAfter` still end it. Resolves false
   * when the broker refused: it then delivers the message again, maybe to another consumer. Never rejects.
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
   * Waits for messages, at most some seconds. An empty list means that none arrived.
   * @param max 1 to 32
   * @throws OperationalError rocketmq
   */
  receive(max: number): Promise<Delivery[]>;
}

/** A source, with the number of loops needed to wait at every broker. */
export interface LoopedSource extends DeliverySource {
  readonly loops: number;
}

/** Ends of the queues that workers read, at one moment: an offset per queue. */
export type QueueEnds = ReadonlyMap<string, number>;

/** How far the workers have received. */
export interface WorkerProgress {
  /** @throws OperationalError rocketmq */
  ends(): Promise<QueueEnds>;
  /**
   * Says whether some worker has received every message before these ends. A received message may not be written yet:
   * the broker cannot tell what a worker still holds.
   * @throws OperationalError rocketmq
   */
  haveReceived(ends: QueueEnds): Promise<boolean>;
  /**
   * Returns the sales of the messages before these ends that no worker has received. Null: too many messages, or a
   * message without a sale.
   * @throws OperationalError rocketmq
   */
  unreceivedSales(ends: QueueEnds): Promise<ReadonlySet<string> | null>;
}
