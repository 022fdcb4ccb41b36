import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterGranted } from '../../../deploy/local/stack/granted-time.js';
import type { Environment } from '../../../src/core/config/load.js';
import { BUILT_MAIN } from './commands.js';
import { ask } from './http.js';
import { RECONCILE_ENV } from './sales.js';
import { GRANTED_MS, until } from './wait.js';

export type ProgramName = 'api' | 'worker' | 'keeper';

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Additional environment for one program, and modules that it loads first. */
export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly preload?: readonly string[];
  /** Options on its command line. */
  readonly args?: readonly string[];
  /** Entry of another build than its scenario uses, such as another release. */
  readonly main?: string;
  /** `FAILPOINT` of test/chaos/fail-points.ts. */
  readonly failPoint?: string;
}

/**
 * Uses free ports and a short redelivery time. With the 30 s of production, a check-back and one lost delivery would
 * take longer than the allowed recovery.
 */
const HARNESS_ENV = {
  TEST_OVERRIDES: 'on',
  PORT: '0',
  OPERATORS_PORT: '0',
  METRICS_PORT: '0',
  METRICS_CACHE_MS: '0', // so that metrics are current
  OPERATORS_REQUESTS_PER_SECOND: '10000', // for requests from one address
  LOG_LEVEL: 'info',
  WORKER_INVISIBLE_MS: '10000',
  MYSQL_QUERY_TIMEOUT_MS: '5000',
  ROCKETMQ_RECEIVE_WAIT_MS: '1000', // a program that stops waits for it
};
/** On a busy machine a server may answer late. A test about a server that does not answer sets its own limit. */
export const PATIENT_ENV = {
  REDIS_REPLY_TIMEOUT_MS: '10000',
  ROCKETMQ_REQUEST_TIMEOUT_MS: '10000',
  BATCH_WAIT_MAX_MS: '20000',
};
/** Lets an api with a silent Redis answer buyers while the scenario watches. */
export const SHORT_TIMES = { REDIS_REPLY_TIMEOUT_MS: '500', BATCH_WAIT_MAX_MS: '2000' };
/** Granted time for any drain. */
const STOP_TIMEOUT_MS = 25_000;
const LOG_LINES_SHOWN = 40;
/** Characters of a log line, without the stack of an error. */
const LOG_LINE_SHOWN = 400;

/** A real process: api, worker or keeper. */
export class Program {
  readonly name: ProgramName;
  /** File of its stdout and stderr. */
  readonly logFile: string;
  readonly exit: Promise<Exit>;
  readonly #child: ChildProcess;
  #facts: Readonly<Record<string, string | number>> = {};

  constructor(
    main: string,
    name: ProgramName,
    logFile: string,
    { env, preload = [], args = [] }: Pick<ProgramOptions, 'preload' | 'args'> & { readonly env: Environment },
  ) {
    this.name = name;
    this.logFile = logFile;
    const log = openSync(logFile, 'a');
    this.#child = fork(main, [name, ...args], {
      env: { ...env },
      execArgv: [FAIL_POINTS, ...preload].flatMap((module) => ['--import', module]),
      stdio: ['ignore', log, log, 'ipc'],
    });
    closeSync(log);
    this.exit = new Promise((resolve) => this.#child.once('exit', (code, signal) => resolve({ code, signal })));
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Where the api serves buyers. */
  get url(): string {
    return `http://127.0.0.1:${this.#facts.port}`;
  }

  /** Where any program serves `/readyz` with reasons and `/metrics`, and where the api serves its admin routes too. */
  get operatorsUrl(): string {
    return `http://127.0.0.1:${this.#facts.operatorsPort ?? this.#facts.metricsPort}`;
  }

  get log(): string {
    return readFileSync(this.logFile, 'utf8');
  }

  /** Returns whether its log says that it reached a fail point. */
  hasReached(point: string): boolean {
    return this.log.includes(`"failPoint":"${point.replace(/(:\d+)?(=throw)?$/, '')}"`);
  }

  /** @throws if the program ends or stays silent */
  async ready(): Promise<this> {
    let cancel: (() => void) | undefined;
    this.#facts = await new Promise<Record<string, string | number>>((resolve, reject) => {
      const fail = (why: string): void => reject(new Error(`the ${this.name} ${why}; its log is ${this.logFile}`));
      cancel = afterGranted(GRANTED_MS, () => fail('was not ready in time'));
      this.#child.once('message', (message) => resolve((message as { facts: Record<string, number> }).facts));
      void this.exit.then(({ code, signal }) => fail(`ended right after its start (${signal ?? code})`));
    }).finally(() => cancel?.());
    return this;
  }

  signal(signal: NodeJS.Signals): void {
    if (this.running) this.#child.kill(signal);
  }

  /** Sends kill -9. */
  async crash(): Promise<Exit> {
    this.signal('SIGKILL');
    return this.exit;
  }

  /** Sends SIGTERM, then SIGKILL if it does not end. */
  async stop(): Promise<Exit> {
    this.signal('SIGCONT');
    this.signal('SIGTERM');
    const cancel = afterGranted(STOP_TIMEOUT_MS, () => this.signal('SIGKILL'));
    const exit = await this.exit;
    cancel();
    return exit;
  }

  /** @throws if the program does not end by itself in time */
  async ended(): Promise<Exit> {
    await until(`the ${this.name} ends by itself`, () => !this.running);
    return this.exit;
  }
}

