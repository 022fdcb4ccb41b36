import type { Json } from '../api/types.js';

/** One value that differs, and where: `limits.purchase.user`. */
export interface Change {
  readonly path: string;
  /** Undefined: it is not there. */
  readonly before: Json | undefined;
  readonly after: Json | undefined;
}

const isObject = (value: Json | undefined): value is { readonly [name: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What differs between two values, by path. Lists of plain values are compared as wholes. */
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

/** What a list gained and lost; the order of its entries does not count. */
export function listChange(before: readonly Json[], after: readonly Json[]): { added: Json[]; removed: Json[] } {
  const [had, has] = [before, after].map((list) => new Set(list.map((value) => JSON.stringify(value))));
  return {
    added: after.filter((value) => !had?.has(JSON.stringify(value))),
    removed: before.filter((value) => !has?.has(JSON.stringify(value))),
  };
}

/** Puts a value at a path of an object, which stays as it is. */
export function withValue(object: Json, path: string, value: Json): Json {
  const [name = '', ...rest] = path.split('.');
  const inside = isObject(object) ? object : {};
  return { ...inside, [name]: rest.length === 0 ? value : withValue(inside[name] ?? {}, rest.join('.'), value) };
}

export function valueAt(object: Json | undefined, path: string): Json | undefined {
  return path.split('.').reduce<Json | undefined>((value, name) => (isObject(value) ? value[name] : undefined), object);
}
