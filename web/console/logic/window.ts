/** Rows that stand ready above and below what is seen, so that a quick scroll shows no gap. */
const SPARE_ROWS = 12;

/** The rows of a long list that are drawn, and the heights of what is left out above and below, px. */
export interface RowWindow {
  readonly from: number;
  /** Behind the last one. */
  readonly to: number;
  readonly abovePx: number;
  readonly belowPx: number;
}

/** @param scrollPx how far the list is scrolled */
export function rowWindow(rows: number, rowPx: number, scrollPx: number, heightPx: number): RowWindow {
  const first = Math.floor(scrollPx / rowPx) - SPARE_ROWS;
  const from = Math.max(0, Math.min(first, rows - 1));
  const to = Math.min(rows, Math.ceil((scrollPx + heightPx) / rowPx) + SPARE_ROWS);
  return { from, to, abovePx: from * rowPx, belowPx: Math.max(0, rows - to) * rowPx };
}
