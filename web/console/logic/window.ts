/** Extra rows above and below the visible rows, so that a quick scroll shows no gap. */
const SPARE_ROWS = 12;

/** The rows of a long list that are drawn, and the heights of the omitted rows above and below, px. */
export interface RowWindow {
  readonly from: number;
  /** Index after the last row. */
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
