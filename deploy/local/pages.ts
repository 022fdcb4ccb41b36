import { spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from './stack/paths.js';
import { StackError } from './stack/stack-error.js';

const SOURCES = join(REPO_DIR, 'web');
const BUILT = join(REPO_DIR, 'dist/web/console/index.html');

/**
 * Builds the pages of buyers and operators if their sources are newer.
 * @throws StackError when the build fails
 */
export async function buildPagesIfOlder(signal?: AbortSignal): Promise<void> {
  const builtMs = existsSync(BUILT) ? statSync(BUILT).mtimeMs : 0;
  if (newestMs(SOURCES) <= builtMs) return;
  const child = spawn(process.execPath, ['--import', 'tsx', join(SOURCES, 'build.ts')], {
    cwd: REPO_DIR,
    stdio: ['ignore', 2, 2],
    signal,
  });
  const code = await new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null)).once('exit', resolve);
  });
  signal?.throwIfAborted();
  if (code !== 0) throw new StackError('The pages cannot be built: see `npm run build:web`.');
}

/** Returns the latest change of a file below the folder, Unix ms. */
function newestMs(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return Math.max(...names.map((name) => statSync(join(folder, name)).mtimeMs));
}
