import { spawn } from 'node:child_process';

export interface CommandResult {
  /** Null if a signal ended the program. */
  readonly exitCode: number | null;
  /** stdout and stderr in order, at most the last OUTPUT_MAX characters. */
  readonly output: string;
}

export interface CommandOptions {
  /** Time after which the child is killed. */
  readonly timeoutMs: number;
  /** Written to stdin. */
  readonly input?: string;
  readonly cwd?: string;
  /** Ends the child with SIGTERM, and a little later with SIGKILL. */
  readonly signal?: AbortSignal | undefined;
  /** Called with every complete line of output. */
  readonly onLine?: (line: string) => void;
}

const OUTPUT_MAX = 256 * 1024;
/** MySQL waits for space on a full disk and ignores SIGTERM. */
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
  // Does not use the `timeout` option of spawn: if the program is missing, its timer would keep this process alive.
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
  child.stdin.on('error', () => undefined); // a child that ends early explains why in its output
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

/** @returns the version output of a program, or null if there is no such program */
export async function versionOf(program: string, flag: string): Promise<CommandResult | null> {
  try {
    return await runCommand(program, [flag], { timeoutMs: VERSION_TIMEOUT_MS });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EACCES' || code === 'ENOTDIR') return null;
    throw error;
  }
}
