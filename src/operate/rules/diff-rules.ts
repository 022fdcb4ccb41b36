import { isDeepStrictEqual } from 'node:util';

/** A value longer than this is cut. */
const SHOWN_MAX = 60;

/** Returns a line for each value that differs: `limits.purchase.user.limit: 10 -> 5`. A list is one value. */
export function diffRules(before: unknown, after: unknown, path = ''): string[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (!isObject(before) || !isObject(after)) {
    if (Array.isArray(before) && Array.isArray(after)) return [`${path}: ${diffLists(before, after)}`];
    return [`${path}: ${shown(before)} -> ${shown(after)}`];
  }
  return Object.keys({ ...before, ...after }).flatMap((key) =>
    diffRules(before[key], after[key], path === '' ? key : `${path}.${key}`),
  );
}

function diffLists(before: readonly unknown[], after: readonly unknown[]): string {
  const [old, now] = [new Set(before), new Set(after)];
  const [removed, added] = [before.filter((item) => !now.has(item)), after.filter((item) => !old.has(item))];
  if (removed.length + added.length === 0) return 'same entries in another order or number';
  return [
    ...(removed.length > 0 ? [`without ${shown(removed)}`] : []),
    ...(added.length > 0 ? [`with ${shown(added)}`] : []),
  ].join(', ');
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}
