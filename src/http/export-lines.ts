import { inLine } from '../core/printable.js';

// Formats rows as text, for exports over HTTP and on the command line.

export const EXPORT_FORMATS = ['csv', 'jsonl'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Larger than any table. */
export const EXPORT_MAX = 1_000_000_000;

/** Returns the heading with its newline. JSON lines have none. The byte order mark tells Excel that it is UTF-8. */
export const headingOf = (columns: readonly string[], format: ExportFormat): string =>
  format === 'csv' ? `\ufeff${columns.join(',')}\n` : '';

/**
 * Returns a line of an export with its newline. Escapes control and direction characters, because the line may be read in a
 * terminal.
 */
export const exportLine = (
  row: Readonly<Record<string, unknown>>,
  columns: readonly string[],
  format: ExportFormat,
): string =>
  format === 'jsonl' ? `${inLine(JSON.stringify(row))}\n` : `${columns.map((name) => cellOf(row[name])).join(',')}\n`;

/**
 * Where a formula may begin: at the start of a cell, and after a semicolon, which separates cells in some countries.
 * Asian spreadsheets also accept the full-width signs. An id may begin with a hyphen.
 */
const FORMULA = /(^|;)(?=[\s"']*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
/** Text that a spreadsheet would turn into a short number or a date: `1234567890123456789`, `007`, `1e5`, `1-2`. */
const NUMERAL = /^(?!(?:0|[1-9]\d{0,14})$)\d[\d.,:/eE+-]*$/;

/**
 * Formats a cell so that a spreadsheet shows it unchanged. Text that a spreadsheet would read as a formula or a different
 * number gets a leading apostrophe. Other values become JSON without semicolons.
 */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string' && typeof value !== 'object') return String(value);
  const text = inLine(typeof value === 'string' ? value : JSON.stringify(value).replaceAll(';', String.raw`\u003b`));
  const harmless = NUMERAL.test(text) ? `'${text}` : text.replace(FORMULA, "$1'");
  return /[",]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
