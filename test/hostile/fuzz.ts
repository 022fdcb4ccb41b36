import fc from 'fast-check';
import { seedOfRun } from '../helpers/seed.js';

/** The number of cases in a run and their seed. The same seed gives the same cases. */
export interface Fuzz {
  readonly runs: number;
  readonly seed: number;
  /** The command that repeats the run. It is printed first, so that it is known even if the process dies. */
  readonly repeat: string;
}

const RUNS = 5000;

/** Reads the number of cases from SECKILL_FUZZ_RUNS and the seed from SECKILL_SEED. */
export function fuzz(): Fuzz {
  const runs = Number(process.env.SECKILL_FUZZ_RUNS ?? RUNS);
  const seed = seedOfRun();
  return { runs, seed, repeat: `SECKILL_SEED=${seed} SECKILL_FUZZ_RUNS=${runs} npm test -- hostile` };
}

/** Checks every case with `check`. @throws with the smallest case that fails */
export function forAll<T>(cases: fc.Arbitrary<T>, check: (one: T) => void, { runs, seed }: Fuzz): void {
  fc.assert(fc.property(cases, check), { numRuns: runs, seed });
}

/** Generates any bytes as text, one character per byte, which a socket takes as `latin1`. */
export const bytes = (maxLength: number): fc.Arbitrary<string> =>
  fc.uint8Array({ maxLength }).map((array) => Buffer.from(array).toString('latin1'));

/** Returns the UTF-8 bytes of a text, one character per byte. */
export const asBytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

/** Generates `{"a":{"a":…` or `[[[…`, closed or cut off. */
export const nested = (depthMax: number): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.integer({ min: 1, max: depthMax }),
      fc.constantFrom<[string, string]>(['[', ']'], ['{"a":', '}']),
      fc.boolean(),
    )
    .map(([depth, [open, close], closed]) => open.repeat(depth) + (closed ? `1${close.repeat(depth)}` : ''));

/** Names with a meaning for JavaScript objects. */
export const MAGIC_NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf'] as const;

/** JSON that tries to set `polluted` on the prototype of every object. */
export const poison = fc.constantFrom(
  '{"__proto__":{"polluted":1}}',
  '{"quantity":1,"__proto__":{"polluted":1}}',
  '{"constructor":{"prototype":{"polluted":1}}}',
  '{"__proto__":{"quantity":1},"quantity":1}',
  '{"__proto__":null}',
  '[{"__proto__":{"polluted":1}}]',
);
