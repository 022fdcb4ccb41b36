import { once } from 'node:events';
import { inLine, printable } from '../core/printable.js';

// Commands write with `print` and `printError`. Values inside a line go through `inLine`.

export { inLine, printable };

/** Prints one or several lines to stdout. */
export const print = (text: string): void => console.log(printable(text));
/** Prints one or several lines to stderr. */
export const printError = (text: string): void => console.error(printable(text));

/** Spreadsheets need the byte order mark. A terminal would show it. */
const BYTE_ORDER_MARK = /^\ufeff/;

/**
 * Writes a long text to stdout. Waits while the reader is slower, so that no output piles up in memory.
 * @returns false if the reader has closed the output
 */
export async function printAll(text: string): Promise<boolean> {
  const { stdout } = process;
  if (stdout.destroyed) return false;
  if (stdout.write(stdout.isTTY ? printable(text.replace(BYTE_ORDER_MARK, '')) : text)) return true;
  const over = new AbortController();
  const { signal } = over;
  await Promise.race([once(stdout, 'drain', { signal }), once(stdout, 'close', { signal })]).catch(() => undefined);
  over.abort();
  return !stdout.destroyed;
}

/** Returns a line of a table. Pads each cell to the width of its column, except cells beyond the last width. */
export const tableLine =
  (...widths: readonly number[]) =>
  (...cells: readonly string[]): string =>
    cells
      .map((cell, index) => inLine(cell).padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd();

interface Page<T> {
  readonly header: string;
  readonly line: (row: T) => string;
  readonly body: (row: T) => object;
  /** The option that lists the rows after this one. Absent: the list is whole. */
  readonly next?: (last: T) => string;
}

/** Prints rows as a table, or as JSON lines. Under a full table it says how to get more. */
export function printPage<T>(
  rows: readonly T[],
  { json, limit }: { readonly json?: boolean; readonly limit?: number },
  { header, line, body, next }: Page<T>,
): void {
  if (!json) print(header);
  for (const row of rows) print(json ? JSON.stringify(body(row)) : line(row));
  const last = rows.at(-1);
  if (!json && next && last !== undefined && rows.length === limit) printError(`For more, add ${next(last)}.`);
}

export const isoTime = (atMs: number): string => new Date(atMs).toISOString();
