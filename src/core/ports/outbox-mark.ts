/** Highest id of an outbox row that was ever leased. Outside MySQL, so it survives the loss of MySQL's last writes. */
export interface OutboxMark {
  /** While the store is away, returns the last known mark. Null: no row leased, or a new store. Never rejects. */
  read(): Promise<bigint | null>;
  /** Remembers the mark in this process while the store is away, so events are still published. Never rejects. */
  raise(outboxId: bigint): Promise<void>;
}
