import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterGranted } from '../../../deploy/local/stack/granted-time.js';
import { REPO_DIR } from '../../../deploy/local/stack/paths.js';
import { StackError } from '../../../deploy/local/stack/stack-error.js';
import type { Environment } from '../../../src/core/config/load.js';
import { GRANTED_MS, until } from './wait.js';

/** The built command line. */
export const BUILT_MAIN = join(REPO_DIR, 'dist/cli/main.js');

/**
 * Builds the programs and the library unless the build is newer than the sources.
 * @throws StackError if the sources do not compile
 */
export async function buildIfOlder(): Promise<void> {
  // imported here, because an ESM-only module would make mocha load each importing file twice
  const { bundleIfOlder } = await import('../../../build.mjs');
  await bundleIfOlder().catch(({ message }: Error) => Promise.reject(new StackError(message)));
}

export interface CommandEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** stdout as JSON lines. If the command was killed, an incomplete last line is left out. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
}

/** Runs `seckill <args>` in a separate process. */
export class RunningCommand {
  readonly end: Promise<CommandEnd>;
  readonly #child: ChildProcess;
  #stdout = '';
  #stderr = '';

  constructor(args: readonly string[], env: Environment, main = BUILT_MAIN) {
    this.#child = spawn(process.execPath, [main, ...args], {
      env: { ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const cancel = afterGranted(GRANTED_MS, () => this.#child.kill('SIGKILL'));
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#stdout += text));
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text));
    this.end = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        cancel();
        resolve({ code, signal, stdout: this.#stdout, stderr: this.#stderr, lines: jsonLines(this.#stdout) });
      });
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Sends the signal after this number of lines, and waits for the end of the command. */
  async signalAfter(lines: number, signal: NodeJS.Signals): Promise<CommandEnd> {
    await until(`${lines} lines`, () => this.#stdout.split('\n').length > lines, { everyMs: 5 });
    this.#child.kill(signal);
    return this.end;
  }
}

export const runCommand = (args: readonly string[], env: Environment): Promise<CommandEnd> =>
  new RunningCommand(args, env).end;

function jsonLines(text: string): Record<string, unknown>[] {
  return text.split('\n').flatMap((line) => {
    try {
      return line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : [];
    } catch {
      return [];
    }
  });
}
