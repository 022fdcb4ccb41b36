import { createRequire } from 'node:module';
import { runChild } from './child.js';
import type { LoadGenerator, LoadPlan, LoadResult } from './load.js';

/** For machines without wrk. It takes several times the CPU of wrk, which the servers then lack. */
export function autocannonGenerator(): LoadGenerator {
  const { version } = createRequire(import.meta.url)('autocannon/package.json') as { version: string };
  return {
    name: `autocannon ${version}`,
    run: (plan, signal) =>
      runChild<LoadPlan, LoadResult>(new URL('./autocannon-child.ts', import.meta.url), plan, signal),
  };
}
