/** How often each code was the answer to a purchase. */
export type AnswerCounts = Readonly<Record<string, number>>;

export interface AnswersOfSecond {
  /** Answers by sale, for the sales that the api counts separately. */
  readonly sales: ReadonlyMap<string, AnswerCounts>;
  /** Answers of all sales that the api does not count separately. */
  readonly others: number;
}

/**
 * Counts answers to buyers by sale and second, over all apis, for a limited time. For people; some answers may be
 * missing. Methods throw OperationalError redis.
 */
export interface AnswerHistory {
  /** Adds answers of one api. Never repeat a failed call: it may have counted. @param atMs Unix ms, of a full second */
  add(atMs: number, answers: AnswersOfSecond): Promise<void>;

  /**
   * Returns the number of answers by sale, of any code.
   * @param fromMs, toMs first second and second after the last: Unix ms, multiples of 1000, some seconds apart
   */
  busy(fromMs: number, toMs: number): Promise<ReadonlyMap<string, number>>;

  /**
   * Reads the answers of one sale, in order. Null: a second only has answers of sales that are not counted separately,
   * which may include this one.
   * @param fromMs, toMs as above, at most an hour apart
   */
  read(saleId: string, fromMs: number, toMs: number): Promise<ReadonlyMap<number, AnswerCounts | null>>;
}
