import { spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../../deploy/local/stack/paths.js';
import { StackError } from '../../../deploy/local/stack/stack-error.js';

const SOURCES = join(REPO_DIR, 'src');

/** The command line as the programs run it: built, since from sources each would take a second longer to start. */
export const BUILT_MAIN = join(REPO_DIR, 'dist/cli/main.js');

/**
 * Builds the programs unless the build is as new as the sources.
 * @returns whether it had to
 * @throws StackError when the sources do not compile
 */
export async function buildIfOlder(signal?: AbortSignal): Promise<boolean> {
  const builtMs = existsSync(BUILT_MAIN) ? statSync(BUILT_MAIN).mtimeMs : 0;
  if (!existsSync(SOURCES) || newestMs(SOURCES) <= builtMs) return false;
  await build(signal);
  return true;
}

/** @throws StackError when the sources do not compile */
export async function build(signal?: AbortSignal): Promise<void> {
  const tsc = join(REPO_DIR, 'node_modules/typescript/bin/tsc');
  const args = [tsc, '-p', 'tsconfig.build.json'];
  const child = spawn(process.execPath, args, { cwd: REPO_DIR, stdio: ['ignore', 'ignore', 'inherit'], signal });
  const code = await new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null)).once('exit', resolve);
  });
  signal?.throwIfAborted();
  if (code !== 0) throw new StackError('The sources do not compile: see `npm run typecheck`.');
}

function newestMs(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return Math.max(...names.map((name) => statSync(join(folder, name)).mtimeMs));
}
