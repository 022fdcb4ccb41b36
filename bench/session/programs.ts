import { fork, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleIfOlder } from '../../build.mjs';
import { PROGRAM_NODE_FLAGS } from '../../deploy/local/supervisor.js';
import { BenchError } from '../bench-error.js';

export type ProgramName = 'api' | 'worker' | 'keeper';

/** The message of a program that is ready (src/programs/run-program.ts). */
interface ReadyMessage {
  readonly facts: Readonly<Record<string, string | number>>;
}

export interface ProgramOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Receives stdout and stderr of the program. */
  readonly logFile: string;
  readonly signal: AbortSignal;
  /** The command of another build. Absent: the build of this checkout. */
  readonly main?: string;
}

/** A client of a broker that has just started may need several attempts. */
const READY_TIMEOUT_MS = 90_000;
/** Longer than any program takes to drain. */
const STOP_TIMEOUT_MS = 25_000;

/** Runs a program of the product in a separate process. Unlike a supervisor, restarts nothing. */
export class Program {
  readonly name: ProgramName;
  readonly #child: ChildProcess;
  readonly #logFile: string;
  #facts: ReadyMessage['facts'] = {};

  private constructor(name: ProgramName, child: ChildProcess, logFile: string) {
    this.name = name;
    this.#child = child;
    this.#logFile = logFile;
  }

  /** Stops a program that does not become ready. @throws BenchError if the program ends or stays silent */
  static async start(name: ProgramName, { env, logFile, signal, main = BUILT_MAIN }: ProgramOptions): Promise<Program> {
    signal.throwIfAborted();
    mkdirSync(dirname(logFile), { recursive: true });
    const log = openSync(logFile, 'w');
    const portFlag = name === 'api' ? '--port' : '--metrics-port';
    const child = fork(main, [name, portFlag, '0'], {
      // Another build may not know these options. They make each scrape current.
      env: { OPERATORS_PORT: '0', TEST_OVERRIDES: 'on', METRICS_CACHE_MS: '0', ...env },
      execArgv: [...PROGRAM_NODE_FLAGS, ...profilerArgs(name, env)],
      stdio: ['ignore', log, log, 'ipc'],
    });
    closeSync(log);
    const program = new Program(name, child, logFile);
    try {
      await program.#ready(signal);
      return program;
    } catch (error) {
      await program.stop('SIGKILL');
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** Where the api serves buyers. */
  get port(): number {
    return Number(this.#facts.port);
  }

  /** Where the program serves /metrics, and the api its admin routes too. */
  get operatorsPort(): number {
    const { operatorsPort, metricsPort, port } = this.#facts; // the api of an older build has one port
    return Number(operatorsPort ?? metricsPort ?? port);
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** @throws BenchError if the program has died */
  assertAlive(): void {
    if (!this.alive) throw this.#died();
  }

  /** Ends the program and waits until it is gone. Sends SIGKILL if it does not end. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (!this.alive) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS);
      this.#child.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
      this.#child.kill(signal);
    });
  }

  #ready(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const ready = (message: unknown): void => {
        this.#facts = (message as ReadyMessage).facts;
        end();
        resolve();
      };
      const fail = (error: unknown): void => {
        end();
        reject(error as Error);
      };
      const died = (): void => fail(this.#died());
      const aborted = (): void => fail(signal.reason);
      const late = `the ${this.name} was not ready within ${READY_TIMEOUT_MS / 1000} s; see ${this.#logFile}`;
      const timer = setTimeout(() => fail(new BenchError(late)), READY_TIMEOUT_MS);
      const end = (): void => {
        clearTimeout(timer);
        this.#child.off('message', ready).off('exit', died);
        signal.removeEventListener('abort', aborted);
      };
      this.#child.once('message', ready).once('exit', died);
      signal.addEventListener('abort', aborted);
    });
  }

  #died(): BenchError {
    const lines = readFileSync(this.#logFile, 'utf8').trimEnd().split('\n');
    return new BenchError(
      `the ${this.name} ended by itself; last lines of ${this.#logFile}:\n${lines.slice(-8).join('\n')}`,
    );
  }
}

/** BENCH_CPU_PROF=<folder> makes each program write a V8 profile per thread at its end. Look at thread 0. */
function profilerArgs(name: ProgramName, env: NodeJS.ProcessEnv): string[] {
  return env.BENCH_CPU_PROF ? ['--cpu-prof', '--cpu-prof-dir', `${env.BENCH_CPU_PROF}/${name}`] : [];
}

/** Production runs this build, too. A TypeScript loader would cost a tenth more. */
const BUILT_MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Builds the programs unless the build is newer than the sources. @throws BenchError if they do not compile */
export async function build(): Promise<void> {
  await bundleIfOlder().catch(({ message }: Error) => Promise.reject(new BenchError(message)));
}
