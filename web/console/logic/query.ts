/** The filter of a list, as written in the address. An empty text filters nothing. */
export type Filter = Readonly<Record<string, string>>;

type QueryValue = string | number | boolean | null | undefined;

/** Builds `?a=1&b=2` without empty values. Returns an empty text when nothing is left. */
export function queryOf(values: Readonly<Record<string, QueryValue>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}

/** Reads the names that a screen knows from the query of an address. */
export function filterIn<N extends string>(search: string, names: readonly N[]): Record<N, string> {
  const query = new URLSearchParams(search);
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? ''])) as Record<N, string>;
}

/** Limits a filter to the time before `endMs`, so that later entries do not match. Drops empty values. */
export function boundTo(filter: Filter, endMs: number): Filter {
  const named = Object.entries(filter).filter(([, value]) => value !== '');
  const isEarlier = Date.parse(filter.until ?? '') <= endMs;
  return { ...Object.fromEntries(named), ...(isEarlier ? {} : { until: new Date(endMs).toISOString() }) };
}

export const isFiltered = (filter: Filter): boolean => Object.values(filter).some((value) => value !== '');

const DURATION = /^-?(\d{1,6})\s*(s|m|h|d)$/;
const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * Converts a typed or picked time to the format of the API: ISO 8601 in UTC.
 * @param text `2h` (two hours ago), a time in the browser's zone in the format of its time fields, or ISO 8601
 * @returns an empty text for an empty text; null if the text is not a time
 */
export function timeOf(text: string, nowMs: number): string | null {
  const typed = text.trim();
  if (typed === '') return '';
  const [, count, unit] = DURATION.exec(typed) ?? [];
  if (count !== undefined) return new Date(nowMs - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]).toISOString();
  const [, day] = TIME.exec(typed) ?? [];
  if (day === undefined || Number.isNaN(Date.parse(typed))) return null;
  // such as the 30th of February
  return new Date(day).toISOString().startsWith(day) ? new Date(typed).toISOString() : null;
}

/** Accepts ISO dates only, because `Date.parse` reads `05.12.2026` as the 12th of May. */
const TIME = /^(\d{4}-\d{2}-\d{2})(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})?)?$/;
