import { createHash } from 'node:crypto';
import { drive, enter, inSimulatedTime } from './engine/simulated-time.js';
import type { Mutant } from './mutants.js';
import { addRun, emptyTally, type Broken, type Tally } from './tally.js';
import { World, type Violation } from './world.js';

/** What one run came to. */
export interface Outcome {
  readonly seed: number;
  readonly violation: Violation | null;
  /** Empty unless it was traced. */
  readonly lines: readonly string[];
  readonly world: World;
}

/** One run, inside `inSimulatedTime`. @param mutant a rule to break */
export async function simulate(
  seed: number,
  { traced = false, mutant = null }: { readonly traced?: boolean; readonly mutant?: Mutant | null } = {},
): Promise<Outcome> {
  Error.stackTraceLimit = traced ? 20 : 0; // a fault is an error, and its stack costs more than the call
  const world = new World(seed, { traced, mutant });
  enter(world);
  await world.open();
  try {
    await drive(world, () => world.over);
  } catch (error) {
    world.fail('BUG', error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  return { seed, violation: world.violation, lines: world.lines, world };
}

/** Equal for equal traces. */
export const hashOf = (lines: readonly string[]): string =>
  createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16);

/** Many runs, one after the other, in a time of their own. */
export async function simulateSeeds(from: number, runs: number, mutant: Mutant | null = null): Promise<Tally> {
  const tally = emptyTally();
  await inSimulatedTime(async () => {
    for (let seed = from; seed < from + runs; seed++) addRun(tally, await simulate(seed, { mutant }));
  });
  return tally;
}

/** The first seed at which the mutant is noticed, and by what; null when none of them notices it. */
export async function catchMutant(mutant: Mutant, from: number, runsMax: number): Promise<Broken | null> {
  return inSimulatedTime(async () => {
    for (let seed = from; seed < from + runsMax; seed++) {
      const { violation } = await simulate(seed, { mutant });
      if (violation !== null) return { seed, ...violation };
    }
    return null;
  });
}
