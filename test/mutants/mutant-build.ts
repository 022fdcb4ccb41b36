import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import type { Edit, Mutant } from './mutants.js';

/** An edit whose text does not stand in its file exactly once: the code has moved on. */
export class StaleMutant extends Error {
  constructor(mutant: Mutant, { file, find }: Edit, times: number) {
    super(`${mutant.name} is stale: its text stands ${times} times in ${file}, not once:\n${find}`);
    this.name = 'StaleMutant';
  }
}

/** What the built programs read of a checkout, besides their packages. */
const READ = ['dist', 'lua', 'config', 'package.json'];

/** As tsconfig.build.json has it; each file alone, so types are not looked at. */
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
 * @param dir below the checkout, so that its packages are found; emptied first
 * @returns the entry of the broken programs
 * @throws StaleMutant
 */
export function buildMutant(mutant: Mutant, dir: string): string {
  const edited = editedFiles(mutant);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  for (const name of READ) cpSync(join(REPO_DIR, name), join(dir, name), { recursive: true });
  for (const [file, text] of edited) {
    if (file.endsWith('.lua')) writeFileSync(join(dir, file), text);
    else writeFileSync(join(dir, builtName(file)), compiled(text));
  }
  return join(dir, 'dist/cli/main.js');
}

const builtName = (file: string): string => file.replace(/^src\//, 'dist/').replace(/\.ts$/, '.js');

function compiled(text: string): string {
  return ts.transpileModule(text, { compilerOptions: COMPILER_OPTIONS }).outputText;
}
