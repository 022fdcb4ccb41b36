import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { compiled } from '../helpers/compiled.js';
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
/** The command of the simulation; what it imports, at any distance, is all that a mutant of it runs. */
const SIMULATION = 'test/simulation/main.ts';

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
 * Writes the simulation with the programs that it runs, compiled, since from sources each of its processes would take
 * twice as long to start; and breaks it.
 * @returns the command `simulate` of the copy
 * @throws StaleMutant
 */
export function plantInSimulation(mutant: Mutant): string {
  const dir = emptied(mutant, 'simulated');
  cpSync(join(REPO_DIR, 'package.json'), join(dir, 'package.json'));
  const edited = editedFiles(mutant);
  for (const [file, text] of (simulation ??= compiledWithImports(SIMULATION))) {
    const to = join(dir, scriptName(file));
    mkdirSync(dirname(to), { recursive: true });
    const editedText = edited.get(file);
    writeFileSync(to, editedText === undefined ? text : compiled(editedText));
  }
  return join(dir, scriptName(SIMULATION));
}

/** Without a mutant; made for the first one. */
let simulation: ReadonlyMap<string, string> | null = null;

/** The JavaScript of a file and of every file of the checkout that it imports, by the path of the source. */
function compiledWithImports(main: string): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  const found = new Set([main]);
  for (const file of found) {
    const text = compiled(readFileSync(join(REPO_DIR, file), 'utf8'));
    texts.set(file, text);
    for (const { fileName } of ts.preProcessFile(text, true, true).importedFiles) {
      if (fileName.startsWith('.')) found.add(join(dirname(file), fileName).replace(/\.js$/, '.ts')); // found by this loop
    }
  }
  return texts;
}

function copied(mutant: Mutant, kind: string, names: readonly string[]): string {
  const dir = emptied(mutant, kind);
  for (const name of names) cpSync(join(REPO_DIR, name), join(dir, name), { recursive: true });
  return dir;
}

function emptied(mutant: Mutant, kind: string): string {
  const dir = join(MUTANTS_DIR, kind, mutant.name);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  return dir;
}

const scriptName = (file: string): string => file.replace(/\.ts$/, '.js');
const builtName = (file: string): string => scriptName(file).replace(/^src\//, 'dist/');
