import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { CliError } from '../../src/cli/cli-error.js';

/**
 * Flags of Node for api, worker and keeper. Requests live for milliseconds; with the default young generation of 16 MB
 * many of them are copied before they die, which costs the api about a sixth of its CPU (bench, `win`).
 */
export const PROGRAM_NODE_FLAGS = ['--max-semi-space-size=64'] as const; // MiB

/** What a program tells its supervisor once it serves; see src/programs/run-program.ts. */
export interface ReadyMessage {
  readonly ready: string;
  readonly facts: Readonly<Record<string, string | number>>;
}

export interface ProgramSpec {
  readonly name: string;
  /** Arguments of `seckill`. */
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

export interface SupervisorEvents {
  /** The program died by itself and will be started again. */
  readonly onRestart: (name: string, why: string) => void;
}

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
/** A client of the broker may need several tries to start. */
const READY_TIMEOUT_MS = 60_000;
const RESTART_PAUSE_MS = 1000;
/** Longer than the drain of any program. */
const STOP_TIMEOUT_MS = 25_000;

/** Keeps one program running: starts it, starts it again when it dies, stops it when asked. */
export class SupervisedProgram {
  readonly #spec: ProgramSpec;
  readonly #events: SupervisorEvents;
  #child: ChildProcess | null = null;
  #stopping = false;

  constructor(spec: ProgramSpec, events: SupervisorEvents) {
    this.#spec = spec;
    this.#events = events;
  }

  get name(): string {
    return this.#spec.name;
  }

  /** @throws CliError when it ends or stays silent instead of getting ready */
  async start(): Promise<ReadyMessage> {
    const child = fork(MAIN, [...this.#spec.args], {
      env: this.#spec.env,
      execArgv: [...PROGRAM_NODE_FLAGS, '--import', 'tsx'],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#child = child;
    const ready = await this.#firstWord(child);
    child.once('exit', (code, signal) => void this.#died(signal ?? `exit code ${code}`));
    return ready;
  }

  #firstWord(child: ChildProcess): Promise<ReadyMessage> {
    return new Promise((resolve, reject) => {
      const { name } = this.#spec;
      const timer = setTimeout(() => {
        child.kill('SIGKILL');
        reject(new CliError(`the ${name} did not get ready within ${READY_TIMEOUT_MS / 1000} s; see its lines above.`));
      }, READY_TIMEOUT_MS);
      const early = (code: number | null, signal: NodeJS.Signals | null): void => {
        clearTimeout(timer);
        reject(new CliError(`the ${name} ended at its start (${signal ?? `exit code ${code}`}); see its lines above.`));
      };
      child.once('exit', early);
      child.once('message', (message) => {
        clearTimeout(timer);
        child.off('exit', early);
        resolve(message as ReadyMessage);
      });
    });
  }

  async #died(why: string): Promise<void> {
    while (!this.#stopping) {
      this.#events.onRestart(this.#spec.name, why);
      await new Promise((resolve) => setTimeout(resolve, RESTART_PAUSE_MS));
      if (this.#stopping) return;
      try {
        await this.start();
        return;
      } catch (error) {
        why = (error as Error).message;
      }
    }
  }

  /** SIGTERM, and SIGKILL for one that does not go. */
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
