import { createHash } from 'node:crypto';
import { drive, enter, inSimulatedTime } from './engine/simulated-time.js';
import { addRun, emptyTally, type Broken, type Tally } from './tally.js';
import { World, type Violation } from './world.js';

/** The result of one run. */
export interface Outcome {
  readonly seed: number;
  readonly violation: Violation | null;
  /** The trace. Empty unless it was requested. */
  readonly lines: readonly string[];
  readonly world: World;
}

/** Does one run inside `inSimulatedTime`. @param traced whether to keep its trace */
export async function simulate(seed: number, traced = false): Promise<Outcome> {
  Error.stackTraceLimit = traced ? 20 : 0; // capturing the stack of a fault costs more than the call
  const world = new World(seed, traced);
  enter(world);
  await world.open();
  try {
    await drive(world, () => world.over);
  } catch (error) {
    world.fail('BUG', error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  return { seed, violation: world.violation, lines: world.lines, world };
}

/** Returns a hash of a trace. */
export const hashOf = (lines: readonly string[]): string =>
  createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16);

/** Does many runs, one after another. */
export async function simulateSeeds(from: number, runs: number): Promise<Tally> {
  const tally = emptyTally();
  await inSimulatedTime(async () => {
    for (let seed = from; seed < from + runs; seed++) addRun(tally, await simulate(seed));
  });
  return tally;
}

/** Returns the first of these seeds at which a promise is broken, or null if all are kept. */
export async function firstBroken(from: number, runs: number): Promise<Broken | null> {
  return inSimulatedTime(async () => {
    for (let seed = from; seed < from + runs; seed++) {
      const { violation } = await simulate(seed);
      if (violation !== null) return { seed, ...violation };
    }
    return null;
  });
}
