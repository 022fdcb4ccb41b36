import { inLine } from '../core/printable.js';

// Rows as text, for exports over HTTP and those of the command line.

export const EXPORT_FORMATS = ['csv', 'jsonl'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Above the size of any table. */
export const EXPORT_MAX = 1_000_000_000;

/** The first line, with its end; JSON lines have none. The mark in front tells Excel that the text is UTF-8. */
export const headingOf = (columns: readonly string[], format: ExportFormat): string =>
  format === 'csv' ? `\ufeff${columns.join(',')}\n` : '';

/** One line of an export, with its end. Controls and marks of direction are escaped: it may be read in a terminal. */
export const exportLine = (
  row: Readonly<Record<string, unknown>>,
  columns: readonly string[],
  format: ExportFormat,
): string =>
  format === 'jsonl' ? `${inLine(JSON.stringify(row))}\n` : `${columns.map((name) => cellOf(row[name])).join(',')}\n`;

/**
 * Where a formula may begin: at the beginning of a cell, and after a semicolon, which divides cells in some countries.
 * Spreadsheets in Asia take the wide signs too. An id may begin with a hyphen.
 */
const FORMULA = /(^|;)(?=[\s"']*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
/** What a spreadsheet would turn into a number of 15 digits, or into a date: `1234567890123456789`, `007`, `1e5`, `1-2`. */
const NUMERAL = /^(?!(?:0|[1-9]\d{0,14})$)\d[\d.,:/eE+-]*$/;

/**
 * One cell, which a spreadsheet shows as it is: text that would be a formula or another number has an apostrophe in front.
 * What is no text is JSON, without semicolons.
 */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string' && typeof value !== 'object') return String(value);
  const text = inLine(typeof value === 'string' ? value : JSON.stringify(value).replaceAll(';', String.raw`\u003b`));
  const harmless = NUMERAL.test(text) ? `'${text}` : text.replace(FORMULA, "$1'");
  return /[",]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
