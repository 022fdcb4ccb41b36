import type { Condition } from '../core/conditions.js';
import type { LiveProgram } from '../core/ports/program-reports.js';
import type { LiveSale as SaleNow } from '../sales/live-sales.js';

export type { Condition };

export interface LiveSale extends SaleNow {
  /** Buyers in its waiting rooms; null: it has none. */
  readonly waiting: number | null;
}

export type RunningProgram = Omit<LiveProgram, 'conditions' | 'waiting'>;

/** Event `snapshot` of the stream of live figures: what an open console shows, made once a second for all of them. */
export interface Snapshot {
  /** Unix ms. */
  readonly atMs: number;
  readonly everyMs: number;
  readonly sales: readonly LiveSale[];
  /** Sales that are alive and not shown; of very many not all are counted. */
  readonly moreSales: number;
  readonly programs: readonly RunningProgram[];
  readonly conditions: readonly Condition[];
  /** What could not be read, a sentence each. */
  readonly missing: readonly string[];
}
