import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Broken } from '../simulation/tally.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import type { Mutant } from './mutants.js';
import { plantInSimulation } from './plant.js';

/** Most mutants are noticed within 100 seeds, the rarest within a few thousand. */
export const RUNS_MAX = 20_000;

/** The first seed, from `fromSeed` on, at which the simulation notices the mutant; null when none of `RUNS_MAX` does. */
export async function catchInSimulation(mutant: Mutant, signal?: AbortSignal): Promise<Broken | null> {
  const { fromSeed = 1 } = mutant.simulation ?? {};
  const seeds = ['--from', String(fromSeed), '--runs', String(RUNS_MAX)];
  const output = await simulateMutant(mutant, ['--until-broken', '--json', ...seeds], signal);
  const broken = JSON.parse(output) as Broken | null;
  if (broken?.code === 'BUG') throw new Error(`${mutant.name} does not run: ${broken.what}`); // its text is wrong
  return broken;
}

/** The trace of one seed with the mutant. */
export const traceMutant = (mutant: Mutant, seed: number, signal?: AbortSignal): Promise<string> =>
  simulateMutant(mutant, ['--seed', String(seed), '--trace'], signal);

/** Simulates in a process of its own, which loads the modules of the copy. @returns its output */
function simulateMutant(mutant: Mutant, args: readonly string[], signal?: AbortSignal): Promise<string> {
  const main = plantInSimulation(mutant);
  const options = { cwd: REPO_DIR, signal, maxBuffer: 64 * 1024 * 1024 };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ['--import', 'tsx', main, ...args], options, (error, stdout, stderr) => {
      rmSync(dirname(dirname(dirname(main))), { recursive: true, force: true });
      // It exits with 1 when a promise was broken, as it should be.
      if (error === null || (error.code === 1 && stdout !== '')) resolve(stdout);
      else reject(new Error(`${mutant.name} cannot be simulated: ${stderr || error.message}`, { cause: error }));
    });
  });
}
