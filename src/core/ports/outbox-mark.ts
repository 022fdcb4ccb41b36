/** Highest id of an outbox row that was ever leased. Outside MySQL, so it survives the loss of MySQL's last writes. */
export interface OutboxMark {
  /** While the store is down, the last known mark. Null if no row was leased or the store is new. Never rejects. */
  read(): Promise<bigint | null>;
  /** Remembers the mark in this process while the store is down, so events are still published. Never rejects. */
  raise(outboxId: bigint): Promise<void>;
}
