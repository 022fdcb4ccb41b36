import { ask } from './http-client.js';
import type { Program } from './programs.js';

/**
 * What a program counts, as its `/metrics` say it.
 * @param name with labels where they matter: `seckill_batches_total{verdict="refused"}`; only those are compared
 * @returns the sum of the samples that fit; 0 when there is none
 */
export async function readMetric(program: Program, name: string): Promise<number> {
  const [, wanted = '', labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(name) ?? [];
  const { text } = await ask(`${program.probeUrl}/metrics`);
  let sum = 0;
  for (const [, sample, has = '', value] of text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)) {
    const fits = sample === wanted && labels.split(',').every((label) => has.includes(label));
    if (fits) sum += Number(value);
  }
  return sum;
}

/** The same, over several programs. */
export async function sumMetric(programs: readonly Program[], name: string): Promise<number> {
  const values = await Promise.all(programs.map((program) => readMetric(program, name)));
  return values.reduce((sum, value) => sum + value, 0);
}
