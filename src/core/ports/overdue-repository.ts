import type { WatchedState } from '../waiting-states.js';

/** What waits beyond its deadline. */
export interface Overdue {
  /** How many; from some thousands on it may stand still. */
  readonly count: number;
  /** How long ago the oldest should have ended, ms; 0 when there is none. */
  readonly oldestMs: number;
}

/** States that are overdue by their age alone; the others have a deadline of their own. */
export type AgedState = Exclude<WatchedState, 'batch_pending' | 'pending_payment' | 'sale_shut' | 'units_lent'>;

/** What is overdue in MySQL, on its time. */
export interface OverdueRepository {
  /**
   * Those that wait in this state for longer than `afterMs`: since they were written, for a compensation since it is
   * due, for a sale since its window ended.
   * @throws OperationalError mysql
   */
  overdue(state: AgedState, afterMs: number): Promise<Overdue>;
}
