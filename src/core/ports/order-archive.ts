import type { OrderCursor } from './reconcile-repository.js';

/** Result of one step of a move to the archive. */
export interface ArchiveStep {
  /** Orders that are now in the archive and in no other table. */
  readonly moved: number;
  /** Orders that stay for now, because they are unpaid, have unsettled money, or were written a moment ago. */
  readonly kept: number;
  /** Start of the next step. Null if there are no more orders. */
  readonly next: OrderCursor | null;
}

/**
 * Moves the orders of retired sales to an archive. Each step is one transaction, so an order and its related rows are
 * always in exactly one place. Every call may be repeated after a crash at any point, and by two keepers at once.
 */
export interface OrderArchive {
  /**
   * Lists sales whose orders should move, longest overdue first. A sale that Redis has forgotten is due `afterMs` after
   * it was retired. Once its move has begun, `later` determines when it is due, so that a sale with orders that cannot
   * move yet does not delay the others.
   * @throws OperationalError mysql
   */
  due(afterMs: number, max: number): Promise<string[]>;

  /**
   * Begins the move of a sale, with a row in the audit log. It raises the epoch, so that from then on every writer,
   * even one with an open transaction, looks for existing rows before it writes. Does nothing if the move has already
   * begun.
   * @throws OperationalError mysql
   */
  begin(saleId: string, actor: string): Promise<void>;

  /**
   * Moves the next orders of a sale, by order id.
   * @param from null starts at the first order
   * @param max maximum number of orders in this step
   * @throws OperationalError mysql; the orders may have been moved
   */
  move(saleId: string, from: OrderCursor | null, max: number): Promise<ArchiveStep>;

  /**
   * Postpones a sale whose move has begun but which has orders that cannot move yet, or which failed to move. For every
   * keeper, it is due again in `afterMs`.
   * @throws OperationalError mysql
   */
  later(saleId: string, afterMs: number): Promise<void>;

  /**
   * Ends the move if no orders of the sale are left to move.
   * @returns false if orders are left; true even if the move had ended before
   * @throws OperationalError mysql
   */
  finish(saleId: string): Promise<boolean>;
}