/** Programs started by this process, for names of log files. */
let made = 0;

/** The programs of a scenario or of a test file. */
export class Programs {
  readonly #env: Environment;
  readonly #logDir: string;
  readonly #main: string;
  readonly #programs: Program[] = [];
  #closed = false;

  /**
   * @param env points a program at its servers, and contains all its other settings
   * @param main entry of the build that they run; default: that of this checkout
   */
  constructor(env: Environment, stackDir: string, main: string = BUILT_MAIN) {
    this.#env = env;
    this.#main = main;
    this.#logDir = join(stackDir, 'log', 'programs');
    mkdirSync(this.#logDir, { recursive: true });
  }

  get running(): readonly Program[] {
    return this.#programs.filter((program) => program.running);
  }

  /** Includes programs that were killed. */
  get all(): readonly Program[] {
    return this.#programs;
  }

  /** @throws after `close`, because a scenario that ran out of time continues in the background */
  async start(name: ProgramName, options: ProgramOptions = {}): Promise<Program> {
    if (this.#closed) throw new Error(`no ${name} is started after the end of its scenario or file`);
    const logFile = join(this.#logDir, `${name}-${process.pid}-${Date.now()}-${made++}.log`);
    const env = { ...this.#env, ...HARNESS_ENV, ...envOf(options) };
    const program = new Program(options.main ?? this.#main, name, logFile, { ...options, env });
    this.#programs.push(program);
    return program.ready();
  }

  /**
   * Ends every running program for good. Sends SIGTERM, because messages of a killed worker return much later and the
   * next file would have to wait for them.
   */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.running.map((program) => program.stop()));
  }

  /** The end of each log, to explain a failure. */
  logTails(): string {
    const tails = this.#programs.map(({ name, logFile, log, running }) => {
      const lines = log
        .trimEnd()
        .split('\n')
        .map((line) => line.slice(0, LOG_LINE_SHOWN));
      return `\n--- ${name}${running ? '' : ' (ended)'}: ${logFile}\n${lines.slice(-LOG_LINES_SHOWN).join('\n')}`;
    });
    return tails.join('\n');
  }
}

function envOf({ env = {}, failPoint }: ProgramOptions): Environment {
  return failPoint === undefined ? env : { ...env, FAILPOINT: failPoint };
}

/** A module that Node loads before a program (`--import`). Plain JavaScript, because the program runs from `dist`. */
const preload = (file: string): URL => new URL(`../preload/${file}`, import.meta.url);

/** Does nothing without `FAILPOINT`. */
const FAIL_POINTS = preload('fail-points.mjs').href;

/** Collects all garbage of a program before it says how large its heap is. */
export const COLLECT_GARBAGE = preload('collect-garbage.mjs').href;

/** Makes a program plan wrong amounts, and lose metadata. */
export const WRONG_ROWS = preload('wrong-rows.mjs').href;

/** Moves the clock of a program by this time at each SIGUSR2, and with `atStart` also at its start. */
export function clockStep(ms: number, { atStart = false } = {}): string {
  const url = preload('clock-step.mjs');
  url.search = `ms=${ms}${atStart ? '&at=start' : ''}`;
  return url.href;
}

/** Programs that a scenario must not break. */
export interface HealthyPrograms {
  readonly api: Program;
  readonly workers: readonly Program[];
  readonly keeper: Program;
}

/** Turns off the re-drive of keepers, so that only a check-back or a delivery can repair. */
export const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };

