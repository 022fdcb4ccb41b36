import type { OrderCursor } from './reconcile-repository.js';

/** Result of one step of a move to the archive. */
export interface ArchiveStep {
  /** Orders that are now in the archive and in no other table. */
  readonly moved: number;
  /** Orders that stay for now: unpaid, with open money, or written a moment ago. */
  readonly kept: number;
  /** Start of the next step. Null: there are no more orders. */
  readonly next: OrderCursor | null;
}

/**
 * Moves the orders of retired sales to an archive. Each step is one transaction, so an order and its related rows are
 * always in exactly one place. Every call may be repeated after a crash at any point, and by two keepers at once.
 */
export interface OrderArchive {
  /**
   * Lists sales whose orders should move, longest overdue first. A sale that Redis has forgotten is due `afterMs` after
   * it was retired. Once its move has begun, `later` says when it is due, so a sale that keeps an order delays no other
   * sale.
   * @throws OperationalError mysql
   */
  due(afterMs: number, max: number): Promise<string[]>;

  /**
   * Begins the move of a sale, with a row in the audit log. It raises the epoch, so from then on every writer looks for
   * rows first, including a writer with an open transaction. Does nothing when the move has begun.
   * @throws OperationalError mysql
   */
  begin(saleId: string, actor: string): Promise<void>;

  /**
   * Moves the next orders of a sale, by order id.
   * @param from null: from the first order
   * @param max orders of this step
   * @throws OperationalError mysql; the orders may have been moved
   */
  move(saleId: string, from: OrderCursor | null, max: number): Promise<ArchiveStep>;

  /**
   * Postpones a sale whose move has begun but which keeps an order or cannot be moved: it is due again in `afterMs`,
   * for every keeper.
   * @throws OperationalError mysql
   */
  later(saleId: string, afterMs: number): Promise<void>;

  /**
   * Ends the move, if no order of the sale is left to move.
   * @returns false when orders are left; true also when the move has ended before
   * @throws OperationalError mysql
   */
  finish(saleId: string): Promise<boolean>;
}
