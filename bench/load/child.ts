import { fork } from 'node:child_process';
import { BenchError } from '../bench-error.js';

/**
 * Runs one of our load generators in a process of its own: it gets its task as one message and answers with one.
 * @param module its file
 */
export function runChild<Task, Result>(module: URL, task: Task, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const child = fork(module, { execArgv: ['--import', 'tsx'], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
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
      else reject(new BenchError(`the load generator ended without a result (${killedBy ?? `exit code ${code}`})`));
    });
    child.send(task as object);
  });
}

/** The other side: takes the task, sends the result, and lets the process end. */
export function serveChild<Task, Result>(work: (task: Task) => Promise<Result>): void {
  process.once('message', (task) => {
    void work(task as Task).then(
      (result) => process.send?.(result),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
  // Ctrl-C reaches the whole group; the bench ends its children itself.
  process.on('SIGINT', () => undefined);
}

/** CPU seconds of this process so far. */
export function ownCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