/** Quick retries. */
const WORKER_ENV = { WORKER_RETRY_FIRST_MS: '10' };
const KEEPER_ENV = { ...NO_REDRIVE, KEEPER_EVERY_MS: '500' };

/** Starts the shared programs on first use and keeps them until `close`. */
export class SharedPrograms {
  readonly #env: Environment;
  readonly #stackDir: string;
  readonly #main: string | undefined;
  #programs: Programs | null = null;
  #starting: Promise<HealthyPrograms> | null = null;

  /** @param main entry of a build other than that of this checkout */
  constructor(env: Environment, stackDir: string, main?: string) {
    this.#env = env;
    this.#stackDir = stackDir;
    this.#main = main;
  }

  /** @throws if a scenario has broken a shared program */
  async healthyPrograms(): Promise<HealthyPrograms> {
    this.#starting ??= this.#start();
    const programs = await this.#starting;
    const dead = [programs.api, ...programs.workers, programs.keeper].find(({ running }) => !running);
    if (dead) throw new Error(`the shared ${dead.name} has died; its log is ${dead.logFile}`);
    return programs;
  }

  /** Ends the programs. The next `healthyPrograms` starts new programs. */
  async close(): Promise<void> {
    await this.#starting?.catch(() => undefined);
    await this.#programs?.close();
    this.#programs = null;
    this.#starting = null;
  }

  async #start(): Promise<HealthyPrograms> {
    const programs = new Programs(this.#env, this.#stackDir, this.#main);
    this.#programs = programs;
    return startHealthyPrograms(programs);
  }
}

export async function startHealthyPrograms(programs: Programs): Promise<HealthyPrograms> {
  const [api, keeper, ...workers] = await Promise.all([
    programs.start('api', { env: RECONCILE_ENV }),
    programs.start('keeper', { env: KEEPER_ENV }),
    programs.start('worker', { env: WORKER_ENV }),
    programs.start('worker', { env: WORKER_ENV }),
  ]);
  return { api, workers, keeper };
}

/**
 * Reads a counter or gauge from the `/metrics` of a program.
 * @param name with the labels that must match: `seckill_batches_total{verdict="refused"}`
 * @returns the sum of the matching samples, or 0
 */
export async function readMetric(program: Program, name: string): Promise<number> {
  const [, wanted = '', labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(name) ?? [];
  const { text } = await ask(`${program.operatorsUrl}/metrics`);
  let sum = 0;
  for (const [, sample, has = '', value] of text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)) {
    const fits = sample === wanted && labels.split(',').every((label) => has.includes(label));
    if (fits) sum += Number(value);
  }
  return sum;
}

/** Returns the complaint of `/readyz` about a dependency, or null while the program is ready. */
export async function complaintOf(
  { operatorsUrl }: Program,
  dependency: 'redis' | 'rocketmq' | 'mysql',
): Promise<string | null> {
  const { status, json } = await ask(`${operatorsUrl}/readyz`);
  const parts = (json.dependencies ?? []) as { readonly name: string; readonly ok: boolean; readonly detail: string }[];
  const found = parts.find(({ name }) => name === dependency);
  return status === 503 && found?.ok === false ? found.detail : null;
}

/** Sums the same metric over several programs. */
export async function sumMetric(programs: readonly Program[], name: string): Promise<number> {
  const values = await Promise.all(programs.map((program) => readMetric(program, name)));
  return values.reduce((sum, value) => sum + value, 0);
}
