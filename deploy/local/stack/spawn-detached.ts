import { spawn } from 'node:child_process';
import { writePidFile } from './pid-file.js';
import type { LaunchCommand } from './servers/server-spec.js';
import { StackError } from './stack-error.js';

/**
 * Starts a server in a session of its own: it outlives this process, and Ctrl-C in the terminal does not reach it.
 * @param options.log open file for stdout and stderr
 * @throws StackError when the program cannot be run
 */
export async function spawnDetached(
  { file, args }: LaunchCommand,
  { log, cwd, pidFile }: { log: number; cwd: string; pidFile: string },
): Promise<void> {
  const child = spawn(file, args, { detached: true, stdio: ['ignore', log, log], cwd });
  // in the same breath as the start: whatever happens to us next, the server can be found again
  if (child.pid !== undefined) writePidFile(pidFile, child.pid);
  child.unref();
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) => {
      reject(new StackError(`${file} does not run (${error.message}); check that it is a program for this machine.`));
    });
  });
}
