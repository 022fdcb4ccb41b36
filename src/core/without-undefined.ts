/**
 * The fields that have a value. A field that is there and undefined is not the same as one that is left out: it would take
 * the place of a default in a spread, and the query builder refuses it.
 */
export const withoutUndefined = <T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
