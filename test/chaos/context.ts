import type { Environment } from '../../src/core/config/load.js';
import type { FailureReason } from '../../src/core/order.js';
import type { Sale } from '../../src/core/sale.js';
import type { SaleFigures } from '../invariants/check-sale.js';
import type { Buyers } from './harness/buyers.js';
import { expectEqual, expectFields } from './harness/expect.js';
import {
  Programs,
  startHealthyPrograms,
  type HealthyPrograms,
  type Program,
  type ProgramName,
  type ProgramOptions,
} from './harness/programs.js';
import { RecoveryWatch } from './harness/recovery-watch.js';
import { openSale, type SaleParts } from './harness/sales.js';
import type { StackControls } from './harness/stack-controls.js';
import { ProxiedServer, type ProxiedName } from './harness/tcp-proxy.js';
import { type Polls, until } from './harness/wait.js';
import { createRandom, type Random } from './random.js';
import { ScenarioSales, type ScenarioFigures } from './scenario-sales.js';

/** Recovery may take 30 s of granted time after the end of a fault, plus ten for the checks. */
const HEAL_MAX_MS = 40_000;

/** The parts of a scenario that its context needs. */
export interface ScenarioRules {
  /** The id in the fault matrix, such as `T3`. If an id has several faults, each has a variant: `T3/after_deduct`. */
  readonly name: string;
  /**
   * Runs the scenario without other scenarios and without shared programs. Set this if the scenario stops a server,
   * needs a topic for itself, or must have the only worker or keeper.
   */
  readonly alone?: boolean;
  /** The scenario opens no sale, so no invariants are checked. Without this flag such a scenario fails. */
  readonly noSale?: boolean;
  /** Reasons for which an accepted purchase may fail; default none. */
  readonly mayFail?: readonly FailureReason[];
  /** Longest recovery, in ms; default 40,000. A scenario with another limit says why. */
  readonly healMaxMs?: number;
}

export interface ContextParts {
  readonly scenario: ScenarioRules;
  readonly seed: number;
  readonly stack: StackControls;
  /** Environment of the programs. */
  readonly env: Environment;
  /** Entry of the build that the programs run. Absent: the build of this checkout. */
  readonly main: string | undefined;
  /** Folder in which op logs are kept. */
  readonly logDir: string;
  /** Programs that scenarios share. A scenario that runs alone has its own. */
  readonly healthyPrograms: () => Promise<HealthyPrograms>;
}

/** Everything that one run of a scenario may use. It is closed with the scenario, and only the op logs remain. */
export class ScenarioContext {
  readonly seed: number;
  /** The source of victim, moment and load, so that a seed repeats them. */
  readonly random: Random;
  /** Redis, MySQL and the servers, to break and to read. Only a scenario that runs alone may break them. */
  readonly stack: StackControls;
  /** Environment of the commands and programs of this scenario. */
  readonly env: Environment;
  /** Programs of this scenario, including killed ones. */
  readonly programs: Programs;
  /** Facts that were proved. */
  readonly observations: string[] = [];
  readonly #parts: ContextParts;
  readonly #sales: ScenarioSales;
  readonly #proxies: ProxiedServer[] = [];
  readonly #undos: (() => unknown)[] = [];
  #recovery: RecoveryWatch | null = null;

  constructor(parts: ContextParts) {
    const { scenario, seed, stack, env, main, logDir } = parts;
    this.#parts = parts;
    this.seed = seed;
    this.stack = stack;
    this.env = env;
    this.random = createRandom(`${seed} ${scenario.name}`);
    this.programs = new Programs(env, stack.servers.dir, main);
    const label = `${scenario.name.replace('/', '-')}-seed-${seed}`;
    this.#sales = new ScenarioSales(stack, logDir, label, scenario.mayFail ?? []);
  }

  /** Opens a sale of this scenario: ten units, one per buyer, unless `parts` says otherwise. Checked at the end. */
  async openSale(parts: SaleParts = {}): Promise<Sale> {
    const sale = await openSale(this.stack, parts);
    this.addSale(sale);
    return sale;
  }

  /** Adds a sale that was opened in another way to the checks at the end. */
  addSale(sale: Sale): void {
    this.#sales.add(sale);
  }

  /**
   * Returns a client of a sale of this scenario. It may act as many buyers and has its own op log.
   * @param apis used in turn; a function is called for each request
   */
  buyers(saleId: string, apis: readonly Program[] | (() => readonly Program[])): Buyers {
    const list = typeof apis === 'function' ? apis : () => apis;
    return this.#sales.buyers(saleId, () => list().map(({ url }) => url));
  }

  /** Starts a program, which ends with the scenario. */
  start(name: ProgramName, options: ProgramOptions = {}): Promise<Program> {
    return this.programs.start(name, options);
  }

  /** Starts a program that must not become ready. @returns whether it refused to start */
  async startRefused(name: ProgramName, options: ProgramOptions = {}): Promise<boolean> {
    return this.start(name, options).then(
      () => false,
      () => true,
    );
  }

  /**
   * Api, worker and keeper that must not be broken. Parallel scenarios share them; a scenario that runs alone gets its
   * own.
   */
  healthyPrograms(): Promise<HealthyPrograms> {
    return this.#parts.scenario.alone ? startHealthyPrograms(this.programs) : this.#parts.healthyPrograms();
  }

