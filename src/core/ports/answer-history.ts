/** How often each code was answered to purchases of a sale. */
export type AnswerCounts = Readonly<Record<string, number>>;

/** What buyers heard in one second: by sale, and by code. */
export type AnswersOfSecond = ReadonlyMap<string, AnswerCounts>;

/** What buyers of each sale heard, second by second, over all apis. Remembered for a while, for people: it may lack some. */
export interface AnswerHistory {
  /**
   * Adds what one api answered in one second to what others did.
   * @param atMs the second: Unix ms, a multiple of 1000
   * @throws OperationalError redis; it may be added or not, so it is not to be repeated
   */
  add(atMs: number, answers: AnswersOfSecond): Promise<void>;

  /**
   * @param fromMs, toMs the first second, and the one behind the last: Unix ms, multiples of 1000, at most an hour apart
   * @param saleId only this one; left out: all sales
   * @returns the seconds in which buyers were answered, in order
   * @throws OperationalError redis
   */
  read(fromMs: number, toMs: number, saleId?: string): Promise<ReadonlyMap<number, AnswersOfSecond>>;
}
