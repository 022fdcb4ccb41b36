import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import type { Edit, Mutant } from './mutants.js';

/** The text of an edit is not in its file exactly once: the code has changed. */
export class StaleMutant extends Error {
  constructor(mutant: Mutant, { file, find }: Edit, times: number) {
    super(`${mutant.name} is stale: its text is ${times} times in ${file}, not once:\n${find}`);
    this.name = 'StaleMutant';
  }
}

/** Copies of the programs that may be deleted at any time. Below the checkout, so that its packages are found. */
export const MUTANTS_DIR = join(REPO_DIR, '.stack-mutants');

/** What the built programs read of a checkout, besides their packages. */
const BUILT = ['dist', 'lua', 'config', 'package.json'];
/** What the simulation reads of it. */
const SIMULATED = ['src', 'test/simulation', 'test/helpers', 'test/invariants', 'package.json'];

/** As tsconfig.build.json has it; each file is compiled alone, so its types are not checked. */
const COMPILER_OPTIONS = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };

/**
 * The text of every file that a mutant changes, by its path in the checkout.
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
 * Copies the build of this checkout and breaks the copy.
 * @returns the entry of the broken programs
 * @throws StaleMutant
 */
export function plantInBuild(mutant: Mutant): string {
  const dir = copied(mutant, 'built', BUILT);
  for (const [file, text] of editedFiles(mutant)) {
    if (file.startsWith('lua/')) writeFileSync(join(dir, file), text);
    else if (file.startsWith('src/')) writeFileSync(join(dir, builtName(file)), compiled(text));
  }
  return join(dir, 'dist/cli/main.js');
}

/**
 * Copies the simulation with the programs that it runs, and breaks the copy.
 * @returns the command `simulate` of the copy
 * @throws StaleMutant
 */
export function plantInSimulation(mutant: Mutant): string {
  const dir = copied(mutant, 'simulated', SIMULATED);
  for (const [file, text] of editedFiles(mutant)) {
    if (file.endsWith('.ts')) writeFileSync(join(dir, file), text);
  }
  return join(dir, 'test/simulation/main.ts');
}

function copied(mutant: Mutant, kind: string, names: readonly string[]): string {
  const dir = join(MUTANTS_DIR, kind, mutant.name);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  for (const name of names) cpSync(join(REPO_DIR, name), join(dir, name), { recursive: true });
  return dir;
}

const builtName = (file: string): string => file.replace(/^src\//, 'dist/').replace(/\.ts$/, '.js');

function compiled(text: string): string {
  return ts.transpileModule(text, { compilerOptions: COMPILER_OPTIONS }).outputText;
}
