/**
 * The highest id of an outbox row that any keeper has leased. It is kept outside MySQL, so that it survives the loss of
 * MySQL's last writes.
 */
export interface OutboxMark {
  /**
   * While the store is away, returns what this process last read or raised. Null: not known, since no row was leased yet
   * or the store is new. Never rejects.
   */
  read(): Promise<bigint | null>;
  /** Never rejects. While the store is away, this process remembers the mark, and events are still published. */
  raise(outboxId: bigint): Promise<void>;
}
