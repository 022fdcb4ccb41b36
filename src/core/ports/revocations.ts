/** Tokens that are refused although their signature and times are right. */
export type NewRevocation =
  /** Every token of this user that was issued before this time (Unix ms), or does not say when. */
  | { readonly userId: string; readonly issuedBeforeMs: number }
  /** One token, by its claim `jti`. */
  | { readonly tokenId: string };

export type Revocation = NewRevocation & {
  /** 1, 2, 3 …: whoever has read one has missed none before it. */
  readonly number: number;
  readonly actor: string;
  /** Unix ms on the clock of MySQL. */
  readonly atMs: number;
};

/** Keeps revocations for longer than any token may live. */
export interface RevocationRepository {
  /**
   * Stores one, with its row in the audit log, and forgets some old ones.
   * @throws OperationalError mysql; it may be stored all the same, and to repeat it does no harm
   */
  add(revocation: NewRevocation, actor: string): Promise<Revocation>;

  /**
   * Those after this number, in their order.
   * @param lifeMs made within this time, on the clock of MySQL
   * @throws OperationalError mysql
   */
  after(number: number, lifeMs: number, max: number): Promise<Revocation[]>;

  /** The newest first. @param before older than this number @throws OperationalError mysql */
  newest(max: number, before?: number): Promise<Revocation[]>;
}
