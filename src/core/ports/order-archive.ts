import type { OrderCursor } from './reconcile-repository.js';

/** Result of one step of a move to the archive. */
export interface ArchiveStep {
  /** Orders that are now in the archive and in no other table. */
  readonly moved: number;
  /** Orders that stay for now, because they are unpaid, have unsettled money, or were written a moment ago. */
  readonly kept: number;
  /** Null if there are no more orders. */
  readonly next: OrderCursor | null;
}

/**
 * Moves the orders of retired sales to an archive. Each step is one transaction, so an order and its rows are always in
 * one place. Calls may be repeated after any crash, and by two keepers at once. Methods throw OperationalError mysql.
 */
export interface OrderArchive {
  /**
   * Lists sales whose orders should move, longest overdue first: `afterMs` after the retirement of a sale that Redis
   * has forgotten. Once a move has begun, `later` decides, so orders that cannot move yet do not delay other sales.
   */
  due(afterMs: number, max: number): Promise<string[]>;

  /**
   * Begins the move, with an entry in the audit log, unless it has begun. Raises the epoch, so every writer, even in an
   * open transaction, looks for existing rows before it writes.
   */
  begin(saleId: string, actor: string): Promise<void>;

  /** Moves at most `max` orders, by id. After an error, they may have moved. @param from null: the first order */
  move(saleId: string, from: OrderCursor | null, max: number): Promise<ArchiveStep>;

  /** Postpones the move for every keeper, because some orders cannot move yet, or the move failed. */
  later(saleId: string, afterMs: number): Promise<void>;

  /** Ends the move. False if orders are left; true also if it had ended before. */
  finish(saleId: string): Promise<boolean>;
}
