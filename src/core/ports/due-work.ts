import type { OutboxKind } from './outbox.js';

/** Work that one statement can find, in whichever table it is. */
export type DueWork =
  | OutboxKind
  | 'compensation'
  | 'edit'
  | 'expiry'
  | 'payment'
  | 'refund'
  | 'order_refund'
  | 'webhook';

/** Lists the kinds of work with something due. @throws OperationalError mysql */
export type ReadDueWork = () => Promise<ReadonlySet<DueWork>>;
