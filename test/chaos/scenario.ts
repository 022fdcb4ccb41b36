import type { FailureReason } from '../../src/core/order.js';
import type { Arena } from './context.js';

/** One fault of docs/fault-matrix.md, made on real servers and programs. */
export interface Row {
  /** As the fault matrix names it: `T3`. */
  readonly id: string;
  /** Further rows of the fault matrix that this fault shows as well. */
  readonly also?: readonly string[];
  /** Which of several faults of that id this is: `after_deduct`. Absent when there is only one. */
  readonly variant?: string;
  /** What is broken, and what must hold then; begins in small letters, without the id. */
  readonly title: string;
  /** True: it takes at most some tens of seconds, and `npm test` runs it once. */
  readonly fast: boolean;
  /**
   * True: nothing else runs meanwhile, shared programs neither. For a row that stops a server, needs a topic for
   * itself, or must be the only one with a worker or a keeper.
   */
  readonly alone: boolean;
  /**
   * True: it matters who is asked by the broker, and when. The runner has half messages of earlier rows given up first, which
   * takes some 20 s and is no part of the row's time.
   */
  readonly drained?: boolean;
  /** A sentence why it cannot run on this machine, or null. */
  readonly skip?: () => string | null;
  /** For a row without any sale: it has no books to hold against the invariants. Without it such a row fails. */
  readonly books?: 'none';
  /** Reasons that an accepted purchase of this row may fail for; default none. */
  readonly mayFail?: readonly FailureReason[];
  /** Most that recovery may take, in ms; default 40,000. A row that sets it says why by design more is needed. */
  readonly healMaxMs?: number;
  /** Bounds `run`, in ms; default 180,000. */
  readonly timeoutMs?: number;
  /** Breaks something, proves that it broke (`arena.bite`), says when it is over (`arena.faultEnded`). */
  run(arena: Arena): Promise<void>;
}

/** `T3/after_deduct`, or `M1`: one row, and what `npm run chaos -- run` takes. */
export const nameOf = ({ id, variant }: Row): string => (variant === undefined ? id : `${id}/${variant}`);

/** Every id of the fault matrix that a row stands for. */
export const idsOf = ({ id, also = [] }: Row): readonly string[] => [id, ...also];

/** What one run of a row came to. */
export interface RowResult {
  readonly row: string;
  readonly ids: readonly string[];
  readonly title: string;
  readonly seed: number;
  readonly outcome: 'green' | 'red' | 'skipped';
  /** Why it is red or was skipped; null when green. */
  readonly reason: string | null;
  /** Null: the books could not be read. */
  readonly figures: RowFigures | null;
  /** From the end of the fault until every sale of the row had recovered; null when that never came. */
  readonly recoveryMs: number | null;
  readonly tookMs: number;
  /** What was proved to have happened. */
  readonly bites: readonly string[];
  /** What the checker found besides, when red: `I3 ann/k1 was answered 2xx and has no row`. */
  readonly findings: readonly string[];
}

/** Summed over the sales of a row. */
export interface RowFigures {
  /** Purchases sent, tries with the same key counted each. */
  readonly requests: number;
  /** Purchases that were answered 2xx at least once. */
  readonly accepted: number;
  /** Rows but the failed ones. */
  readonly orders: number;
  readonly failedRows: number;
  /** Units. */
  readonly oversold: number;
  readonly duplicates: number;
  readonly lost: number;
}

export const NO_FIGURES: RowFigures = Object.freeze({
  ...{ requests: 0, accepted: 0, orders: 0, failedRows: 0, oversold: 0, duplicates: 0, lost: 0 },
});

export const addFigures = (a: RowFigures, b: RowFigures): RowFigures => ({
  requests: a.requests + b.requests,
  accepted: a.accepted + b.accepted,
  orders: a.orders + b.orders,
  failedRows: a.failedRows + b.failedRows,
  oversold: a.oversold + b.oversold,
  duplicates: a.duplicates + b.duplicates,
  lost: a.lost + b.lost,
});

/**
 * The rows that a person named: by id (`T3`, every variant of it), by name (`T3/after_deduct`) or by group (`T`).
 * None named: all of them.
 * @returns the rows in the order of the matrix, and what nobody knows
 */
export function chooseRows(
  rows: readonly Row[],
  wanted: readonly string[],
): { readonly chosen: readonly Row[]; readonly unknown: readonly string[] } {
  if (wanted.length === 0) return { chosen: rows, unknown: [] };
  const matches = (row: Row, text: string): boolean => {
    const low = text.toLowerCase();
    if (nameOf(row).toLowerCase() === low) return true;
    return idsOf(row).some((id) => id.toLowerCase() === low || id[0]?.toLowerCase() === low);
  };
  return {
    chosen: rows.filter((row) => wanted.some((text) => matches(row, text))),
    unknown: wanted.filter((text) => !rows.some((row) => matches(row, text))),
  };
}
