import type { Environment } from '../../src/core/config/load.js';
import type { Sale } from '../../src/core/sale.js';
import type { SaleFigures } from '../invariants/check-sale.js';
import { OwnSales } from './context-sales.js';
import type { Buyers } from './harness/buyers.js';
import {
  type Program,
  type ProgramName,
  type ProgramOptions,
  Programs,
  startSurvivors,
  type Survivors,
} from './harness/programs.js';
import { RecoveryWatch } from './harness/recovery-watch.js';
import { openSale, type SaleParts } from './harness/sales.js';
import type { StackHands } from './harness/stack-controls.js';
import { type ProxiedName, ProxiedServer } from './harness/tcp-proxy.js';
import { until } from './harness/wait.js';
import { createRandom, type Random } from './random.js';
import { nameOf, type Row, type RowFigures } from './scenario.js';

/** Heal time is 30 s after the end of a fault; ten more for a machine that is shared. */
const HEAL_MAX_MS = 40_000;
/** For a fault to happen: long enough for a client of the broker that starts with others. */
const BITE_TIMEOUT_MS = 40_000;
/** On two cores that a dozen programs and two brokers share, little comes at once. */
const UNTIL_TIMEOUT_MS = 30_000;

/** Where a row gets what it needs, once per run of the matrix. */
export interface ArenaParts {
  readonly row: Row;
  readonly seed: number;
  readonly stack: StackHands;
  /** What programs run with. */
  readonly env: Environment;
  /** Entry of the build that they run; absent: that of this checkout. */
  readonly main: string | undefined;
  /** Where op logs are kept. */
  readonly logDir: string;
  /** Those that rows share; a row that runs alone has its own. */
  readonly survivors: () => Promise<Survivors>;
}

/** Everything that one run of a row may touch. What it opens ends with the row; its op logs stay. */
export class Arena {
  readonly seed: number;
  /** The seed picks victim, moment and load through it. */
  readonly random: Random;
  /** Redis, MySQL and the servers themselves, for faults and for looking. Only a row that runs alone may break them. */
  readonly stack: StackHands;
  /** Programs of this row, those that were killed too. */
  readonly programs: Programs;
  /** What was proved to have happened. */
  readonly bites: string[] = [];
  readonly #parts: ArenaParts;
  readonly #sales: OwnSales;
  readonly #proxies: ProxiedServer[] = [];
  readonly #undos: (() => unknown)[] = [];
  #recovery: RecoveryWatch | null = null;

  constructor(parts: ArenaParts) {
    this.#parts = parts;
    this.seed = parts.seed;
    this.stack = parts.stack;
    this.random = createRandom(`${parts.seed} ${nameOf(parts.row)}`);
    this.programs = new Programs(parts.env, parts.stack.servers.dir, parts.main);
    const label = `${nameOf(parts.row).replace('/', '-')}-seed-${parts.seed}`;
    this.#sales = new OwnSales({ ...parts, label, mayFail: parts.row.mayFail ?? [] });
  }

  /** What commands and programs of this row run with. */
  get env(): Environment {
    return this.#parts.env;
  }

  /** An open sale of this row's own: ten units, one a buyer, unless `parts` says otherwise. Checked at the end. */
  async openSale(parts: SaleParts = {}): Promise<Sale> {
    const sale = await openSale(this.stack, parts);
    this.adopt(sale);
    return sale;
  }

  /** Makes a sale that was opened otherwise one of this row: it is checked at the end. */
  adopt(sale: Sale): void {
    this.#sales.add(sale);
  }

  /**
   * One client of a sale of this row, which may be many buyers; its op log is a file of its own.
   * @param apis whom it asks, in turn; a function is asked anew for each request
   */
  buyers(saleId: string, apis: readonly Program[] | (() => readonly Program[])): Buyers {
    const list = typeof apis === 'function' ? apis : () => apis;
    return this.#sales.buyers(saleId, () => list().map(({ url }) => url));
  }

  /** Starts a program of this row's own; it ends with the row. */
  start(name: ProgramName, options: ProgramOptions = {}): Promise<Program> {
    return this.programs.start(name, options);
  }

  /** Api, workers and keeper: those that rows share which run beside each other, and must not break; alone, the row's own. */
  survivors(): Promise<Survivors> {
    return this.#parts.row.alone ? startSurvivors(this.programs) : this.#parts.survivors();
  }

  /** A proxy before one server; start programs with its `env`. The row fails when no byte came through it. */
  async proxy(name: ProxiedName): Promise<ProxiedServer> {
    const proxied = await ProxiedServer.open(name, this.stack.env);
    this.#proxies.push(proxied);
    return proxied;
  }

  /**
   * Undoes what a row did to the machine: called when the row is over and its programs have ended, however it ended, the
   * last one first.
   */
  atEnd(undo: () => unknown): void {
    this.#undos.unshift(undo);
  }

