import type { OutboxKind } from './outbox.js';

/** Kinds of work that a single statement can find, even in several tables. */
export type DueWork =
  | OutboxKind
  | 'compensation'
  | 'edit'
  | 'expiry'
  | 'payment'
  | 'refund'
  | 'order_refund'
  | 'webhook';

/** The kinds of work that have something due. @throws OperationalError mysql */
export type ReadDueWork = () => Promise<ReadonlySet<DueWork>>;
