import { spawn } from 'node:child_process';

export interface CommandResult {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  /** stdout and stderr as they came, at most OUTPUT_MAX characters of the end. */
  readonly output: string;
}

export interface CommandOptions {
  /** After it the child is killed. */
  readonly timeoutMs: number;
  /** Given on stdin. */
  readonly input?: string;
  readonly cwd?: string;
  /** Ends the child: SIGTERM, a little later SIGKILL. */
  readonly signal?: AbortSignal | undefined;
  /** Called with every whole line of output. */
  readonly onLine?: (line: string) => void;
}

const OUTPUT_MAX = 256 * 1024;
/** MySQL on a full disk waits for space and ignores SIGTERM. */
const TERM_WAIT_MS = 3_000;

/**
 * Runs a program to its end and collects its output.
 * @throws the spawn error (ENOENT: no such program), or the reason of `signal`
 */
export async function runCommand(
  file: string,
  args: readonly string[],
  { timeoutMs, input, cwd, signal, onLine }: CommandOptions,
): Promise<CommandResult> {
  signal?.throwIfAborted();
  const child = spawn(file, args, { cwd, stdio: ['pipe', 'pipe', 'pipe'] });
  // Not the option `timeout` of spawn: where there is no such program, its timer would keep this process alive.
  const deadline = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  let lastResort: NodeJS.Timeout | undefined;
  const stop = (): void => {
    child.kill('SIGTERM');
    lastResort = setTimeout(() => child.kill('SIGKILL'), TERM_WAIT_MS);
  };
  signal?.addEventListener('abort', stop, { once: true });
  let output = '';
  let unfinished = '';
  const take = (chunk: string): void => {
    output = (output + chunk).slice(-OUTPUT_MAX);
    const lines = (unfinished + chunk).split('\n');
    unfinished = lines.pop() ?? '';
    for (const line of lines) onLine?.(line);
  };
  child.stdout.setEncoding('utf8').on('data', take);
  child.stderr.setEncoding('utf8').on('data', take);
  child.stdin.on('error', () => undefined); // a child that ended early says why in its output
  child.stdin.end(input ?? '');
  try {
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    signal?.throwIfAborted();
    return { exitCode, output };
  } finally {
    clearTimeout(deadline);
    clearTimeout(lastResort);
    signal?.removeEventListener('abort', stop);
  }
}

/** A cold JVM on a busy machine takes seconds to print its version. */
const VERSION_TIMEOUT_MS = 30_000;

/** @returns what a program prints as its version; null when there is no such program */
export async function versionOf(program: string, flag: string): Promise<CommandResult | null> {
  try {
    return await runCommand(program, [flag], { timeoutMs: VERSION_TIMEOUT_MS });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EACCES' || code === 'ENOTDIR') return null;
    throw error;
  }
}
