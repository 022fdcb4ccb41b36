import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { CliError } from '../../src/process/cli-error.js';
import { REPO_DIR } from './stack/paths.js';

/**
 * Node flags for API, worker and keeper. Requests live for milliseconds. With the default young generation of 16 MB,
 * many are copied before they die, which costs the API about a sixth of its CPU (bench, `win`).
 */
export const PROGRAM_NODE_FLAGS = ['--max-semi-space-size=64'] as const; // MiB

/** The message that a program sends to its supervisor once it serves; see src/programs/run-program.ts. */
export interface ReadyMessage {
  /** A line for people, such as the address of the program. */
  readonly ready: string;
  readonly facts: Readonly<Record<string, string | number>>;
}

export interface ProgramSpec {
  readonly name: string;
  /** Arguments of `seckill`. */
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Whether the program stays down after it dies. */
  readonly once?: boolean;
}

/** Built by main.mjs before anything starts. */
const MAIN = join(REPO_DIR, 'dist/cli/main.js');
/** A broker client may need several attempts to start. */
const READY_TIMEOUT_MS = 150_000;
const RESTART_PAUSE_MS = 1000;
/** Longer than the drain of any program. */
const STOP_TIMEOUT_MS = 25_000;

const forkProgram = ({ args, env }: ProgramSpec): ChildProcess =>
  fork(MAIN, [...args], {
    env,
    execArgv: [...PROGRAM_NODE_FLAGS],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });

/** Keeps one program running: starts it, restarts it after it dies, and stops it on request. */
export class SupervisedProgram {
  readonly #spec: ProgramSpec;
  readonly #report: (sentence: string) => void;
  readonly #fork: (spec: ProgramSpec) => ChildProcess;
  #child: ChildProcess | null = null;
  #facts: ReadyMessage['facts'] = {};
  #stopping = false;

  /** @param report gets one sentence when the program has died, and another when it serves again */
  constructor(spec: ProgramSpec, report: (sentence: string) => void, forkChild = forkProgram) {
    this.#spec = spec;
    this.#report = report;
    this.#fork = forkChild;
  }

  /** @throws CliError when the program ends or stays silent instead of getting ready */
  async start(): Promise<ReadyMessage> {
    const child = this.#fork(this.#spec);
    this.#child = child;
    const ready = await this.#untilReady(child);
    this.#facts = ready.facts;
    if (!this.#spec.once) child.once('exit', (code, signal) => void this.#restart(signal ?? `exit code ${code}`));
    return ready;
  }

  /** Returns the facts of its last ready message, such as its ports. */
  get facts(): ReadyMessage['facts'] {
    return this.#facts;
  }

  /** Sends kill -9 to our own child only. @returns its pid, or null if no child runs */
  kill(): number | null {
    const child = this.#child;
    return child?.pid !== undefined && child.kill('SIGKILL') ? child.pid : null;
  }

  #untilReady(child: ChildProcess): Promise<ReadyMessage> {
    return new Promise((resolve, reject) => {
      const { name } = this.#spec;
      const timer = setTimeout(() => {
        child.kill('SIGKILL');
        reject(new CliError(`the ${name} was not ready within ${READY_TIMEOUT_MS / 1000} s; see its lines above.`));
      }, READY_TIMEOUT_MS);
      const onEarlyExit = (code: number | null, signal: NodeJS.Signals | null): void => {
        clearTimeout(timer);
        reject(
          new CliError(
            `the ${name} ended right after its start (${signal ?? `exit code ${code}`}); see its lines above.`,
          ),
        );
      };
      child.once('exit', onEarlyExit);
      child.once('message', (message) => {
        clearTimeout(timer);
        child.off('exit', onEarlyExit);
        resolve(message as ReadyMessage);
      });
    });
  }

  /** Retries until the program serves again, possibly at other addresses, which its `ready` line names. */
  async #restart(why: string): Promise<void> {
    let sentence = `The ${this.#spec.name} died (${why})`;
    while (!this.#stopping) {
      this.#report(`${sentence}; starting it again.`);
      await new Promise((resolve) => setTimeout(resolve, RESTART_PAUSE_MS));
      if (this.#stopping) return;
      try {
        const { ready } = await this.start();
        this.#report(`Restarted: ${ready}.`);
        return;
      } catch (error) {
        sentence = `It did not start: ${(error as Error).message.replace(/\.$/, '')}`;
      }
    }
  }

  /** Sends SIGTERM, and SIGKILL if the program does not end. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
      child.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
      child.kill('SIGTERM');
    });
  }
}
