import fc from 'fast-check';
import { seedOfRun } from '../helpers/seed.js';

/** How many cases a run has, and the number they all come from: the same seed is the same cases. */
export interface Fuzz {
  readonly runs: number;
  readonly seed: number;
  /** What repeats the run; printed first, so that it is known also when the process dies. */
  readonly repeat: string;
}

const RUNS = 5000;

/** SECKILL_FUZZ_RUNS sets how many cases, SECKILL_SEED the seed. */
export function fuzz(): Fuzz {
  const runs = Number(process.env.SECKILL_FUZZ_RUNS ?? RUNS);
  const seed = seedOfRun();
  return { runs, seed, repeat: `SECKILL_SEED=${seed} SECKILL_FUZZ_RUNS=${runs} npm test -- hostile` };
}

/** Every case passes `check`, or the run fails with the smallest case that does not. */
export function forAll<T>(cases: fc.Arbitrary<T>, check: (one: T) => void, { runs, seed }: Fuzz): void {
  fc.assert(fc.property(cases, check), { numRuns: runs, seed });
}

/** Any bytes as text, one character a byte: what a socket takes as `latin1`. */
export const bytes = (maxLength: number): fc.Arbitrary<string> =>
  fc.uint8Array({ maxLength }).map((array) => Buffer.from(array).toString('latin1'));

/** Text as its bytes in UTF-8, one character a byte. */
export const asBytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

/** `{"a":{"a":…` or `[[[…`, closed or cut off. */
export const nested = (depthMax: number): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.integer({ min: 1, max: depthMax }),
      fc.constantFrom<[string, string]>(['[', ']'], ['{"a":', '}']),
      fc.boolean(),
    )
    .map(([depth, [open, close], closed]) => open.repeat(depth) + (closed ? `1${close.repeat(depth)}` : ''));

/** Names that mean something to a JavaScript object. */
export const MAGIC_NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf'] as const;

/** JSON that tries to leave something behind: `polluted` on the prototype of every object. */
export const poison = fc.constantFrom(
  '{"__proto__":{"polluted":1}}',
  '{"quantity":1,"__proto__":{"polluted":1}}',
  '{"constructor":{"prototype":{"polluted":1}}}',
  '{"__proto__":{"quantity":1},"quantity":1}',
  '{"__proto__":null}',
  '[{"__proto__":{"polluted":1}}]',
);
