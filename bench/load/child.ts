import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { BenchError } from '../bench-error.js';

type InChild<Task, Result> = (task: Task, signal: AbortSignal) => Promise<Result>;

/**
 * Runs work in a separate process, so that it shares no event loop with the bench. The process runs the same file,
 * receives its task as one message and answers with one.
 * @param moduleUrl `import.meta.url` of the calling file, which calls this at its top level
 */
export function inChildProcess<Task, Result>(
  moduleUrl: string,
  work: (task: Task) => Promise<Result>,
): InChild<Task, Result> {
  const file = fileURLToPath(moduleUrl);
  if (process.argv[1] === file) serve(work);
  return (task, signal) => runChild(file, task, signal);
}

function runChild<Task, Result>(file: string, task: Task, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const child = forkFile(file);
    const abort = (): void => {
      child.kill('SIGKILL');
    };
    signal.addEventListener('abort', abort, { once: true });
    let result: { value: Result } | null = null;
    child.once('message', (value) => {
      result = { value: value as Result };
      child.disconnect();
    });
    child.once('error', reject);
    child.once('exit', (code, killedBy) => {
      signal.removeEventListener('abort', abort);
      if (signal.aborted) reject(signal.reason as Error);
      else if (result !== null) resolve(result.value);
      else reject(new BenchError(`${file} ended without a result (${killedBy ?? `exit code ${code}`})`));
    });
    child.send(task as object);
  });
}

/** Starts a TypeScript file with a channel for messages. */
export const forkFile = (file: string) =>
  fork(file, { execArgv: ['--import', 'tsx'], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });

/** Runs in the child process: takes the task, sends the result, and lets the process end. */
function serve<Task, Result>(work: (task: Task) => Promise<Result>): void {
  process.once('message', (task) => {
    void work(task as Task).then(
      (result) => process.send?.(result),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
  // Ctrl-C reaches the whole process group, and the bench ends its children itself
  process.on('SIGINT', () => undefined);
}

/** CPU seconds of this process so far. */
export function ownCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
