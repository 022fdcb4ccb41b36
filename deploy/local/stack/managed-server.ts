import { closeSync, fstatSync, mkdirSync, openSync, readSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { fullDiskHint } from './files.js';
import type { StackPaths } from './paths.js';
import { assertPortsFree, claimedPorts, listeningPorts, type StackPorts } from './ports.js';
import { waitUntil } from './probes.js';
import { isStopped, pidFileAgeMs, readPidFile, removePidFile, signalPidFile, spawnDetached } from './processes.js';
import type { ServerName, ServerSpec, Tools } from './servers/server-spec.js';
import { StackError } from './stack-error.js';

const READY_POLL_MS = 100;
const EXIT_POLL_MS = 50;
/** After SIGKILL a process disappears as soon as the kernel has freed its memory. */
const KILL_WAIT_MS = 10_000;
/** The kernel removes a killed process in steps: its ports may stay taken for a moment after its pid is gone. */
const PORTS_WAIT_MS = 2_000;

/**
 * `running`: answers correctly. `starting`: alive, not ready, within its start time. `unhealthy`: alive, but does not
 * answer. `stopped`: no process of this instance.
 */
type ServerState = 'running' | 'starting' | 'unhealthy' | 'stopped';

export interface ServerStatus {
  readonly name: ServerName;
  readonly state: ServerState;
  readonly pid: number | null;
  readonly ports: readonly number[];
  /** The reason why it is not running, or null if it runs. */
  readonly reason: string | null;
  readonly log: string;
}

/** Controls one server of an instance. Any process may use it, because all state is in the instance folder. */
export interface StackServer {
  readonly name: ServerName;
  /** Full path of the file with its stdout and stderr. */
  readonly logFile: string;
  /** @returns the pid of our live process, or null */
  pid(): number | null;
  /** @returns false without sending the signal if the server does not run */
  kill(signal: NodeJS.Signals): boolean;
  /** Starts the server unless it runs. Resolves at once, long before the server is ready. @throws StackError */
  start(): Promise<void>;
  /** @throws StackError when the server ends or is not ready within its start time (granted time) */
  waitReady(options?: { timeoutMs?: number; signal?: AbortSignal | undefined }): Promise<void>;
  /**
   * Ends the server and waits until it is gone: sends the signal (default SIGTERM), and after `timeoutMs` SIGKILL.
   * Wakes up a process that was stopped with SIGSTOP first. Resolves at once if the server does not run.
   */
  stop(options?: { signal?: NodeJS.Signals; timeoutMs?: number }): Promise<void>;
  status(): Promise<ServerStatus>;
}

export class ManagedServer implements StackServer {
  readonly name: ServerName;
  readonly label: string;
  readonly logFile: string;
  readonly spec: ServerSpec;
  readonly #paths: StackPaths;
  readonly #ports: StackPorts;
  readonly #pidFile: string;
  readonly #tools: (signal?: AbortSignal) => Promise<Tools>;
  /** Offset at which the log of the current run begins. */
  #logFrom = 0;

  constructor(
    spec: ServerSpec,
    instance: { paths: StackPaths; ports: StackPorts; tools: (signal?: AbortSignal) => Promise<Tools> },
  ) {
    this.spec = spec;
    this.name = spec.name;
    this.label = spec.label;
    this.#paths = instance.paths;
    this.#ports = instance.ports;
    this.#tools = instance.tools;
    this.#pidFile = instance.paths.pidFile(spec.name);
    this.logFile = instance.paths.log(`${spec.name}.log`);
  }

  pid(): number | null {
    return readPidFile(this.#pidFile)?.pid ?? null;
  }

  kill(signal: NodeJS.Signals): boolean {
    return signalPidFile(this.#pidFile, signal);
  }

  /** Checks the ports of a server that does not run. @throws StackError when a port is taken */
  assertPortsFree(): void {
    assertPortsFree(claimedPorts(this.#ports, this.spec.portNames));
  }

  async start(signal?: AbortSignal): Promise<void> {
    if (this.pid() !== null) return;
    const tools = await this.#tools(signal);
    const tmp = this.#paths.tmp(this.name);
    rmSync(tmp, { recursive: true, force: true });
    for (const dir of [tmp, dirname(this.logFile)]) mkdirSync(dir, { recursive: true });
    const command = await this.spec.prepare(tools, signal);
    signal?.throwIfAborted();
    this.assertPortsFree();
    const log = openSync(this.logFile, 'a');
    try {
      this.#logFrom = fstatSync(log).size;
      await spawnDetached(command, { log, cwd: tmp, pidFile: this.#pidFile });
    } finally {
      closeSync(log);
    }
  }

  async waitReady(options: { timeoutMs?: number; signal?: AbortSignal | undefined } = {}): Promise<void> {
    const timeoutMs = options.timeoutMs ?? this.spec.startTimeoutMs;
    const startedMs = performance.now();
    let reason: string | null = null;
    const ready = await waitUntil(
      async () => {
        if (this.pid() === null) throw new StackError(this.#diedSentence());
        reason = await this.spec.probe();
        if (reason !== null) await this.spec.hasten?.(reason);
        return reason === null;
      },
      { timeoutMs, everyMs: READY_POLL_MS, signal: options.signal },
    );
    if (ready) return;
    const why = fullDiskHint(this.#paths.dir) || reason;
    const waited = `${Math.round((performance.now() - startedMs) / 1000)} s`;
    throw new StackError(`${this.label} is not ready after ${waited} (${why}); see ${this.logFile}.`);
  }

  async stop(options: { signal?: NodeJS.Signals; timeoutMs?: number } = {}): Promise<void> {
    const gone = (): boolean => this.pid() === null;
    if (this.kill(options.signal ?? 'SIGTERM')) {
      this.kill('SIGCONT');
      const timeoutMs = options.timeoutMs ?? this.spec.stopTimeoutMs;
      if (!(await waitUntil(gone, { timeoutMs, everyMs: EXIT_POLL_MS }))) {
        this.kill('SIGKILL');
        if (!(await waitUntil(gone, { timeoutMs: KILL_WAIT_MS, everyMs: EXIT_POLL_MS }))) {
          throw new StackError(
            `${this.label} (pid ${this.pid()}) does not end, not even after SIGKILL; its disk may hang.`,
          );
        }
      }
      await waitUntil(() => this.#portsFree(), { timeoutMs: PORTS_WAIT_MS, everyMs: EXIT_POLL_MS });
    }
    removePidFile(this.#pidFile);
  }

  async status(): Promise<ServerStatus> {
    const pid = this.pid();
    const ports = this.spec.portNames.map((name) => this.#ports[name]);
    const base = { name: this.name, pid, ports, log: this.logFile };
    if (pid === null) return { ...base, state: 'stopped', reason: 'it does not run' };
    if (isStopped(pid)) return { ...base, state: 'unhealthy', reason: 'it is stopped by a signal (SIGSTOP)' };
    const reason = await this.spec.probe();
    if (reason === null) return { ...base, state: 'running', reason };
    const young = pidFileAgeMs(this.#pidFile) < this.spec.startTimeoutMs;
    return { ...base, state: young ? 'starting' : 'unhealthy', reason };
  }

  #portsFree(): boolean {
    const taken = new Set(listeningPorts().map(({ port }) => port));
    return claimedPorts(this.#ports, this.spec.portNames).every(({ port }) => !taken.has(port));
  }

  #diedSentence(): string {
    const why = fullDiskHint(this.#paths.dir) || causeInLog(this.logFile, this.#logFrom);
    return `${this.label} ended${why ? ` (${why})` : ''}; see ${this.logFile}.`;
  }
}

const TAIL_BYTES = 16 * 1024;
const LINE_LENGTH_MAX = 240;
const CAUSE = /\b(error|fatal|exception|fail(ed|ure)?|denied|cannot|can't|in use|no space left|invalid|not found)\b/i;

/** Markers that MariaDB and MySQL put on lines that are not errors. */
const EVERYDAY = /\[(Note|Warning|System)\]/;
/** If the log has at most this many lines, the last line is probably the cause. */
const EARLY_DEATH_LINES = 3;

/**
 * Returns the log line that most likely explains the death of a server: the last line that looks like an error,
 * otherwise the last line of a short log. Null for a killed server, which logs nothing.
 * @param from offset in bytes; earlier lines are from before this start
 */
function causeInLog(logFile: string, from = 0): string | null {
  const lines = tailOf(logFile, from)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^at /.test(line) && !EVERYDAY.test(line));
  const line =
    lines.findLast((one) => CAUSE.test(one)) ?? (lines.length <= EARLY_DEATH_LINES ? lines.at(-1) : undefined);
  return line === undefined ? null : line.slice(0, LINE_LENGTH_MAX);
}

function tailOf(logFile: string, from: number): string {
  let file: number;
  try {
    file = openSync(logFile, 'r');
  } catch {
    return ''; // nothing was logged
  }
  try {
    const { size } = fstatSync(file);
    const start = Math.max(from, size - TAIL_BYTES, 0);
    const bytes = Buffer.alloc(Math.max(size - start, 0));
    readSync(file, bytes, 0, bytes.length, start);
    return bytes.toString('utf8');
  } finally {
    closeSync(file);
  }
}
