import { once } from 'node:events';

// What was stored came from elsewhere: it must not steer the terminal, nor look like a line of ours. So commands write by
// `print` and `printError`, and what stands inside of a line goes through `inLine`.

/** Controls, marks of direction and the like, as JSON escapes them: a line of JSON stays the same value. Not line breaks. */
export const printable = (text: string): string => text.replace(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, escaped);
/** Line breaks too. */
export const inLine = (text: string): string => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escaped);

const escaped = (found: string): string =>
  Array.from({ length: found.length }, (_, at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`).join('');

/** A line, or several of ours, to stdout. */
export const print = (text: string): void => console.log(printable(text));
/** The same to stderr. */
export const printError = (text: string): void => console.error(printable(text));

/**
 * Much text to stdout: waits while its reader is slower than we are, so that nothing piles up in memory.
 * @returns false: nobody reads it any more
 */
export async function printAll(text: string): Promise<boolean> {
  const { stdout } = process;
  if (stdout.destroyed) return false;
  if (stdout.write(stdout.isTTY ? printable(text) : text)) return true;
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