  /**
   * Waits for the proof that the fault happened and notes it. A row without a proof fails: its fault did not bite.
   * @param what the fact, for the report: `the api died at after_deduct`
   */
  async bite(what: string, proof: () => boolean | Promise<boolean>, timeoutMs = BITE_TIMEOUT_MS): Promise<void> {
    await until(`the fault bites: ${what}`, proof, timeoutMs);
    this.bites.push(what);
  }

  /** Waits until a program has come to its fail point, and notes it; for points that kill nobody. */
  async reached(program: Program, point: string, timeoutMs = BITE_TIMEOUT_MS): Promise<void> {
    const reached = `"failPoint":"${point.replace(/:\d+$/, '')}"`;
    await this.bite(`the ${program.name} came to ${point}`, () => program.log.includes(reached), timeoutMs);
  }

  /** Waits until a program that was started with a fail point has been killed there, and notes it. */
  async diedAt(program: Program, point: string, timeoutMs = BITE_TIMEOUT_MS): Promise<void> {
    const reached = `"failPoint":"${point.replace(/:\d+$/, '')}"`;
    const died = (): boolean => !program.running && program.log.includes(reached);
    await this.bite(`the ${program.name} died at ${point}`, died, timeoutMs);
  }

  /**
   * To be called when nothing is broken on purpose any more, before the healing. From here recovery is measured, of the
   * sales that there are now, while the row goes on. The last call counts.
   * @param stack with the Redis that the programs have now, where another one took over
   */
  faultEnded(stack: StackHands = this.stack): void {
    this.#recovery?.stop();
    const sales = this.sales.map((sale) => ({ sale, accepted: this.#sales.acceptedOf(sale.saleId) }));
    this.#recovery = new RecoveryWatch(stack, sales);
  }

  /** @throws when `check` does not say yes in time; what it throws counts as no */
  until(
    what: string,
    check: () => boolean | Promise<boolean>,
    timeoutMs = UNTIL_TIMEOUT_MS,
    everyMs?: number,
  ): Promise<void> {
    return until(what, check, timeoutMs, everyMs);
  }

  /**
   * Waits until a sale is at rest and asserts I1 to I8 on Redis, MySQL and all that its clients heard.
   * @returns its figures, for what a row wants to know beyond that
   */
  rest(saleId: string, restTimeoutMs = this.#healMaxMs): Promise<SaleFigures> {
    return this.#sales.rest(saleId, restTimeoutMs);
  }

  /** What the runner asks after `run`: that the fault bit, is over, and left every promise kept. */
  async conclude(): Promise<void> {
    if (this.bites.length === 0) throw new Error('the fault did not bite: the row proved nothing');
    const recovery = this.#watch;
    if (this.sales.length === 0 && this.#parts.row.books !== 'none') {
      throw new Error('the row has no sale: nothing was held against the invariants');
    }
    await Promise.all(this.sales.map(({ saleId }) => this.rest(saleId)));
    await recovery.within(this.#healMaxMs);
    for (const { name, proxy } of this.#proxies) {
      if (proxy.bytes === 0) throw new Error(`not one byte went through the proxy before ${name}`);
    }
  }

  /** Waits until these sales have recovered, in the time of a row that asks for no more. @throws when it took longer */
  recovered(saleIds: readonly string[]): Promise<void> {
    return this.#watch.within(HEAL_MAX_MS, saleIds);
  }

  /** From the end of the fault until the last sale had recovered; null when that never came. */
  get recoveryMs(): number | null {
    return this.#recovery?.recoveryMs ?? null;
  }

  /** Figures of all sales, also after a failure. @throws when a book cannot be read */
  figures(): Promise<RowFigures> {
    return this.#sales.figures();
  }

  /** Those of this row. */
  get sales(): Sale[] {
    return this.#sales.all;
  }

  /**
   * What the checker says of every sale after the row has failed; ends its loads first, so that nothing is under way.
   * @returns sentences that begin with the invariant
   */
  findings(): Promise<string[]> {
    return this.#sales.findings();
  }

  /** Ends loads, programs and proxies, and undoes the rest. Never rejects. */
  async close(): Promise<void> {
    this.#recovery?.stop();
    await this.#sales.endLoads();
    await this.programs.close();
    await Promise.allSettled(this.#proxies.map(({ proxy }) => proxy.close()));
    for (const undo of this.#undos.splice(0)) await Promise.allSettled([(async () => undo())()]);
  }

  get #watch(): RecoveryWatch {
    if (this.#recovery === null) throw new Error('the row never said that its fault is over');
    return this.#recovery;
  }

  get #healMaxMs(): number {
    return this.#parts.row.healMaxMs ?? HEAL_MAX_MS;
  }
}
