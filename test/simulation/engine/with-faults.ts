import type { Dependency } from '../../../src/core/errors.js';
import type { Life, Lost } from './simulated-process.js';

/**
 * Some methods of a port as this process reaches them: each call may meet a fault on its way.
 * @param lost what a method says where it does not throw an OperationalError, as its port promises
 */
export function through<T extends object, K extends keyof T & string>(
  life: Life,
  dependency: Dependency,
  port: T,
  methods: readonly K[],
  lost: Partial<Record<K, Lost>> = {},
): Pick<T, K> {
  const reached: Partial<Record<K, unknown>> = {};
  for (const method of methods) {
    const inner = port[method] as (...args: unknown[]) => Promise<unknown>;
    reached[method] = (...args: unknown[]): Promise<unknown> =>
      life.call(dependency, method, () => inner.apply(port, args), args, lost[method]);
  }
  return reached as Pick<T, K>;
}

/** The same for a method that gives pages: they are read in one call. */
export function streamed<A extends unknown[], T>(
  life: Life,
  dependency: Dependency,
  method: string,
  read: (...args: A) => AsyncIterable<T>,
): (...args: A) => AsyncGenerator<T> {
  return async function* (...args: A): AsyncGenerator<T> {
    const pages: T[] = [];
    const readAll = async (): Promise<void> => {
      for await (const page of read(...args)) pages.push(page);
    };
    await life.call(dependency, method, readAll, args);
    yield* pages;
  };
}

/** A port with some of its methods replaced; the others work on the port itself. */
export function replaced<T extends object>(port: T, methods: Partial<T>): T {
  return new Proxy(port, {
    get: (target, name) => {
      const own = (methods as Record<PropertyKey, unknown>)[name];
      if (own !== undefined) return own;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}
