/** A message that no attempt could turn into orders, as it is parked. */
export interface DeadLetter {
  readonly messageId: string;
  /** The consumer group that gave up. */
  readonly group: string;
  /** The topic it was first sent to; from our own property, since a dead letter does not say. */
  readonly originTopic: string;
  readonly saleId: string | null;
  readonly batchId: string | null;
  readonly body: string;
  /** Why: `retries_exhausted`, `undecodable`, `unknown_version`, `unknown_sale`. */
  readonly reason: DeadLetterReason;
  /** What was wrong, for a person. */
  readonly detail: string;
  readonly attempts: number;
}

export type DeadLetterReason = 'retries_exhausted' | 'undecodable' | 'unknown_version' | 'unknown_sale';

/** The record of dead letters: the broker forgets its own after some days. */
export interface DeadLetterBook {
  /**
   * Writes one as `parked`; the same message again changes nothing.
   * @throws OperationalError mysql
   */
  park(letter: DeadLetter): Promise<'parked' | 'already_parked'>;
}
