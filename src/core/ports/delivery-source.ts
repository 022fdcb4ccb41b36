/** One copy of a message, lent to us until `invisibleMs` is over. */
export interface Delivery {
  readonly messageId: string;
  readonly body: string;
  /** 1 for the first delivery. */
  readonly attempt: number;
  /** True when the broker had to ask what became of the half message. */
  readonly checkedBack: boolean;
  /** Our own properties: topic, saleId, batchId. */
  readonly properties: ReadonlyMap<string, string>;
  /**
   * Done with it. Resolves false when the broker did not take the ack: the message comes again, which does no harm.
   * Never rejects.
   */
  ack(): Promise<boolean>;
  /**
   * Keeps it ours for another `ms` from now, at least 10000; may be called again and again. Moving the time at which it
   * comes again is no redelivery, so no attempt is counted; `ack` and `retryAfter` still end it. Resolves false when the
   * broker did not take it: then it comes again, maybe to somebody else. Never rejects.
   */
  hold(ms: number): Promise<boolean>;
  /** Ask for it again in about `delayMs` (the broker adds 2 to 5 s). Never rejects; a lost call means the time-out. */
  retryAfter(delayMs: number): Promise<void>;
}

/** The consumer side of one topic and group. */
export interface DeliverySource {
  /**
   * Waits for messages, at most some seconds; an empty list means there were none.
   * @param max 1 to 32
   * @throws OperationalError rocketmq
   */
  receive(max: number): Promise<Delivery[]>;
}
