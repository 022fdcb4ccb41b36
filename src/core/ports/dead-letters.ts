export const DEAD_LETTER_REASONS = [
  'retries_exhausted',
  'undecodable',
  'unknown_version',
  'unknown_sale',
  'forged',
] as const;
export type DeadLetterReason = (typeof DEAD_LETTER_REASONS)[number];

/** `parked` → `replayed` | `discarded`. Both are final. */
export const DEAD_LETTER_STATES = ['parked', 'replayed', 'discarded'] as const;
export type DeadLetterState = (typeof DEAD_LETTER_STATES)[number];

/** A parked message that no attempt could turn into orders. */
export interface DeadLetter {
  readonly messageId: string;
  /** The consumer group that gave up. */
  readonly group: string;
  /** The topic of the original message, from our own property `topic`: a dead letter of the broker does not name it. */
  readonly originTopic: string;
  readonly saleId: string | null;
  readonly batchId: string | null;
  readonly body: string;
  /**
   * Whether the body is the batch with that id. A batch has at most one parked dead letter, however many of its
   * messages died.
   */
  readonly isBatch?: boolean;
  /**
   * The reason for parking. A `forged` dead letter is not believed: it names no sale and no batch, and is never sent
   * again.
   */
  readonly reason: DeadLetterReason;
  /** The fault, for people. */
  readonly detail: string;
  readonly attempts: number;
}

/** The one parked dead letter of a batch. */
export interface ParkedBatch {
  readonly deadLetterId: string;
  readonly batchId: string;
  readonly body: string;
}

/** A dead letter in a list, without its body, which may be long. Times in Unix ms. */
export interface DeadLetterSummary extends Omit<DeadLetter, 'body' | 'isBatch'> {
  /** The row number, in decimal; grows with time. */
  readonly deadLetterId: string;
  readonly state: DeadLetterState;
  readonly parkedAtMs: number;
  /** How many replays were begun. */
  readonly replays: number;
  /** Start of the last replay. Null: never. While the dead letter is `parked`, that replay has not ended. */
  readonly replayStartedAtMs: number | null;
  /** The result of the last replay or discard, for people. */
  readonly note: string | null;
}

export interface StoredDeadLetter extends DeadLetterSummary {
  readonly body: string;
}

/** Conditions that must all hold. An absent condition matches every dead letter. */
export interface DeadLetterFilter {
  /** Matches any of these ids; a small number of them. */
  readonly ids?: readonly string[];
  readonly group?: string;
  readonly originTopic?: string;
  readonly saleId?: string;
  readonly batchId?: string;
  /** A batch id. For a parked dead letter, also the request id of any purchase in it. */
  readonly key?: string;
  /** A trace id of any purchase in a parked dead letter. */
  readonly traceId?: string;
  readonly reason?: DeadLetterReason;
  /** Text contained in `detail`. */
  readonly text?: string;
  readonly state?: DeadLetterState;
  /** Earliest time of parking, Unix ms. */
  readonly sinceMs?: number;
  /** Parked before this time, Unix ms. */
  readonly untilMs?: number;
  /** Whether a replay was ever begun. */
  readonly replayBegun?: boolean;
}

/** A page of dead letters, oldest first. */
export interface DeadLetterPage {
  /** Returns dead letters after this id. Absent: starts at the oldest. */
  readonly afterId?: string;
  readonly max: number;
}

/** Result of a move. Only a `parked` dead letter is changed. */
export type DeadLetterMove = 'done' | 'not_parked' | 'not_found';

/**
 * Keeps the record of dead letters: the broker forgets its own after some days. Every move leaves a row in the audit
 * log, in the same transaction: actor, action, the dead letter before and after.
 */
export interface DeadLetterRepository {
  /**
   * Stores a dead letter as `parked`. The same message, or another message of the same batch, changes nothing.
   * @throws OperationalError mysql
   */
  park(deadLetter: DeadLetter): Promise<'parked' | 'already_parked'>;

  /**
   * Lists the parked batches after `afterBatchId`, by batch id.
   * @throws OperationalError mysql
   */
  parkedBatches(afterBatchId: string, max: number): Promise<ParkedBatch[]>;

  /** @throws OperationalError mysql */
  list(filter: DeadLetterFilter, page: DeadLetterPage): Promise<DeadLetterSummary[]>;

  /** @throws OperationalError mysql */
  count(filter: DeadLetterFilter): Promise<number>;

  /** @throws OperationalError mysql */
  find(deadLetterId: string): Promise<StoredDeadLetter | null>;

  /**
   * Notes that a replay begins, before anything is published. The dead letter stays `parked`.
   * @param actor requested the replay
   * @throws OperationalError mysql
   */
  beginReplay(deadLetterId: string, actor: string): Promise<DeadLetterMove>;

  /**
   * Closes a dead letter.
   * @throws OperationalError mysql
   */
  close(deadLetterId: string, actor: string, end: 'replayed' | 'discarded', note: string): Promise<DeadLetterMove>;

  /**
   * Notes why a replay did not end. The dead letter stays `parked`.
   * @throws OperationalError mysql
   */
  keepParked(deadLetterId: string, actor: string, note: string): Promise<DeadLetterMove>;
}
