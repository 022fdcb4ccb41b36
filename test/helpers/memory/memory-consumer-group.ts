/** A message as the memory broker stores it. */
export interface StoredMessage {
  readonly messageId: string;
  readonly body: string;
  readonly properties: ReadonlyMap<string, string>;
  /** Number of check-backs while it was a half message. */
  readonly checks: number;
  /** `attempt` of its first delivery: 1, or more for a dead letter. */
  readonly firstAttempt: number;
}

/** A delivery that is neither acked nor returned, invisible to other consumers until `untilMs`. */
export interface InFlight {
  readonly receipt: number;
  readonly message: StoredMessage;
  readonly attempt: number;
  readonly untilMs: number;
}

/**
 * A consumer group of a topic, with the rules of the broker: a delivery is repeated as the next attempt after its
 * invisible time, and after `retryMaxTimes` + 1 attempts the next receive of the group moves the message to the dead
 * letters.
 */
export class MemoryConsumerGroup {
  readonly #log: readonly StoredMessage[];
  readonly #retryMaxTimes: number;
  readonly #toDeadLetters: (message: StoredMessage) => void;
  readonly #inFlight = new Map<number, InFlight>();
  #nextIndex = 0;
  #nextReceipt = 1;

  constructor(log: readonly StoredMessage[], retryMaxTimes: number, toDeadLetters: (message: StoredMessage) => void) {
    this.#log = log;
    this.#retryMaxTimes = retryMaxTimes;
    this.#toDeadLetters = toDeadLetters;
  }

  receive(max: number, nowMs: number, invisibleMs: number): InFlight[] {
    const received: InFlight[] = [];
    const deliver = (message: StoredMessage, attempt: number): void => {
      const delivery = { receipt: this.#nextReceipt++, message, attempt, untilMs: nowMs + invisibleMs };
      this.#inFlight.set(delivery.receipt, delivery);
      received.push(delivery);
    };
    for (const { receipt, message, attempt, untilMs } of [...this.#inFlight.values()]) {
      if (received.length === max) return received;
      if (untilMs > nowMs) continue;
      this.#inFlight.delete(receipt);
      const attempts = attempt - message.firstAttempt + 1;
      if (attempts > this.#retryMaxTimes) this.#toDeadLetters(message);
      else deliver(message, attempt + 1);
    }
    while (received.length < max && this.#nextIndex < this.#log.length) {
      const message = this.#log[this.#nextIndex++] as StoredMessage;
      deliver(message, message.firstAttempt);
    }
    return received;
  }

  /** Returns false after the invisible time, when the message is delivered again. */
  ack(receipt: number, nowMs: number): boolean {
    const delivery = this.#inFlight.get(receipt);
    if (!delivery || delivery.untilMs <= nowMs) return false;
    return this.#inFlight.delete(receipt);
  }

  /** Sets a new end of the invisible time. @returns the new valid receipt, or null if that time was over */
  hideFor(receipt: number, nowMs: number, ms: number): number | null {
    const delivery = this.#inFlight.get(receipt);
    if (!delivery || delivery.untilMs <= nowMs) return null;
    this.#inFlight.delete(receipt);
    const renewed = { ...delivery, receipt: this.#nextReceipt++, untilMs: nowMs + ms };
    this.#inFlight.set(renewed.receipt, renewed);
    return renewed.receipt;
  }

  /** Returns when the next message can be received, Unix ms: 0 if it was never delivered, null if there is none. */
  get nextMs(): number | null {
    if (this.#nextIndex < this.#log.length) return 0;
    let next: number | null = null;
    for (const { untilMs } of this.#inFlight.values()) next = next === null ? untilMs : Math.min(next, untilMs);
    return next;
  }

  /** Counts messages that were delivered at least once. Messages of a topic are delivered in order. */
  get received(): number {
    return this.#nextIndex;
  }

  /** Counts messages of the topic that are neither acked nor dead letters. */
  get unfinished(): number {
    return this.#inFlight.size + this.#log.length - this.#nextIndex;
  }
}
