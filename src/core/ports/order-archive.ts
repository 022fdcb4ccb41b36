import type { OrderCursor } from './reconcile-repository.js';

/** What one step of a move to the archive did. */
export interface ArchiveStep {
  /** Orders that are in the archive now, and in no other table. */
  readonly moved: number;
  /** Orders that stay for now: one that is not paid yet, or whose money is open, or that was written a moment ago. */
  readonly kept: number;
  /** Where to go on; null when these were the last ones. */
  readonly next: OrderCursor | null;
}

/**
 * Where the orders of retired sales go. An order is in one of the two places at every moment, with what belongs to it:
 * every step is one transaction. All may be called again after a death at any point, and by two keepers at once.
 */
export interface OrderArchive {
  /**
   * Sales whose orders should move, those first that are due for longest: sales that were retired `afterMs` ago and are
   * forgotten by Redis, and those whose move has begun, as `later` says. So sales that keep an order hold up no other.
   * @throws OperationalError mysql
   */
  due(afterMs: number, max: number): Promise<string[]>;

  /**
   * Begins the move of a sale, with a row in the audit log: its epoch rises, so from then on every writer looks for rows
   * first, the one whose transaction is under way included. Nothing where it has begun.
   * @throws OperationalError mysql
   */
  begin(saleId: string, actor: string): Promise<void>;

  /**
   * Moves the next orders of a sale, in the order of their ids.
   * @param from null: from the first one
   * @param max orders of this step
   * @throws OperationalError mysql; they may have been moved
   */
  move(saleId: string, from: OrderCursor | null, max: number): Promise<ArchiveStep>;

  /**
   * A sale whose move has begun keeps an order, or cannot be moved: it is due again in `afterMs`, in every keeper.
   * @throws OperationalError mysql
   */
  later(saleId: string, afterMs: number): Promise<void>;

  /**
   * Ends the move, if nothing of the sale is left to move.
   * @returns false when something is; true also when it has ended before
   * @throws OperationalError mysql
   */
  finish(saleId: string): Promise<boolean>;
}