  /** Opens a proxy in front of a server, for programs with its `env`. If no byte passes, the scenario fails. */
  async proxy(name: ProxiedName): Promise<ProxiedServer> {
    const proxied = await ProxiedServer.open(name, this.stack.env);
    this.#proxies.push(proxied);
    return proxied;
  }

  /**
   * Registers work for the end of the scenario, after its programs have ended, even after a failure. The latest work runs
   * first.
   */
  atEnd(undo: () => unknown): void {
    this.#undos.unshift(undo);
  }

  /**
   * Waits for the proof that the fault happened and records it. A scenario without a proof fails.
   * @param what the fact, for the report: `the api died at after_deduct`
   */
  async observed(what: string, proof: () => boolean | Promise<boolean>, polls?: Polls): Promise<void> {
    await until(`the fault is observed: ${what}`, proof, polls);
    this.observations.push(what);
  }

  /**
   * For faults that depend on chance, such as which api is asked first: causes the fault again until it happens.
   * @param attempt receives its number, from 1, and returns whether the fault happened
   */
  async observedInTries(what: string, triesMax: number, attempt: (number: number) => Promise<boolean>): Promise<void> {
    let tries = 0;
    let happened = false;
    while (!happened && tries < triesMax) happened = await attempt(++tries);
    if (!happened) throw new Error(`the fault was not observed in ${triesMax} attempts: ${what}`);
    this.observations.push(tries === 1 ? what : `${what}, at try ${tries}`);
  }

  /** Waits until a program has reached a fail point that does not kill, and records this. */
  async reached(program: Program, point: string): Promise<void> {
    await this.observed(`the ${program.name} reached ${point}`, () => program.hasReached(point));
  }

  /** Waits until a program has been killed at its fail point, and records this. */
  async diedAt(program: Program, point: string): Promise<void> {
    const died = (): boolean => !program.running && program.hasReached(point);
    await this.observed(`the ${program.name} died at ${point}`, died);
  }

  /**
   * Must be called when the fault is over. From here on, measures the recovery of the sales that exist now. The last
   * call counts.
   * @param stack with the Redis that the programs now use, if another one took over
   */
  faultEnded(stack: StackControls = this.stack): void {
    this.#recovery?.stop();
    const sales = this.sales.map((sale) => ({ sale, accepted: this.#sales.acceptedOf(sale.saleId) }));
    this.#recovery = new RecoveryWatch(stack, sales);
  }

  /** An error of `check` counts as false. @throws if `check` is not true in time */
  until(what: string, check: () => boolean | Promise<boolean>, polls?: Polls): Promise<void> {
    return until(what, check, polls);
  }

  /**
   * Waits until a sale is at rest and asserts I1 to I8 on Redis, MySQL and all answers that its clients got.
   * @returns its figures, for further assertions
   */
  expectInvariants(saleId: string, restTimeoutMs = this.#healMaxMs): Promise<SaleFigures> {
    return this.#sales.expectInvariants(saleId, restTimeoutMs);
  }

  /** Calls `expectInvariants` and asserts some of the figures. @param what text for the error if they differ */
  async expectFigures(
    saleId: string,
    expected: Partial<SaleFigures>,
    what: string,
    restTimeoutMs = this.#healMaxMs,
  ): Promise<void> {
    expectFields(await this.expectInvariants(saleId, restTimeoutMs), expected, what);
  }

  /** Asserts that exactly these programs of the scenario are running, in the order of their start. */
  expectRunning(...names: readonly ProgramName[]): void {
    const running = this.programs.running.map(({ name }) => name);
    expectEqual(running, names, 'programs that run');
  }

  /** After `run`, asserts that the fault was observed and is over, and that every invariant holds. */
  async conclude(): Promise<void> {
    if (this.observations.length === 0) throw new Error('no fault was observed: the scenario proved nothing');
    const recovery = this.#watch;
    if (this.sales.length === 0 && !this.#parts.scenario.noSale) {
      throw new Error('the scenario has no sale: no invariant was checked');
    }
    await Promise.all(this.sales.map(({ saleId }) => this.expectInvariants(saleId)));
    await recovery.within(this.#healMaxMs);
    for (const { name, proxy } of this.#proxies) {
      if (proxy.bytes === 0) throw new Error(`not one byte went through the proxy before ${name}`);
    }
  }

  /** Time from the end of the fault until the last sale had recovered. Null if a sale never recovered. */
  get recoveryMs(): number | null {
    return this.#recovery?.recoveryMs ?? null;
  }

  /** Returns the figures of all sales, even after a failure. @throws if Redis or MySQL cannot be read */
  figures(): Promise<ScenarioFigures> {
    return this.#sales.figures();
  }

  get sales(): Sale[] {
    return this.#sales.all;
  }

  /** Returns the findings of the checker in every sale after a failure, as sentences that start with the invariant. */
  findings(): Promise<string[]> {
    return this.#sales.findings();
  }

  /** Ends loads, programs and proxies, and runs the registered clean-up. Never rejects. */
  async close(): Promise<void> {
    this.#recovery?.stop();
    await this.#sales.endLoads();
    await this.programs.close();
    await Promise.allSettled(this.#proxies.map(({ proxy }) => proxy.close()));
    for (const undo of this.#undos.splice(0)) await Promise.allSettled([(async () => undo())()]);
  }

  get #watch(): RecoveryWatch {
    if (this.#recovery === null) throw new Error('the scenario never called faultEnded');
    return this.#recovery;
  }

  get #healMaxMs(): number {
    return this.#parts.scenario.healMaxMs ?? HEAL_MAX_MS;
  }
}
