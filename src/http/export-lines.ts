// Rows as text, for exports over HTTP and those of the command line.

export const EXPORT_FORMATS = ['csv', 'jsonl'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Above the size of any table. */
export const EXPORT_MAX = 1_000_000_000;

/** The first line, with its end; JSON lines have none. */
export const headingOf = (columns: readonly string[], format: ExportFormat): string =>
  format === 'csv' ? `${columns.join(',')}\n` : '';

/** One line of an export, with its end. */
export const exportLine = (
  row: Readonly<Record<string, unknown>>,
  columns: readonly string[],
  format: ExportFormat,
): string =>
  format === 'jsonl' ? `${JSON.stringify(row)}\n` : `${columns.map((name) => cellOf(row[name])).join(',')}\n`;

/** What a spreadsheet takes for a formula. An id may begin with a hyphen. */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * One cell, harmless in a spreadsheet: text that would be a formula has an apostrophe in front. What is no text is JSON,
 * without the semicolon that divides cells in some countries.
 */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'object' ? JSON.stringify(value).replaceAll(';', String.raw`\u003b`) : String(value);
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
