import type { Dependency } from '../../../src/core/errors.js';
import type { LostAnswer, SimulatedProcess } from './simulated-process.js';

/**
 * Returns the named methods of a port with the faults of a simulated process. A call to another method throws.
 * @param lost the answer of a method whose port promises not to throw if its reply is lost
 */
export function withFaults<T extends object, K extends keyof T & string>(
  proc: SimulatedProcess,
  dependency: Dependency,
  port: T,
  methods: readonly K[],
  lost: Partial<Record<K, LostAnswer>> = {},
): T {
  const reached: Partial<Record<K, unknown>> = {};
  for (const method of methods) {
    const inner = port[method] as (...args: unknown[]) => Promise<unknown>;
    reached[method] = (...args: unknown[]): Promise<unknown> =>
      proc.call(dependency, method, () => inner.apply(port, args), args, lost[method]);
  }
  return reached as T;
}

/** Returns a method that yields pages with faults. All pages are read in one call. */
export function pagesWithFaults<A extends unknown[], T>(
  proc: SimulatedProcess,
  dependency: Dependency,
  method: string,
  read: (...args: A) => AsyncIterable<T>,
): (...args: A) => AsyncGenerator<T> {
  return async function* (...args: A): AsyncGenerator<T> {
    const pages: T[] = [];
    const readAll = async (): Promise<void> => {
      for await (const page of read(...args)) pages.push(page);
    };
    await proc.call(dependency, method, readAll, args);
    yield* pages;
  };
}
