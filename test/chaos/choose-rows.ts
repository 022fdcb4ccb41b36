import { idsOf, nameOf, type Row } from './row.js';

/**
 * The rows that a person named: by id (`T3`, every variant of it), by name (`T3/after_deduct`) or by group (`T`).
 * None named: all of them.
 * @returns the rows in the order of the matrix, and what nobody knows
 */
export function chooseRows(
  rows: readonly Row[],
  wanted: readonly string[],
): { readonly chosen: readonly Row[]; readonly unknown: readonly string[] } {
  if (wanted.length === 0) return { chosen: rows, unknown: [] };
  const matches = (row: Row, text: string): boolean => {
    const low = text.toLowerCase();
    if (nameOf(row).toLowerCase() === low) return true;
    return idsOf(row).some((id) => id.toLowerCase() === low || id[0]?.toLowerCase() === low);
  };
  return {
    chosen: rows.filter((row) => wanted.some((text) => matches(row, text))),
    unknown: wanted.filter((text) => !rows.some((row) => matches(row, text))),
  };
}
