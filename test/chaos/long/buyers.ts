import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { BuyerFile } from '../../../bench/load/buyers.js';
import { found } from '../harness/wait.js';
import type { FromLoad, LoadSale, LoadStats, SoldSale, ToLoad } from './buyers-process.js';

const FILE = fileURLToPath(new URL('./buyers-process.ts', import.meta.url));

const NOTHING: LoadStats = {
  kind: 'stats',
  requests: 0,
  accepted: 0,
  refused: 0,
  unanswered: 0,
  repeated: 0,
  paid: 0,
  cancelled: 0,
  lastAcceptedSentMs: 0,
  lastOrderedSentMs: 0,
  wrong: [],
  cpuSeconds: 0,
};

export class Buyers {
  /** Counts without the current second. */
  stats: LoadStats = NOTHING;
  readonly #child: ChildProcess;
  readonly #selling = new Map<string, (sold: SoldSale) => void>();
  #ready = false;
  #ended = false;

  private constructor() {
    // `advanced` carries the outcomes of a sale as bytes
    this.#child = fork(FILE, {
      execArgv: ['--import', 'tsx'],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#child.on('message', (message) => this.#receive(message as FromLoad));
  }

  /** @param salesAtOnce number of sales that one api sells at the same time */
  static async start(file: BuyerFile, connections: number, salesAtOnce: number): Promise<Buyers> {
    const buyers = new Buyers();
    buyers.#send({ kind: 'start', file, connections, salesAtOnce });
    await found('the buyers are ready', () => Promise.resolve(buyers.#ready ? true : null));
    return buyers;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Sets the apis that buyers use from now on. */
  useApis(ports: readonly number[]): void {
    this.#send({ kind: 'apis', ports });
  }

  /** Sets how many requests may be under way from now on. */
  pace(open: number): void {
    this.#send({ kind: 'pace', open });
  }

  /** Resolves when each buyer has an answer or has given up. */
  sell(sale: LoadSale): Promise<SoldSale> {
    return new Promise((resolve) => {
      this.#selling.set(sale.saleId, resolve);
      this.#send({ kind: 'sell', sale });
    });
  }

  async stop(): Promise<void> {
    this.#ended = true;
    if (!this.running) return;
    const exit = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#send({ kind: 'end' });
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 5_000);
    await exit;
    clearTimeout(timer);
  }

  #send(message: ToLoad): void {
    if (this.#ended && message.kind !== 'end') return;
    this.#child.send(message);
  }

  #receive(message: FromLoad): void {
    switch (message.kind) {
      case 'ready':
        this.#ready = true;
        break;
      case 'stats':
        this.stats = message;
        break;
      case 'sold':
        this.#selling.get(message.saleId)?.(message);
        this.#selling.delete(message.saleId);
    }
  }
}
