/** How often each code was answered to purchases of a sale. */
export type AnswerCounts = Readonly<Record<string, number>>;

/** What one api answered in one second. */
export interface AnswersOfSecond {
  /** By sale; only those that it counts apart. */
  readonly sales: ReadonlyMap<string, AnswerCounts>;
  /** Answers to sales that it does not count apart. */
  readonly others: number;
}

/** What buyers of each sale heard, second by second, over all apis. Remembered for a while, for people: it may lack some. */
export interface AnswerHistory {
  /**
   * Adds what one api answered in one second to what others did.
   * @param atMs the second: Unix ms, a multiple of 1000
   * @throws OperationalError redis; it may be added or not, so it is not to be repeated
   */
  add(atMs: number, answers: AnswersOfSecond): Promise<void>;

  /**
   * How busy sales were.
   * @param fromMs, toMs the first second, and the one behind the last: Unix ms, multiples of 1000; some seconds apart
   * @returns answers by sale, whatever they were
   * @throws OperationalError redis
   */
  busy(fromMs: number, toMs: number): Promise<ReadonlyMap<string, number>>;

  /**
   * What buyers of one sale heard.
   * @param fromMs, toMs as above, at most an hour apart
   * @returns the seconds in which they were answered, in order. Null: the sale has no answers there, but some went to sales
   *   that are not counted apart, which may have been this one
   * @throws OperationalError redis
   */
  read(saleId: string, fromMs: number, toMs: number): Promise<ReadonlyMap<number, AnswerCounts | null>>;
}
