/**
 * The highest id of an outbox row that any keeper has leased. It is kept outside MySQL, so that it survives the loss of
 * MySQL's last writes.
 */
export interface OutboxMark {
  /**
   * Returns the mark. While the store is away, returns the value that this process last read or wrote. Null if unknown:
   * no row has been leased yet, or the store is new. Never rejects.
   */
  read(): Promise<bigint | null>;
  /**
   * Raises the mark. While the store is away, this process remembers the mark, and events are still published. Never
   * rejects.
   */
  raise(outboxId: bigint): Promise<void>;
}
