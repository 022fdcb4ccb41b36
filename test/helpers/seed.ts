import { randomInt } from 'node:crypto';

/** Returns the seed of property tests, fuzzers and scenarios: SECKILL_SEED (a number or `random`), 1 by default. */
export function seedOfRun(): number {
  const given = process.env.SECKILL_SEED ?? '1';
  return given === 'random' ? randomInt(2 ** 31) : Number(given);
}
