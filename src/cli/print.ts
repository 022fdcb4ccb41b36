/** What was stored came from elsewhere: it must not steer the terminal. */
export const printable = (text: string): string => text.replace(/[^\P{C}\n]/gu, '\ufffd');

/** One line of a table: each cell padded to its width, those after the last width as long as they are. */
export const tableLine =
  (...widths: readonly number[]) =>
  (...cells: readonly string[]): string =>
    cells
      .map((cell, index) => printable(cell).padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd();

export const isoTime = (atMs: number): string => new Date(atMs).toISOString();
