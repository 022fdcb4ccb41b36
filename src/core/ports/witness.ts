// What the witness finds in the binary log (src/operate/witness).

/**
 * - `order_without_outbox`: an order was written or moved, and the outbox has no row that announces it
 * - `wrong_transition`: an order moved where no order may move
 * - `paid_without_payment`: an order was paid without a payment, or its refunded sum changed without a refund
 * - `row_changed`: a value changed that no program changes
 * - `row_deleted`: a row was deleted that programs keep or archive
 * - `row_added`: the archive got a row that was in no table
 * - `sold_differs`: `sales.sold` changed by another number than the units of its orders
 * - `not_readable`: a change without readable rows, such as TRUNCATE
 * - `not_seen`: the log had been removed before the witness read it
 */
export const WITNESS_KINDS = [
  'order_without_outbox',
  'wrong_transition',
  'paid_without_payment',
  'row_changed',
  'row_deleted',
  'row_added',
  'sold_differs',
  'not_readable',
  'not_seen',
] as const;
export type WitnessKind = (typeof WITNESS_KINDS)[number];

/** `open` until an operator closes it. */
export const WITNESS_STATES = ['open', 'closed'] as const;
export type WitnessState = (typeof WITNESS_STATES)[number];
