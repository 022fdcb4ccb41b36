import type { JSONPath } from 'jsonc-parser';
import type { FieldError } from '../../core/field-errors.js';
import { parseJson, visitJson } from '../../core/parse-json.js';
import type { NewSale } from '../../core/sale.js';
import { newSale, readNewSale, type PriceTerms } from '../../sales/new-sale.js';
import { readCsv } from './read-csv.js';

export const IMPORT_FORMATS = ['csv', 'json'] as const;
export type ImportFormat = (typeof IMPORT_FORMATS)[number];

/** Maximum number of sales in one file. Either all sales of a file are created, or none. */
const IMPORT_SALES_MAX = 5000;

interface ImportedSale {
  readonly line: number;
  readonly sale: NewSale;
}

export interface ImportError extends FieldError {
  readonly line: number;
}

export interface ReadImport {
  readonly sales: readonly ImportedSale[];
  /** In the order of the file. If there are errors, `sales` contains only the sales that are valid by themselves. */
  readonly errors: readonly ImportError[];
}

/** Reads a file of new sales. Every sale is checked as if it were created alone. */
export function readImport(text: string, format: ImportFormat, nowMs: number, terms?: PriceTerms): ReadImport {
  const items = format === 'csv' ? csvItems(text) : jsonItems(text);
  if ('error' in items) return { sales: [], errors: [ofFile(items.error, items.line)] };
  const sales: ImportedSale[] = [];
  const errors: ImportError[] = [];
  for (const { line, value } of items) {
    const read = readNewSale(value, nowMs, terms);
    if ('sale' in read) sales.push({ line, sale: read.sale });
    else errors.push(...read.errors.map((error) => ({ ...error, line })));
  }
  if (items.length === 0) errors.push(ofFile('the file has no sale'));
  if (items.length > IMPORT_SALES_MAX) errors.push(ofFile(`the file has more than ${IMPORT_SALES_MAX} sales`));
  return { sales, errors };
}

const ofFile = (sentence: string, line = 1): ImportError => ({ line, field: 'file', message: `${sentence}.` });

interface Item {
  readonly line: number;
  /** The unchecked value at this line. */
  readonly value: unknown;
}
type Items = readonly Item[] | { readonly line: number; readonly error: string };

const COLUMNS = Object.keys(newSale.shape);
const NUMBERS = new Set(['priceCents', 'stock', 'limitPerBuyer', 'buckets']);

/** Reads the rows of a CSV file. The first row names the columns, and an empty cell is an omitted value. */
function csvItems(text: string): Items {
  const read = readCsv(text);
  if ('error' in read) return read;
  const [head, ...rows] = read.rows;
  if (head === undefined) return [];
  const unknown = head.cells.find((name, index) => !COLUMNS.includes(name) || head.cells.indexOf(name) !== index);
  if (unknown !== undefined) {
    return {
      line: head.line,
      error: `column ${JSON.stringify(unknown)} is unknown or appears twice; the columns are ${COLUMNS.join(', ')}`,
    };
  }
  const items: Item[] = [];
  for (const { line, cells } of rows) {
    if (cells.length !== head.cells.length) {
      return { line, error: `this line has ${cells.length} cells, but the first line has ${head.cells.length}` };
    }
    const filled = head.cells
      .map((name, index) => [name, cells[index] ?? ''] as const)
      .filter(([, cell]) => cell !== '');
    items.push({ line, value: Object.fromEntries(filled.map(([name, cell]) => [name, cellValue(name, cell)])) });
  }
  return items;
}

/** A cell that is not a number stays text, and the check names its field. */
const cellValue = (name: string, cell: string): unknown =>
  NUMBERS.has(name) && /^-?\d{1,15}$/.test(cell) ? Number(cell) : cell;

function jsonItems(text: string): Items {
  const parsed = parseJson(text, 'The file');
  if ('error' in parsed)
    return { line: Number(/ at line (\d+)/.exec(parsed.error)?.[1] ?? 1), error: parsed.error.replace(/\.$/, '') };
  if (!Array.isArray(parsed.value)) return { line: 1, error: 'the file must be a list of sales' };
  const lines = linesOfItems(text);
  return parsed.value.map((value: unknown, index) => ({ line: lines[index] ?? 1, value }));
}

/** First line of each item of the outermost list. @param text JSON, which must be a list */
function linesOfItems(text: string): number[] {
  const lines: number[] = [];
  const begins = (_offset: number, _length: number, line: number, _column: number, path: () => JSONPath): void => {
    if (path().length === 1) lines.push(line + 1);
  };
  visitJson(text, { onArrayBegin: begins, onObjectBegin: begins, onLiteralValue: (_value, ...at) => begins(...at) });
  return lines;
}
