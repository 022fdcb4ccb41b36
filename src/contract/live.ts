import type { Condition } from '../core/conditions.js';
import type { AnswerCounts } from '../core/ports/answer-history.js';
import type { LiveProgram } from '../core/ports/program-reports.js';

export type { Condition };

/** A sale that sells, may sell soon, or is blocked. Rates and units are read one after the other. */
export interface LiveSale {
  readonly saleId: string;
  readonly title: string;
  readonly sku: string;
  /** `repair` means that the sale sells according to MySQL, but buyers are refused until Redis is rebuilt. */
  readonly state: 'warm' | 'open' | 'paused' | 'repair';
  readonly stock: number;
  readonly sold: number;
  /** Units that left Redis and are not in MySQL yet. */
  readonly held: number | null;
  readonly left: number | null;
  readonly buckets: number;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  /** The second of the rates, Unix ms. Null if the rates are unknown. */
  readonly secondAtMs: number | null;
  /** Null if unknown. Apis count only some busy sales separately. */
  readonly acceptedPerSecond: number | null;
  readonly landedPerSecond: number | null;
  readonly refusedPerSecond: AnswerCounts | null;
  /** Batches that are deducted but not marked as recorded, and the age of the oldest, ms. */
  readonly pending: number | null;
  readonly pendingOldestMs: number | null;
  /** Number of buyers in its waiting room. Null if it has none. */
  readonly waiting: number | null;
}

export type RunningProgram = Omit<LiveProgram, 'conditions' | 'waiting'>;

/** Event `snapshot`: the content of an open console, made once a second for all consoles. */
export interface Snapshot {
  /** Unix ms. */
  readonly atMs: number;
  readonly everyMs: number;
  readonly sales: readonly LiveSale[];
  /** Number of live sales that are not shown. Incomplete if there are very many. */
  readonly moreSales: number;
  readonly programs: readonly RunningProgram[];
  readonly conditions: readonly Condition[];
  /** Parts that could not be read, one sentence each. */
  readonly missing: readonly string[];
}
