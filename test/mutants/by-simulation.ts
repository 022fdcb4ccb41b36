import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Broken } from '../simulation/tally.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import type { Mutant } from './mutants.js';
import { plantInSimulation } from './plant.js';

/** Most mutants are noticed within 100 seeds, the rarest within a few thousand. */
const RUNS_MAX = 20_000;

/**
 * Returns the first seed, from `fromSeed` on, at which the simulation notices the mutant, or null if none of `RUNS_MAX`
 * seeds does.
 */
export async function catchInSimulation(mutant: Mutant, signal?: AbortSignal): Promise<Broken | null> {
  const { fromSeed = 1 } = mutant.simulation ?? {};
  return catchFrom(mutant, fromSeed, RUNS_MAX, signal);
}

async function catchFrom(mutant: Mutant, from: number, runs: number, signal?: AbortSignal): Promise<Broken | null> {
  const seeds = ['--from', String(from), '--runs', String(runs)];
  const output = await simulateMutant(mutant, ['--until-broken', '--json', ...seeds], signal);
  const broken = JSON.parse(output) as Broken | null;
  if (broken?.code === 'BUG') throw new Error(`${mutant.name} does not run: ${broken.what}`); // its text is wrong
  return broken;
}

/**
 * Returns the seed at which the search for a mutant should start: the listed seed if it still notices the mutant, else
 * the first seed that does, or null if none of `RUNS_MAX` seeds does.
 */
export async function findSeed(mutant: Mutant, signal?: AbortSignal): Promise<number | null> {
  const { fromSeed = 1 } = mutant.simulation ?? {};
  const caught = (await catchFrom(mutant, fromSeed, 1, signal)) ?? (await catchFrom(mutant, 1, RUNS_MAX, signal));
  return caught?.seed ?? null;
}

const LIST = join(REPO_DIR, 'test/mutants/mutants.ts');

/** Writes where the search for a mutant begins into the list of planted bugs. */
export function keepSeed({ name }: Mutant, seed: number): void {
  const text = readFileSync(LIST, 'utf8');
  const entry = new RegExp(`(name: '${name}',(?:(?!\\n  },\\n)[^])*?simulation: \\{ fromSeed: )\\d+`);
  assert(entry.test(text), `${name} has no seed in ${LIST}`);
  writeFileSync(LIST, text.replace(entry, `$1${seed}`));
}

/** Returns the trace of one seed with the mutant. */
export const traceMutant = (mutant: Mutant, seed: number, signal?: AbortSignal): Promise<string> =>
  simulateMutant(mutant, ['--seed', String(seed), '--trace'], signal);

/** Simulates in a separate process, which loads the modules of the copy. @returns its output */
async function simulateMutant(mutant: Mutant, args: readonly string[], signal?: AbortSignal): Promise<string> {
  const main = await plantInSimulation(mutant);
  const options = { cwd: REPO_DIR, signal, maxBuffer: 64 * 1024 * 1024 };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [main, ...args], options, (error, stdout, stderr) => {
      rmSync(dirname(main), { recursive: true, force: true });
      // Exit code 1 means a broken promise, as expected.
      if (error === null || (error.code === 1 && stdout !== '')) resolve(stdout);
      else reject(new Error(`${mutant.name} cannot be simulated: ${stderr || error.message}`, { cause: error }));
    });
  });
}
