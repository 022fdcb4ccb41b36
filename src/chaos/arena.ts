import { join } from 'node:path';
import { systemClock } from '../app/system-clock.js';
import type { Environment } from '../config/load.js';
import type { Sale } from '../domain/sale.js';
import { checkSale, waitUntilAtRest, type SaleCheck, type SaleFigures } from '../reconcile/check-sale.js';
import { Buyers } from './harness/buyers.js';
import { openSale, type SaleParts } from './harness/open-sale.js';
import { RecoveryWatch } from './harness/recovery-watch.js';
import { Programs, type Program, type ProgramName, type ProgramOptions } from './harness/programs.js';
import type { StackHands } from './harness/stack-hands.js';
import { until } from './harness/until.js';
import { joinLogs, type JoinedLogs } from './join-logs.js';
import { ProxiedServer, type ProxiedName } from './proxied-server.js';
import { createRandom, type Random } from './random.js';
import { addFigures, nameOf, NO_FIGURES, type Row, type RowFigures } from './row.js';
import { startSurvivors, type Survivors } from './shared-programs.js';

/** Heal time is 30 s after the end of a fault; ten more for a machine that is shared. */
const HEAL_MAX_MS = 40_000;
/** What a row that has failed may still wait for, before its books are looked at. */
const FAILED_REST_TIMEOUT_MS = 5_000;
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

/** A sale that this row opened, and who bought from it. */
interface OwnSale {
  readonly sale: Sale;
  readonly buyers: Buyers[];
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
  readonly #sales = new Map<string, OwnSale>();
  readonly #proxies: ProxiedServer[] = [];
  readonly #undos: (() => unknown)[] = [];
  #recovery: RecoveryWatch | null = null;

  constructor(parts: ArenaParts) {
    this.#parts = parts;
    this.seed = parts.seed;
    this.stack = parts.stack;
    this.random = createRandom(`${parts.seed} ${nameOf(parts.row)}`);
    this.programs = new Programs(parts.env, parts.stack.servers.dir, parts.main);
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
    this.#sales.set(sale.saleId, { sale, buyers: [] });
  }

  /**
   * One client of a sale of this row, which may be many buyers; its op log is a file of its own.
   * @param apis whom it asks, in turn; a function is asked anew for each request
   */
  buyers(saleId: string, apis: readonly Program[] | (() => readonly Program[])): Buyers {
    const known = this.#sales.get(saleId);
    if (known === undefined) throw new Error(`sale ${saleId} is not of this row; open it with arena.openSale`);
    const list = typeof apis === 'function' ? apis : () => apis;
    const file = join(this.#parts.logDir, `${this.#label()}-sale-${saleId}-client-${known.buyers.length + 1}.jsonl`);
    const buyers = new Buyers(saleId, this.stack.env.JWT_SECRET, () => list().map(({ url }) => url), file);
    known.buyers.push(buyers);
    return buyers;
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
    const sales = [...this.#sales].map(([saleId, { sale }]) => {
      const heard = [...this.#heard(saleId).entries];
      return { sale, accepted: new Set(heard.filter(([, said]) => said === 'ok').map(([key]) => key)) };
    });
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
  async rest(saleId: string, restTimeoutMs = this.#healMaxMs): Promise<SaleFigures> {
    const atRest = await waitUntilAtRest(saleId, { ...this.stack.audit, clock: systemClock }, restTimeoutMs);
    const { figures, findings } = await this.#check(saleId);
    const told = `sale ${saleId}: ${JSON.stringify(figures)}`;
    if (findings.length > 0) {
      throw new Error(`${findings.map(({ invariant, detail }) => `${invariant} ${detail}`).join('; ')} in ${told}`);
    }
    if (!atRest) throw new Error(`not at rest after ${restTimeoutMs} ms, ${told}`);
    return figures;
  }

  /** What the runner asks after `run`: that the fault bit, is over, and left every promise kept. */
  async conclude(): Promise<void> {
    if (this.bites.length === 0) throw new Error('the fault did not bite: the row proved nothing');
    const recovery = this.#watch;
    if (this.#sales.size === 0 && this.#parts.row.books !== 'none') {
      throw new Error('the row has no sale: nothing was held against the invariants');
    }
    await Promise.all([...this.#sales.keys()].map((saleId) => this.rest(saleId)));
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
  async figures(): Promise<RowFigures> {
    let sum = NO_FIGURES;
    for (const [saleId, { buyers }] of this.#sales) {
      const { figures } = await this.#check(saleId);
      const accepted = buyers.reduce((count, { opLog }) => count + opLog.count('ok'), 0);
      const requests = buyers.reduce((count, { opLog }) => count + opLog.requests, 0);
      const { rows, failedRows, oversold, duplicates, lost } = figures;
      sum = addFigures(sum, { requests, accepted, orders: rows - failedRows, failedRows, oversold, duplicates, lost });
    }
    return sum;
  }

  /** Those of this row. */
  get sales(): Sale[] {
    return [...this.#sales.values()].map(({ sale }) => sale);
  }

  /**
   * What the checker says of every sale after the row has failed; ends its loads first, so that nothing is under way.
   * @returns sentences that begin with the invariant
   */
  async findings(): Promise<string[]> {
    await this.#endLoads();
    const ports = { ...this.stack.audit, clock: systemClock };
    const found = await Promise.all(
      [...this.#sales.keys()].map(async (saleId) => {
        await waitUntilAtRest(saleId, ports, FAILED_REST_TIMEOUT_MS);
        return (await this.#check(saleId)).findings;
      }),
    );
    return found.flat().map(({ invariant, detail }) => `${invariant} ${detail}`);
  }

  /** Ends loads, programs and proxies, and undoes the rest. Never rejects. */
  async close(): Promise<void> {
    this.#recovery?.stop();
    await this.#endLoads();
    await this.programs.close();
    await Promise.allSettled(this.#proxies.map(({ proxy }) => proxy.close()));
    for (const undo of this.#undos.splice(0)) await Promise.allSettled([(async () => undo())()]);
  }

  async #endLoads(): Promise<void> {
    const buyers = [...this.#sales.values()].flatMap((own) => own.buyers);
    await Promise.allSettled(buyers.map((client) => client.close()));
  }

  #check(saleId: string): Promise<SaleCheck> {
    const { entries, history } = this.#heard(saleId);
    return checkSale(saleId, this.stack.audit, entries, { history, mayFail: this.#parts.row.mayFail ?? [] });
  }

  #heard(saleId: string): JoinedLogs {
    return joinLogs(this.#sales.get(saleId)?.buyers.map(({ opLog }) => opLog) ?? []);
  }

  get #watch(): RecoveryWatch {
    if (this.#recovery === null) throw new Error('the row never said that its fault is over');
    return this.#recovery;
  }

  get #healMaxMs(): number {
    return this.#parts.row.healMaxMs ?? HEAL_MAX_MS;
  }

  #label(): string {
    return `${nameOf(this.#parts.row).replace('/', '-')}-seed-${this.seed}`;
  }
}
