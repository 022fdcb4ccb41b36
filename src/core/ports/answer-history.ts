/** How often each code was the answer to a purchase of a sale. */
export type AnswerCounts = Readonly<Record<string, number>>;

export interface AnswersOfSecond {
  /** Answers by sale, for the sales that the api counts separately. */
  readonly sales: ReadonlyMap<string, AnswerCounts>;
  /** Answers of all sales that the api does not count separately. */
  readonly others: number;
}

/**
 * Keeps the number of answers to buyers, by sale and second, over all apis. It is kept for a limited time, for people
 * to read, and some answers may be missing.
 */
export interface AnswerHistory {
  /**
   * Adds the answers of one api in one second to the counts of the other apis.
   * @param atMs the second: Unix ms, a multiple of 1000
   * @throws OperationalError redis; the answers may or may not have been added, so do not repeat the call
   */
  add(atMs: number, answers: AnswersOfSecond): Promise<void>;

  /**
   * Counts the answers of each sale.
   * @param fromMs, toMs the first second, and the second after the last: Unix ms, multiples of 1000; some seconds apart
   * @returns the number of answers by sale, of any code
   * @throws OperationalError redis
   */
  busy(fromMs: number, toMs: number): Promise<ReadonlyMap<string, number>>;

  /**
   * Reads the answers of one sale.
   * @param fromMs, toMs as above, at most an hour apart
   * @returns the seconds with answers, in order. A second is null if it has no separate answers for this sale, but has
   * answers of sales that are not counted separately, which may include this sale
   * @throws OperationalError redis
   */
  read(saleId: string, fromMs: number, toMs: number): Promise<ReadonlyMap<number, AnswerCounts | null>>;
}
