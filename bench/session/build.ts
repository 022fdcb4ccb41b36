import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { BenchError } from '../bench-error.js';

const REPO = fileURLToPath(new URL('../..', import.meta.url));

/** The command of the build. What is measured is what would be deployed: a TypeScript loader costs a tenth here. */
export const BUILT_MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Compiles the sources as they are now. @throws BenchError when they do not compile */
export async function build(signal: AbortSignal): Promise<void> {
  const tsc = `${REPO}node_modules/typescript/bin/tsc`;
  const child = spawn(process.execPath, [tsc, '-p', 'tsconfig.build.json'], {
    cwd: REPO,
    stdio: ['ignore', 'ignore', 'inherit'],
    signal,
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('exit', resolve);
  });
  if (code !== 0) throw new BenchError('the sources do not compile; `npm run build` says why');
}
