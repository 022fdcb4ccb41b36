/**
 * Returns the fields that have a value. An undefined field is not the same as an absent field: it would replace a
 * default in a spread, and the query builder refuses it.
 */
export const withoutUndefined = <T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
