export const DEAD_LETTER_REASONS = [
  'retries_exhausted',
  'undecodable',
  'unknown_version',
  'unknown_sale',
  'forged',
] as const;
export type DeadLetterReason = (typeof DEAD_LETTER_REASONS)[number];

/** `parked` → `replayed` | `discarded`, both final. */
export const DEAD_LETTER_STATES = ['parked', 'replayed', 'discarded'] as const;
export type DeadLetterState = (typeof DEAD_LETTER_STATES)[number];

/** A parked message that no attempt could turn into orders. */
export interface DeadLetter {
  readonly messageId: string;
  /** The consumer group that gave up. */
  readonly group: string;
  /** The topic of the original message, from our property `topic`: a dead letter of the broker does not name it. */
  readonly originTopic: string;
  readonly saleId: string | null;
  readonly batchId: string | null;
  readonly body: string;
  /** Whether the body is the batch with that id. A batch has at most one parked dead letter, whatever its messages. */
  readonly isBatch?: boolean;
  /** A `forged` dead letter is not trusted: it names no sale and no batch, and is never sent again. */
  readonly reason: DeadLetterReason;
  /** The fault, for people. */
  readonly detail: string;
  readonly attempts: number;
}

/** Keeps the record of dead letters, because the broker forgets its own after some days. */
export interface DeadLetterParking {
  /** Repeating it, or parking another message of the same batch, changes nothing. @throws OperationalError mysql */
  park(deadLetter: DeadLetter): Promise<'parked' | 'already_parked'>;
}

/** A dead letter as the trace of a purchase shows it. Times in Unix ms. */
export interface TracedDeadLetter {
  readonly deadLetterId: string;
  readonly group: string;
  readonly reason: DeadLetterReason;
  readonly detail: string;
  readonly attempts: number;
  readonly state: DeadLetterState;
  readonly parkedAtMs: number;
  /** Number of replays begun. */
  readonly replays: number;
  /** Start of the last replay. Null if there was none. While the dead letter is `parked`, that replay has not ended. */
  readonly replayStartedAtMs: number | null;
  readonly note: string | null;
}

/** Finds the dead letters of a purchase. Methods throw OperationalError mysql. */
export interface TracedDeadLetters {
  /**
   * Lists dead letters by batch, by key (a batch id, or the request id of a purchase in a parked batch), or by the
   * trace id of a purchase in a parked batch, oldest first.
   */
  list(
    named: { readonly batchId?: string; readonly key?: string; readonly traceId?: string },
    page: { readonly max: number },
  ): Promise<TracedDeadLetter[]>;

  find(deadLetterId: string): Promise<(TracedDeadLetter & { readonly body: string }) | null>;
}
