import type { Release } from './settlement-ledger.js';

/** An undone outbox row that asks for units to go back. */
export interface ReleaseTask {
  readonly outboxId: string;
  readonly releases: readonly Release[];
}

/** Work that a committed transaction has promised. */
export interface ReleaseOutbox {
  /**
   * The oldest undone releases that are due, at most `max` rows.
   * @throws OperationalError mysql
   */
  dueReleases(max: number): Promise<ReleaseTask[]>;

  /** @throws OperationalError mysql */
  markDone(outboxIds: readonly string[]): Promise<void>;
}
