import type { Json } from '../api/types.js';

/** A value that differs, and its path: `limits.purchase.user`. */
export interface Change {
  readonly path: string;
  /** Undefined if the value does not exist. */
  readonly before: Json | undefined;
  readonly after: Json | undefined;
}

const isObject = (value: Json | undefined): value is { readonly [name: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the differences between two values, by path. A list of plain values is compared as a whole. */
export function changesOf(before: Json | undefined, after: Json | undefined, path = ''): Change[] {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) => changesOf(before[name], after[name], path === '' ? name : `${path}.${name}`));
  }
  return isSame(before, after) ? [] : [{ path, before, after }];
}

export function isSame(one: Json | undefined, other: Json | undefined): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((value, index) => isSame(value, other[index]));
  }
  if (isObject(one) && isObject(other)) {
    const names = Object.keys(one);
    return (
      names.length === Object.keys(other).length &&
      names.every((name) => name in other && isSame(one[name], other[name]))
    );
  }
  return one === other;
}

/** Returns the added and removed entries of a list, ignoring their order. */
export function listChange(before: readonly Json[], after: readonly Json[]): { added: Json[]; removed: Json[] } {
  const [had, has] = [before, after].map((list) => new Set(list.map((value) => JSON.stringify(value))));
  return {
    added: after.filter((value) => !had?.has(JSON.stringify(value))),
    removed: before.filter((value) => !has?.has(JSON.stringify(value))),
  };
}

/** Returns a copy of an object with a value at a path. */
export function withValue(object: Json, path: string, value: Json): Json {
  const [name = '', ...rest] = path.split('.');
  const inside = isObject(object) ? object : {};
  return { ...inside, [name]: rest.length === 0 ? value : withValue(inside[name] ?? {}, rest.join('.'), value) };
}

export function valueAt(object: Json | undefined, path: string): Json | undefined {
  return path.split('.').reduce<Json | undefined>((value, name) => (isObject(value) ? value[name] : undefined), object);
}
