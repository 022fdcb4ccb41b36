/** How many tokens of a sale there are, and when they are handed out. */
export interface TokenIssue {
  readonly saleId: string;
  /** First moment, Unix ms. */
  readonly fromMs: number;
  /** First moment at which it is too late, Unix ms. */
  readonly untilMs: number;
  /** Buyers who may have one. */
  readonly tokensMax: number;
}

/** `handed_before`: this buyer has it already, and may have it again. */
export type Handed = 'too_early' | 'too_late' | 'handed_before' | 'none_left' | 'handed';

/** `spent_before`: for this very purchase, so it is no second use. */
export type Spent = 'spent_before' | 'spent_otherwise' | 'ended' | 'spent';

/** Who has a purchase token of a sale, and what he spent it for. Bounded by the tokens of the sale. */
export interface PurchaseTokenStore {
  /**
   * Notes that a buyer gets his token. Safe to repeat.
   * @returns the word, and the time of the ledger, Unix ms, which is the clock that opens the sale
   * @throws OperationalError redis; the token may be noted all the same
   */
  hand(issue: TokenIssue, userId: string): Promise<{ readonly outcome: Handed; readonly nowMs: number }>;

  /**
   * Binds the token of a buyer to one purchase. Safe to repeat for that purchase. A buyer who is not known counts as
   * one who has his token: the caller has seen its seal.
   * @param isGood false when the time of the token is over; a purchase it was spent for is let in even then
   * @throws OperationalError redis; it may be bound all the same
   */
  spend(
    purchase: { readonly saleId: string; readonly userId: string; readonly requestId: string },
    isGood: boolean,
  ): Promise<Spent>;
}
