/** A row of a CSV file. */
interface CsvRow {
  /** Where it begins, counted from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

export type ReadCsv = { readonly rows: readonly CsvRow[] } | { readonly line: number; readonly error: string };

/** A cell, quoted or not, and what ends it. */
const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y;

/**
 * Own code, though csv-parse would do: one expression reads a cell, and an operator's list of sales is no reason for one
 * more package in production.
 *
 * Reads CSV as RFC 4180 has it: commas, lines that end in LF or CRLF, quotes around a cell that holds one of them, a quote
 * written twice inside. Nothing is guessed: another separator, or a quote where none belongs, is an error. Empty lines
 * are left out.
 */
export function readCsv(text: string): ReadCsv {
  const rows: CsvRow[] = [];
  let cells: string[] = [];
  let line = 1;
  let begun = 1;
  CELL.lastIndex = text.startsWith('\ufeff') ? 1 : 0;
  while (CELL.lastIndex < text.length || cells.length > 0) {
    const cell = CELL.exec(text);
    if (cell === null) return { line, error: 'a quote stands where none may, or is not closed' };
    const [whole, quoted, plain = '', end = ''] = cell;
    cells.push(quoted === undefined ? plain.trim() : quoted.replaceAll('""', '"'));
    line += whole.split('\n').length - 1;
    if (end === ',') continue;
    if (cells.length > 1 || cells[0] !== '') rows.push({ line: begun, cells });
    cells = [];
    begun = line;
  }
  return { rows };
}
