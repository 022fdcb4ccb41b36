import type { OutboxKind } from './outbox.js';

/** Work that one statement can look for, whatever the table it stands in. */
export type DueWork = OutboxKind | 'compensation' | 'edit' | 'expiry' | 'payment' | 'refund';

/** Kinds of work that have something due. @throws OperationalError mysql */
export type ReadDueWork = () => Promise<ReadonlySet<DueWork>>;
