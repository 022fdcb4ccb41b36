export { renderTable } from '../../test/helpers/render-table.js';

/** 12,345 for large figures, 12.3 and 0.71 for small ones. */
export function formatNumber(value: number): string {
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
