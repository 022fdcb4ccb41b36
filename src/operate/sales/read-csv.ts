interface CsvRow {
  /** First line of the row, counted from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

export type ReadCsv = { readonly rows: readonly CsvRow[] } | { readonly line: number; readonly error: string };

/** Matches a cell, quoted or not, and the separator or line break after it. */
const cellOf = (separator: string): RegExp =>
  new RegExp(`(?:"((?:[^"]|"")*)"|([^"${separator}\\r\\n]*))(${separator}|\\r\\n?|\\n|$)`, 'y');

/** Returns the character after the first column's name. With decimal commas, Excel writes semicolons. */
const separatorOf = (text: string): string => /^\s*"?\w*"?\s*([,;\t])/.exec(text)?.[1] ?? ',';

/**
 * RFC 4180 and more: the first line may choose semicolons or tabs; lines end in LF, CRLF or CR. A misplaced quote is an
 * error. Skips empty lines. csv-parse names the last line of the file if a quote is never closed.
 */
export function readCsv(text: string): ReadCsv {
  const separator = separatorOf(text);
  const pattern = cellOf(separator);
  const rows: CsvRow[] = [];
  let cells: string[] = [];
  let line = 1;
  let begun = 1;
  while (pattern.lastIndex < text.length || cells.length > 0) {
    const cell = pattern.exec(text);
    if (cell === null) return { line, error: 'a quote is misplaced or not closed' };
    const [whole, quoted, plain = '', end = ''] = cell;
    cells.push(quoted === undefined ? plain.trim() : quoted.replaceAll('""', '"'));
    line += whole.split(/\r\n?|\n/).length - 1;
    if (end === separator) continue;
    if (cells.length > 1 || cells[0] !== '') rows.push({ line: begun, cells });
    cells = [];
    begun = line;
  }
  return { rows };
}
