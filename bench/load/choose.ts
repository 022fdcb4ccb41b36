import { BenchError } from '../bench-error.js';
import type { BenchOptions } from '../options.js';
import { autocannonGenerator } from './autocannon.js';
import type { LoadGenerator } from './load.js';
import { findWrk } from './wrk.js';

/** The load generator asked for; without a wish wrk, because it takes the least CPU from the servers. */
export function chooseGenerator(wish: BenchOptions['generator']): LoadGenerator {
  const wrk = wish === 'autocannon' ? null : findWrk();
  if (wrk !== null) return wrk;
  if (wish === 'wrk') throw new BenchError('wrk is not on the PATH; install it, or leave --generator away');
  return autocannonGenerator();
}
