export const DEAD_LETTER_REASONS = [
  'retries_exhausted',
  'undecodable',
  'unknown_version',
  'unknown_sale',
  'forged',
] as const;
export type DeadLetterReason = (typeof DEAD_LETTER_REASONS)[number];

/** `parked` → `replayed` | `discarded`; both are final. */
export const DEAD_LETTER_STATES = ['parked', 'replayed', 'discarded'] as const;
export type DeadLetterState = (typeof DEAD_LETTER_STATES)[number];

/** A message that no attempt could turn into orders, as it is parked. */
export interface DeadLetter {
  readonly messageId: string;
  /** The consumer group that gave up. */
  readonly group: string;
  /** The topic it was first sent to; from our own property `topic`; a dead letter of the broker does not name it. */
  readonly originTopic: string;
  readonly saleId: string | null;
  readonly batchId: string | null;
  readonly body: string;
  /** Whether the body is the batch of that id. A batch has one parked dead letter at a time, however many messages died. */
  readonly isBatch?: boolean;
  /** Why. Of one that is `forged` nothing is believed: it names no sale and no batch, and is never sent again. */
  readonly reason: DeadLetterReason;
  /** What was wrong, for a person. */
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
  /** Number of its row, in decimal; grows with time. */
  readonly deadLetterId: string;
  readonly state: DeadLetterState;
  readonly parkedAtMs: number;
  /** How often a replay was begun. */
  readonly replays: number;
  /** The last begin; null: never. While the dead letter is `parked`, that replay has not ended. */
  readonly replayStartedAtMs: number | null;
  /** What became of the last replay or discard, for a person. */
  readonly note: string | null;
}

export interface StoredDeadLetter extends DeadLetterSummary {
  readonly body: string;
}

/** Every condition that is there must hold. */
export interface DeadLetterFilter {
  /** One of these, some at most. */
  readonly ids?: readonly string[];
  readonly group?: string;
  readonly originTopic?: string;
  readonly saleId?: string;
  readonly batchId?: string;
  /** A batch id; or the request id of one of its purchases, while the dead letter is parked. */
  readonly key?: string;
  /** A trace id that one of its purchases brought, while the dead letter is parked. */
  readonly traceId?: string;
  readonly reason?: DeadLetterReason;
  /** Stands in `detail`. */
  readonly text?: string;
  readonly state?: DeadLetterState;
  /** Parked at this time or later, Unix ms. */
  readonly sinceMs?: number;
  /** Parked before this time, Unix ms. */
  readonly untilMs?: number;
  /** Whether a replay was ever begun. */
  readonly replayBegun?: boolean;
}

/** One page, oldest dead letter first. */
export interface DeadLetterPage {
  /** Dead letters after this one; from the oldest when absent. */
  readonly afterId?: string;
  readonly max: number;
}

/** Nothing is changed unless the dead letter is `parked`. */
export type DeadLetterMove = 'done' | 'not_parked' | 'not_found';

/**
 * The record of dead letters: the broker forgets its own after some days. Every move leaves a row in the audit log, in
 * the same transaction: who, what, the dead letter before and after.
 */
export interface DeadLetterRepository {
  /**
   * Writes one as `parked`; the same message again, or another one of the same batch, changes nothing.
   * @throws OperationalError mysql
   */
  park(deadLetter: DeadLetter): Promise<'parked' | 'already_parked'>;

  /**
   * The parked batches, in the order of their ids, behind `afterBatchId`.
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
   * Notes that a replay begins, before anything is published; the dead letter stays `parked`.
   * @param actor who asked for it
   * @throws OperationalError mysql
   */
  beginReplay(deadLetterId: string, actor: string): Promise<DeadLetterMove>;

  /**
   * Closes a dead letter.
   * @throws OperationalError mysql
   */
  close(deadLetterId: string, actor: string, end: 'replayed' | 'discarded', note: string): Promise<DeadLetterMove>;

  /**
   * Notes why a replay did not end; the dead letter stays `parked`.
   * @throws OperationalError mysql
   */
  keepParked(deadLetterId: string, actor: string, note: string): Promise<DeadLetterMove>;
}
