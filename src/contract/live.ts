import type { Condition } from '../core/conditions.js';
import type { LiveProgram } from '../core/ports/program-reports.js';
import type { LiveSale as SaleNow } from '../operate/live/live-sales.js';

export type { Condition };

export interface LiveSale extends SaleNow {
  /** Number of buyers in its waiting rooms. Null: it has no waiting room. */
  readonly waiting: number | null;
}

export type RunningProgram = Omit<LiveProgram, 'conditions' | 'waiting'>;

/**
 * Event `snapshot` of the stream of live figures: the content of an open console, made once a second for all consoles.
 */
export interface Snapshot {
  /** Unix ms. */
  readonly atMs: number;
  readonly everyMs: number;
  readonly sales: readonly LiveSale[];
  /** Number of live sales that are not shown. Incomplete if there are very many. */
  readonly moreSales: number;
  readonly programs: readonly RunningProgram[];
  readonly conditions: readonly Condition[];
  /** Parts that could not be read, a sentence each. */
  readonly missing: readonly string[];
}
