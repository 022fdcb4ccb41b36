import { spawn, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createInterface } from 'node:readline';
import { until } from '../chaos/harness/wait.js';

const MAIN = fileURLToPath(new URL('../../deploy/local/main.mjs', import.meta.url));
/** Granted time to boot everything, or at the end to follow buyers, compare books and stop. */
const UP_OR_DOWN_MAX_MS = 240_000;

const SLOW = { everyMs: 100, grantedMs: UP_OR_DOWN_MAX_MS };

/** A line of `npm start -- --json`. */
export interface DemoLine {
  readonly result: string;
  readonly [fact: string]: unknown;
}

/** The line with the addresses. */
export interface DemoUp extends DemoLine {
  readonly url: string;
  readonly operatorsUrl: string;
  readonly metricsUrls: readonly string[];
  readonly viewerToken: string;
}

/** Runs `npm start -- --json` with additional flags, in its own folder and on its own ports. */
export class DemoRun {
  /** Every line so far. */
  readonly lines: DemoLine[] = [];
  stderr = '';
  readonly #child: ChildProcess;
  #isClosed = false;

  /** @param onLine receives each line of JSON, and each sentence for people */
  constructor(dir: string, flags: readonly string[], onLine: (line: DemoLine | string) => void = () => undefined) {
    const args = [MAIN, 'up', '--json', '--dir', dir, '--free-ports', '--port', '0', ...flags];
    // in its own process group, which does not get our Ctrl-C
    this.#child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.once('close', () => (this.#isClosed = true));
    const { stdout, stderr } = this.#child;
    if (stdout === null || stderr === null) throw new Error('it has no output');
    createInterface({ input: stdout }).on('line', (text) => {
      const line = parsed(text);
      this.lines.push(line);
      onLine(line);
    });
    createInterface({ input: stderr }).on('line', (line) => {
      this.stderr += `${line}\n`;
      onLine(line);
    });
  }

  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  /** Whether the command has ended and all its output has been read. */
  get hasEnded(): boolean {
    return this.#isClosed;
  }

  /** @throws Error with the output if the command ends */
  async up(): Promise<DemoUp> {
    await until('it is up', () => this.found('up') !== undefined || this.hasEnded, SLOW);
    const up = this.found('up');
    if (up === undefined) throw new Error(`npm start has ended: ${JSON.stringify(this.lines)}\n${this.stderr}`);
    return up as DemoUp;
  }

  /** Returns the first line with this result and these facts. */
  found(result: string, facts: Readonly<Record<string, unknown>> = {}): DemoLine | undefined {
    const fits = (line: DemoLine): boolean => Object.entries(facts).every(([name, value]) => line[name] === value);
    return this.lines.find((line) => line.result === result && fits(line));
  }

  /** Sends Ctrl-C to the whole group, like a terminal. Call it once, because a second Ctrl-C kills. */
  interrupt(): void {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGINT');
  }

  /** Waits for the end of the command. @returns the exit code */
  async ended(): Promise<number | null> {
    await until('it has ended', () => this.hasEnded, SLOW);
    return this.#child.exitCode;
  }
}

function parsed(text: string): DemoLine {
  try {
    return JSON.parse(text) as DemoLine;
  } catch {
    return { result: 'not_json', text };
  }
}
