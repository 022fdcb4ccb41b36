/** A message as the memory broker keeps it. */
export interface StoredMessage {
  readonly messageId: string;
  readonly body: string;
  readonly properties: ReadonlyMap<string, string>;
  /** How often the broker asked for it while it was a half message. */
  readonly checks: number;
  /** What `attempt` says at its first delivery: 1, or more for a dead letter. */
  readonly firstAttempt: number;
}

/** One copy on loan: to be acked or given back with its receipt before `untilMs`. */
export interface Loan {
  readonly receipt: number;
  readonly message: StoredMessage;
  readonly attempt: number;
  readonly untilMs: number;
}

/**
 * What one group has seen of one topic. Keeps the rules of the broker: a loan that runs out comes back as the next
 * attempt; after `retryMaxTimes` + 1 attempts the next receive of the group moves the message to the dead letters.
 */
export class MemoryGroup {
  readonly #log: readonly StoredMessage[];
  readonly #retryMaxTimes: number;
  readonly #toDeadLetters: (message: StoredMessage) => void;
  readonly #loans = new Map<number, Loan>();
  #nextIndex = 0;
  #nextReceipt = 1;

  constructor(log: readonly StoredMessage[], retryMaxTimes: number, toDeadLetters: (message: StoredMessage) => void) {
    this.#log = log;
    this.#retryMaxTimes = retryMaxTimes;
    this.#toDeadLetters = toDeadLetters;
  }

  take(max: number, nowMs: number, invisibleMs: number): Loan[] {
    const taken: Loan[] = [];
    const lend = (message: StoredMessage, attempt: number): void => {
      const loan = { receipt: this.#nextReceipt++, message, attempt, untilMs: nowMs + invisibleMs };
      this.#loans.set(loan.receipt, loan);
      taken.push(loan);
    };
    for (const loan of [...this.#loans.values()]) {
      if (taken.length === max) return taken;
      if (loan.untilMs > nowMs) continue;
      this.#loans.delete(loan.receipt);
      const given = loan.attempt - loan.message.firstAttempt + 1;
      if (given > this.#retryMaxTimes) this.#toDeadLetters(loan.message);
      else lend(loan.message, loan.attempt + 1);
    }
    while (taken.length < max && this.#nextIndex < this.#log.length) {
      const message = this.#log[this.#nextIndex++] as StoredMessage;
      lend(message, message.firstAttempt);
    }
    return taken;
  }

  /** False when the loan has run out: the message comes again. */
  ack(receipt: number, nowMs: number): boolean {
    const loan = this.#loans.get(receipt);
    if (!loan || loan.untilMs <= nowMs) return false;
    return this.#loans.delete(receipt);
  }

  /** Moves the end of the loan and gives the receipt that is good from then on; null when the loan has run out. */
  hideFor(receipt: number, nowMs: number, ms: number): number | null {
    const loan = this.#loans.get(receipt);
    if (!loan || loan.untilMs <= nowMs) return null;
    this.#loans.delete(receipt);
    const renewed = { ...loan, receipt: this.#nextReceipt++, untilMs: nowMs + ms };
    this.#loans.set(renewed.receipt, renewed);
    return renewed.receipt;
  }

  /** When the next message can be taken, Unix ms: 0 for one that nobody has had yet, null when there is none at all. */
  get nextMs(): number | null {
    if (this.#nextIndex < this.#log.length) return 0;
    let next: number | null = null;
    for (const { untilMs } of this.#loans.values()) next = next === null ? untilMs : Math.min(next, untilMs);
    return next;
  }

  /** Messages of the topic that are neither acked nor dead. */
  get unfinished(): number {
    return this.#loans.size + this.#log.length - this.#nextIndex;
  }
}
