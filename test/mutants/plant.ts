import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import type { Edit, Mutant } from './mutants.js';

/** The text of an edit does not occur in its file exactly once, because the code has changed. */
export class StaleMutant extends Error {
  constructor(mutant: Mutant, { file, find }: Edit, times: number) {
    super(`${mutant.name} is stale: its text is ${times} times in ${file}, not once:\n${find}`);
    this.name = 'StaleMutant';
  }
}

/** Copies of the programs, deletable at any time. They are inside the checkout to find its packages. */
export const MUTANTS_DIR = join(REPO_DIR, '.stack-mutants');

/** Files of a checkout that the built programs read in addition to their bundle. */
const BESIDE = ['lua', 'config', 'deploy/prometheus', 'package.json'];
/** The command of the simulation, which must import every mutant of the simulation, at least indirectly. */
const SIMULATION = 'test/simulation/main.ts';

/**
 * Returns the text of every file that a mutant changes, by its path in the checkout.
 * @throws StaleMutant
 */
export function editedFiles(mutant: Mutant): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const edit of mutant.edits) {
    const text = texts.get(edit.file) ?? readFileSync(join(REPO_DIR, edit.file), 'utf8');
    const parts = text.split(edit.find);
    if (parts.length !== 2) throw new StaleMutant(mutant, edit, parts.length - 1);
    texts.set(edit.file, parts.join(edit.replace));
  }
  return texts;
}

/**
 * Bundles the programs with the texts of a mutant instead of the originals.
 * @returns the entry of the broken programs
 * @throws StaleMutant
 */
export async function plantInBuild(mutant: Mutant): Promise<string> {
  const dir = emptied(mutant, 'built');
  for (const name of BESIDE) cpSync(join(REPO_DIR, name), join(dir, name), { recursive: true });
  for (const [file, text] of editedFiles(mutant)) if (file.startsWith('lua/')) writeFileSync(join(dir, file), text);
  const { bundlePrograms } = await import('../../build.mjs');
  await bundlePrograms({ dist: join(dir, 'dist'), plugins: [planted(mutant)] });
  return join(dir, 'dist/cli/main.js');
}

/**
 * Bundles the simulation with the texts of a mutant instead of the originals.
 * @returns the command `simulate` of the copy
 * @throws StaleMutant
 */
export async function plantInSimulation(mutant: Mutant): Promise<string> {
  const outfile = join(emptied(mutant, 'simulated'), 'simulate.mjs');
  await build({
    absWorkingDir: REPO_DIR,
    entryPoints: [SIMULATION],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    plugins: [planted(mutant)],
    logLevel: 'warning',
  });
  return outfile;
}

/** @throws StaleMutant */
function planted(mutant: Mutant): Plugin {
  const edited = editedFiles(mutant);
  return {
    name: mutant.name,
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const contents = edited.get(relative(REPO_DIR, path));
        return contents === undefined ? undefined : { contents, loader: 'ts' };
      });
    },
  };
}

function emptied(mutant: Mutant, kind: string): string {
  const dir = join(MUTANTS_DIR, kind, mutant.name);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  return dir;
}
