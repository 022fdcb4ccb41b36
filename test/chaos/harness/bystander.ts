import { spawn, type ChildProcess } from 'node:child_process';
import { until } from './until.js';

/** Listens where it is told, if it is told, says so, and lives until it is signalled. */
const SCRIPT = `
  const { createServer } = require('node:net');
  const port = Number(process.argv[1]);
  const up = () => process.send('up');
  if (port > 0) createServer().listen(port, '127.0.0.1', up);
  else up();
  setInterval(() => undefined, 1000);
`;

/** A process that has nothing to do with any stack. Every signal that ends a process ends it. */
export class Bystander {
  readonly pid: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.pid = child.pid as number;
  }

  /** @param port what it listens on; 0: nothing */
  static async start(port = 0): Promise<Bystander> {
    const child = spawn(process.execPath, ['-e', SCRIPT, String(port)], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    let up = false;
    child.once('message', () => (up = true));
    await until('the bystander is there', () => up);
    return new Bystander(child);
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async end(): Promise<void> {
    if (!this.alive) return;
    const gone = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await gone;
  }
}
