/** A revoked token is refused although its signature and times are valid. */
export type NewRevocation =
  /** Revokes every token of this user that was issued before this time (Unix ms) or has no issue time. */
  | { readonly userId: string; readonly issuedBeforeMs: number }
  /** Revokes one token, by its claim `jti`. */
  | { readonly tokenId: string };

export type Revocation = NewRevocation & {
  /** Numbers count 1, 2, 3 … without gaps, so a reader that sees a number can also see all earlier ones. */
  readonly number: number;
  readonly actor: string;
  /** Unix ms on the clock of MySQL. */
  readonly atMs: number;
};

/** Keeps revocations for longer than any token can live. Methods throw OperationalError mysql. */
export interface RevocationRepository {
  /** Stores a revocation with its audit entry, and forgets some old ones. After an error, repeating does no harm. */
  add(revocation: NewRevocation, actor: string): Promise<Revocation>;

  /** Returns revocations after this number, in order. @param lifeMs maximum age, on the clock of MySQL */
  after(number: number, lifeMs: number, max: number): Promise<Revocation[]>;

  /** Returns the newest first. @param before only lower numbers */
  newest(max: number, before?: number): Promise<Revocation[]>;
}
