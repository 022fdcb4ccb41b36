import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';

/** The shaky files of the last runs of this checkout, the newest run last. */
const HISTORY = join(REPO_DIR, '.stack-shaky.json');
const RUNS_KEPT = 10;

/**
 * Records the files that passed only at their second attempt.
 * @returns the files that were also shaky in one of the nine runs before
 */
export function noteShaky(files: readonly string[]): string[] {
  const before = readHistory().slice(-(RUNS_KEPT - 1));
  writeFileSync(HISTORY, `${JSON.stringify([...before, files])}\n`);
  return files.filter((file) => before.flat().includes(file));
}

function readHistory(): string[][] {
  try {
    return JSON.parse(readFileSync(HISTORY, 'utf8')) as string[][];
  } catch {
    return []; // the first run
  }
}
