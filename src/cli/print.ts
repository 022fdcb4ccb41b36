import { once } from 'node:events';
import { inLine, printable } from '../core/printable.js';

// Commands write by `print` and `printError`, and what stands inside of a line goes through `inLine`.

export { inLine, printable };

/** A line, or several of ours, to stdout. */
export const print = (text: string): void => console.log(printable(text));
/** The same to stderr. */
export const printError = (text: string): void => console.error(printable(text));

/** For a spreadsheet; a terminal would show it. */
const BYTE_ORDER_MARK = /^\ufeff/;

/**
 * Much text to stdout: waits while its reader is slower than we are, so that nothing piles up in memory.
 * @returns false: nobody reads it any more
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

/** One line of a table: each cell padded to its width, those after the last width as long as they are. */
export const tableLine =
  (...widths: readonly number[]) =>
  (...cells: readonly string[]): string =>
    cells
      .map((cell, index) => inLine(cell).padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd();

export const isoTime = (atMs: number): string => new Date(atMs).toISOString();
