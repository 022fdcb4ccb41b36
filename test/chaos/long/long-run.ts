import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { prepareBuyers, readRecords, userIdOf, type BuyerFile } from '../../../bench/load/buyers.js';
import type { Environment } from '../../../src/core/config/load.js';
import { createTokenSigner } from '../../../src/http/token.js';
import { openMysqlPool } from '../../../src/mysql/pool.js';
import { BUILT_MAIN, RunningCommand } from '../harness/commands.js';
import { ask, closeConnections, type Answer, type Ask } from '../harness/http.js';
import { Programs, readMetric, type Program } from '../harness/programs.js';
import { ACTOR, openSale } from '../harness/sales.js';
import type { StackControls } from '../harness/stack-controls.js';
import { found, until } from '../harness/wait.js';
import { createRandom, type Random } from '../random.js';
import { judgePrograms, type ProgramSample, type Verdict } from './flatness.js';
import { SoakPrograms, samplePrograms } from './samples.js';
import { checkSold, expiredUntilMs, isAtRest, opLogOf } from './books.js';
import { breakOnce, useApis, type Probe, type YearFault } from './faults.js';
import { CpuMeter } from './cpu.js';
import { YearLoad } from './buyers.js';
import { OUTCOME, type SoldSale } from './buyers-process.js';
import { Pace, readBacklog } from './pace.js';
import { planFaults, planSales, type PlannedFault, type PlannedSale, type YearSize } from './plan.js';
import { COLD_AFTER_MS, LIFE_AFTER_CLOSE_MS, SETTLED_AFTER_MS, YEAR_ENV } from './settings.js';
import { countAllRows, keysByKind, sampleStores, tooManyRows, type OpenSales, type StoreSample } from './sizes.js';

/** The least window of a sale: an outage must fit in, and a pause of all buyers. */
const WINDOW_MIN_MS = 150_000;
/** Of the time that its buyers take at the pace of the last seconds: the other sales have their part of it. */
const WINDOW_SHARE = 4;
/** From an import until its sales open: the command starts, the keeper warms and opens. */
const LEAD_MS = 8_000;
const WARM_BEFORE = '6s';
/** Buyers of sales that are imported and not yet sold: so many seconds of load, and these at least. */
const AHEAD_SECONDS = 30;
const AHEAD_MIN = 10_000;
/** The next import comes when so much of that is left: each is a command that has to start. */
const AHEAD_LOW = 0.6;
const IMPORTED_AT_ONCE = 80;
/** Purchases a second before any was counted. */
const PACE_FIRST = 1_000;
/** Buyers who wait at once, at most: they share batches, so many of them are cheaper than few. */
const CONNECTIONS = 768;
/** Of each api. */
const SALES_AT_ONCE = 2;
const PACE_EVERY_MS = 1_000;
const OPENED_LATE_MS = 60_000;
const TICK_MS = 300;
const PROGRESS_EVERY_MS = 5_000;
const SAMPLE_EVERY_MS = 15_000;
const CHECKED_AT_ONCE = 2;
/** From the last purchase until every order is in the archive; longer than a sale that was kept is left alone. */
const TAIL_MAX_MS = 15 * 60_000;
/** From the kill of Redis and all programs until every program is ready. */
const READY_AFTER_MAX_MS = 30_000;
/** Of Redis, against the start. */
const REDIS_GROWTH_MAX = 1.05;
const NO_SALES: OpenSales = { sales: 0, orders: 0 };
/** A year that sells for so long judges the memory of its programs; until then their young generations fill. */
const JUDGED_FROM_MS = 10 * 60_000;
const PROBLEMS_MAX = 50;
const COUNT_MAX_MS = 300_000;
const SPOT_CHECKS = 100;
/** The idempotency key of buyers of the sale that stays open. */
const LASTING_KEY = 'k1';
/** Units of the sale that stays open: a buyer at its begin and one after the restart, and one or a few per fault. */
const LASTING_STOCK = 1_000;
/** Of all sales, those that the restart must meet closed and not retired, and this number at most. */
const CLOSED_AT_RESTART = { share: 0.1, max: 200 };
/** A timer that fails so often in a row shows more than a server that was killed. */
const FAILURES_MAX = 60;

export interface YearOptions extends YearSize {
  readonly faults: number;
  readonly seed: number;
  /** After it no sale is imported any more, and the year is red. */
  readonly minutes: number;
  readonly stack: StackControls;
  readonly env: Environment;
  readonly signal: AbortSignal;
  readonly onProgress: (line: string, figures: object) => void;
}

/** A sale on its way through its life. */
interface LivingSale extends PlannedSale {
  readonly saleId: string;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  sold: SoldSale | null;
}

/** Milliseconds from the kill of Redis and every program. */
interface Restart {
  /** Closed and in Redis; and retired, or in the archive. */
  readonly closedSales: number;
  readonly retiredSales: number;
  readonly redisMs: number;
  /** Every program is ready. */
  readonly readyMs: number;
  /** A purchase of an open sale was accepted. */
  readonly acceptedMs: number;
}

/** What a year came to. */
export interface YearResult {
  readonly sales: number;
  readonly largeSales: number;
  readonly buyers: number;
  readonly requests: number;
  readonly accepted: number;
  readonly orders: Readonly<Record<string, number>>;
  readonly paid: number;
  readonly cancelled: number;
  readonly failed: Readonly<Record<string, number>>;
  readonly checked: number;
  readonly checkedWithRedis: number;
  readonly retired: number;
  readonly sellingMs: number;
  readonly tookMs: number;
  readonly faults: readonly YearFault[];
  readonly restart: Restart | null;
  readonly start: StoreSample;
  readonly peak: { readonly redisBytes: number; readonly rows: Readonly<Record<string, number>> };
  readonly end: StoreSample;
  readonly keysLeft: Readonly<Record<string, number>>;
  readonly rowsLeft: Readonly<Record<string, number>>;
  readonly verdicts: readonly Verdict[];
  /** CPU seconds by program and server. */
  readonly cpuSeconds: Readonly<Record<string, number>>;
  /** Warnings and errors of the programs: message → how often. */
  readonly logged: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
}

/** Orders of one state, and of one reason where they failed. */
interface OrderCount {
  readonly state: string;
  readonly reason: string | null;
  readonly orders: string;
}

/** An invariant is violated: the rest of the year would say nothing more. */
class Violated extends Error {}

/** Thousands of sales through their whole life on real servers. */
export class Year {
  readonly #options: YearOptions;
  readonly #random: Random;
  readonly #plan: PlannedSale[];
  readonly #programs: Programs;
  readonly #startedMs = performance.now();
  readonly #problems: string[] = [];
  readonly #waiting: LivingSale[] = [];
  readonly #selling = new Set<LivingSale>();
  readonly #sold: LivingSale[] = [];
  readonly #all: LivingSale[] = [];
  readonly #faults: YearFault[] = [];
  readonly #stores: StoreSample[] = [];
  readonly #samples: ProgramSample[] = [];
  #running!: SoakPrograms;
  #load!: YearLoad;
  #file!: BuyerFile;
  #records!: Buffer;
  #soldCount = 0;
  #checked = 0;
  #checkedWithRedis = 0;
  #secondLooks = 0;
  #importing = false;
  #breaking = false;
  #lastRetired = 0;
  #lastArchived = 0;
  readonly #cpu = new CpuMeter();
  readonly #flow = new Pace(CONNECTIONS);
  #late: readonly string[] = [];
  #import: RunningCommand | null = null;
  #violated = false;
  #lasting = '';
  /** Ends what is under way when the year is over, however it ends. */
  readonly #over = new AbortController();
  #fault: Promise<void> = Promise.resolve();
  /** When the last sale was sold, since the year began; null until then. */
  #soldAtMs: number | null = null;
  /** Purchases a second, as the machine has lately done them. */
  #pace = PACE_FIRST;

  constructor(options: YearOptions) {
    this.#options = options;
    this.#random = createRandom(`${options.seed} year`);
    this.#plan = planSales(options, this.#random);
    this.#programs = new Programs(options.env, options.stack.servers.dir, BUILT_MAIN);
  }

  async run(): Promise<YearResult> {
    const { stack, env } = this.#options;
    const buyers = Math.max(...this.#plan.map((sale) => sale.buyers));
    this.#file = await prepareBuyers(join(stack.servers.dir, 'load'), {
      secret: String(env.JWT_SECRET),
      count: buyers,
      signal: this.#options.signal,
      progress: () => undefined,
    });
    this.#records = readRecords({ ...this.#file, first: 0, count: buyers });
    const context = { start: this.#programs.start.bind(this.#programs) };
    try {
      this.#running = await SoakPrograms.start(context, YEAR_ENV);
      this.#load = await YearLoad.start({ ...this.#file, count: buyers }, CONNECTIONS, SALES_AT_ONCE);
      useApis(this.#load, this.#running);
      return await this.#live();
    } finally {
      this.#over.abort();
      await this.#fault; // or it starts a server again that nobody stops
      this.#import?.signal('SIGKILL');
      await this.#import?.end;
      await this.#load?.stop();
      closeConnections();
      await this.#programs.close();
    }
  }

  async #live(): Promise<YearResult> {
    const { stack, sales } = this.#options;
    await this.#openLasting();
    const start = await sampleStores(stack);
    this.#stores.push(start);
    const faults = planFaults(this.#options.faults, sales, createRandom(`${this.#options.seed} faults of a year`));
    const timers = [
      this.#every('progress', PROGRESS_EVERY_MS, () => this.#progress()),
      this.#every('sizes', SAMPLE_EVERY_MS, () => this.#sample()),
      this.#every('the pace', PACE_EVERY_MS, () => this.#followPace()),
      this.#every('the check of books', 1_000, () => this.#check()),
    ];
    const stopTimers = async (): Promise<unknown> => Promise.all(timers.map((timer) => timer.stop()));
    let sellingMs = 0;
    let restart: Restart | null = null;
    let judged: readonly ProgramSample[] = [];
    try {
      await this.#sellAll(faults);
      sellingMs = this.#elapsedMs();
      this.#soldAtMs = sellingMs;
      judged = [...this.#samples];
      await this.#until('every sale that was begun is sold', () => this.#selling.size === 0);
      await this.#until('every sale is closed', () => this.#areClosed());
      restart = await this.#restart();
      await this.#endLasting();
      await this.#until('every sale is checked', () => this.#checked + this.#missed.size === this.#all.length);
      await this.#until('the orders of every sale are in the archive', () => this.#areArchived());
      await this.#until('Redis has forgotten every sale', () => this.#areForgotten());
      await this.#until('the outbox is empty', async () => (await sampleStores(stack)).rows.outbox === 0);
      await this.#spotCheck();
    } catch (error) {
      this.#options.signal.throwIfAborted();
      if (!(error instanceof Violated)) this.#note(sentenceOf(error));
      sellingMs ||= this.#elapsedMs();
    } finally {
      await stopTimers();
    }
    return this.#conclude({ start, sellingMs, restart, verdicts: judgePrograms(judged) });
  }

  /** Imports and sells one sale after the other, and breaks things in between. */
  async #sellAll(faults: readonly PlannedFault[]): Promise<void> {
    const { sales, minutes, signal } = this.#options;
    const deadlineMs = performance.now() + minutes * 60_000;
    while (this.#soldCount < this.#plan.length) {
      this.#assertSound();
      signal.throwIfAborted();
      if (performance.now() > deadlineMs) {
        this.#note(`only ${this.#soldCount} of ${sales} sales were sold in ${minutes} minutes`);
        return;
      }
      void this.#importMore();
      await this.#handOver().catch(() => undefined); // MySQL is away for a moment
      const fault = faults[this.#faults.length];
      if (fault !== undefined && !this.#breaking && this.#soldCount >= fault.afterSales) {
        this.#fault = this.#break(fault.kind);
      }
      await sleep(TICK_MS);
    }
    await this.#until('the last fault is over', () => !this.#breaking);
    // a small year is sold before they had their turn
    while (this.#faults.length < faults.length) {
      const fault = faults[this.#faults.length] as PlannedFault;
      this.#fault = this.#break(fault.kind);
      await this.#until(`${fault.kind} is over`, () => !this.#breaking);
    }
  }

  /** Waits for the end of something, and no longer once an invariant is violated or a person interrupts. */
  async #until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const over = new AbortController();
    const watch = (async () => {
      while (!over.signal.aborted) {
        this.#assertSound();
        this.#options.signal.throwIfAborted();
        await sleep(TICK_MS);
      }
    })();
    const waiting = until(what, () => over.signal.aborted || isSo(), { everyMs: 1_000, grantedMs: TAIL_MAX_MS });
    waiting.catch(() => undefined);
    try {
      await Promise.race([waiting, watch]);
    } finally {
      over.abort();
      await watch.catch(() => undefined);
    }
  }

  /** @throws Violated */
  #assertSound(): void {
    for (const { name, logFile } of this.#running.endedAlone()) {
      this.#violate(`the ${name} ended, and no fault had killed it; its log is ${logFile}`);
    }
    if (!this.#load.running) this.#violate('the process of the buyers ended');
    if (this.#violated) throw new Violated();
  }

  /** A promise is broken: nothing that comes later could mend it. */
  #violate(problem: string): void {
    this.#note(problem);
    this.#violated = true;
  }

  #elapsedMs(): number {
    return Math.round(performance.now() - this.#startedMs);
  }

  #note(problem: string): void {
    if (this.#problems.length >= PROBLEMS_MAX || this.#problems.includes(problem)) return;
    this.#problems.push(problem);
    const atMs = this.#elapsedMs();
    const at = String(Math.round(atMs / 1000)).padStart(5);
    this.#options.onProgress(`${at} s  PROBLEM: ${problem}`, { result: 'problem', atMs, problem });
  }

  /** Imports the next sales while few wait, with the command that people use. */
  async #importMore(): Promise<void> {
    const pace = Math.max(this.#pace, 1);
    let ahead = [...this.#waiting, ...this.#selling].reduce((sum, { buyers }) => sum + buyers, 0);
    const aheadMax = Math.max(AHEAD_MIN, AHEAD_SECONDS * pace);
    if (this.#importing || ahead >= aheadMax * AHEAD_LOW || this.#all.length >= this.#plan.length) return;
    this.#importing = true;
    try {
      const some: PlannedSale[] = [];
      for (const sale of this.#plan.slice(this.#all.length, this.#all.length + IMPORTED_AT_ONCE)) {
        if (ahead >= aheadMax || !this.#mayImport(sale)) break;
        some.push(sale);
        ahead += sale.buyers;
      }
      if (some.length === 0) return;
      const opensAtMs = Date.now() + LEAD_MS;
      const made = some.map((sale) => ({
        ...sale,
        opensAtMs,
        closesAtMs: opensAtMs + WINDOW_MIN_MS + Math.round((1000 * WINDOW_SHARE * sale.buyers) / pace),
      }));
      const file = join(this.#options.stack.servers.dir, 'load', 'sales.json');
      mkdirSync(join(this.#options.stack.servers.dir, 'load'), { recursive: true });
      writeFileSync(
        file,
        JSON.stringify(
          made.map(({ sku, stock, buckets, opensAtMs, closesAtMs, large }) => ({
            sku,
            title: large ? 'A large sale of the year' : 'A sale of the year',
            priceCents: 1999,
            stock,
            limitPerBuyer: 1,
            buckets,
            opensAt: new Date(opensAtMs).toISOString(),
            closesAt: new Date(closesAtMs).toISOString(),
            warmBefore: WARM_BEFORE,
          })),
        ),
      );
      this.#import = new RunningCommand(['sale', 'import', file, '--json'], this.#options.env);
      const { code, lines, stderr } = await this.#import.end;
      let ids = new Map(lines.map(({ sku, saleId }) => [String(sku), String(saleId)]));
      if (code !== 0) {
        // a server was away: all of them are there, or none
        const skus = made.map(({ sku }) => sku);
        const rows = await found('MySQL answers', () =>
          this.#options.stack.mysql.query<{ id: string; sku: string }>('SELECT id, sku FROM sales WHERE sku IN (?)', [
            skus,
          ]),
        );
        if (rows.length !== 0 && rows.length !== made.length) {
          this.#note(`an import that failed left ${rows.length} of ${made.length} sales`);
        }
        if (this.#faults.length === 0 && !this.#breaking) this.#note(`an import failed: ${stderr.slice(0, 300)}`);
        ids = new Map(rows.map(({ id, sku }) => [sku, String(id)]));
      }
      for (const sale of made) {
        const saleId = ids.get(sale.sku);
        if (saleId === undefined) continue;
        const living: LivingSale = { ...sale, saleId, sold: null };
        this.#all.push(living);
        this.#waiting.push(living);
      }
    } catch (error) {
      this.#note(`an import failed: ${String(error)}`);
    } finally {
      this.#importing = false;
    }
  }

  /** On a slow machine a large sale is open for longer than the last ones together take from their opening to their retirement. */
  #mayImport({ last }: PlannedSale): boolean {
    const firstEndsMs = Date.now() + LEAD_MS + WINDOW_MIN_MS;
    return !last || this.#all.every((sale) => sale.last || sale.closesAtMs <= firstEndsMs);
  }

  /** Sales that the keeper has opened get their buyers. */
  async #handOver(): Promise<void> {
    const nowMs = Date.now();
    const due = this.#waiting.filter(({ opensAtMs }) => opensAtMs <= nowMs);
    if (due.length === 0) return;
    const rows = await this.#options.stack.mysql.query<{ id: string; state: string }>(
      'SELECT id, state FROM sales WHERE id IN (?)',
      [due.map(({ saleId }) => saleId)],
    );
    const stateOf = new Map(rows.map(({ id, state }) => [String(id), state]));
    for (const sale of due) {
      const state = stateOf.get(sale.saleId);
      const missed = state !== 'open' && nowMs > sale.closesAtMs; // no keeper ran in its window
      if (state === 'closed' || missed) {
        this.#note(`sale ${sale.saleId} was ${missed ? 'missed' : 'closed before any buyer came'}`);
        sale.sold = { kind: 'sold', saleId: sale.saleId, outcomes: new Uint8Array(0), moves: [] };
        this.#remove(sale);
        this.#soldCount++;
        if (missed) this.#missed.add(sale.saleId);
        else this.#sold.push(sale);
      } else if (state === 'open') {
        this.#remove(sale);
        void this.#sell(sale);
      } else if (nowMs > sale.opensAtMs + OPENED_LATE_MS && !this.#breaking) {
        this.#note(`sale ${sale.saleId} is not open ${OPENED_LATE_MS / 1000} s after its time`);
      }
    }
  }

  #remove(sale: LivingSale): void {
    this.#waiting.splice(this.#waiting.indexOf(sale), 1);
  }

  async #sell(sale: LivingSale): Promise<void> {
    this.#selling.add(sale);
    const { saleId, buyers, closesAtMs } = sale;
    sale.sold = await this.#load.sell({ saleId, buyers, closesAtMs });
    this.#selling.delete(sale);
    this.#soldCount++;
    this.#sold.push(sale);
  }

  /** Runs again and again, one at a time; what it throws is left to the next one, unless it always throws. */
  #every(what: string, ms: number, work: () => Promise<void>): { stop(): Promise<void> } {
    const stopping = new AbortController();
    let failures = 0;
    const once = async (): Promise<void> => {
      try {
        await work();
        failures = 0;
      } catch (error) {
        if (++failures === FAILURES_MAX) this.#note(`${what} failed ${failures} times in a row: ${sentenceOf(error)}`);
      }
    };
    const done = (async () => {
      while (!stopping.signal.aborted) {
        await sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);
        if (!stopping.signal.aborted) await once();
      }
    })();
    return {
      stop: async () => {
        stopping.abort();
        await done;
      },
    };
  }

  /** Gives buyers as many connections as workers and keeper can follow. */
  async #followPace(): Promise<void> {
    const backlog = await readBacklog(this.#options.stack, [...this.#selling]);
    this.#late = this.#flow.follow(backlog);
    this.#load.pace(this.#flow.open);
  }

  async #break(kind: YearFault['kind']): Promise<void> {
    this.#breaking = true;
    const atMs = this.#elapsedMs();
    const { stack } = this.#options;
    const signal = AbortSignal.any([this.#options.signal, this.#over.signal]);
    const world = { stack, signal, programs: this.#running, load: this.#load, probe: this.#probe() };
    try {
      const fault: YearFault = { ...(await breakOnce(world, kind)), atMs };
      this.#faults.push(fault);
      this.#options.onProgress(faultLine(fault), { result: 'fault', ...fault });
    } catch (error) {
      if (signal.aborted) return;
      this.#violate(`${kind} at ${Math.round(atMs / 1000)} s did not heal: ${sentenceOf(error)}`);
      this.#faults.push({ kind, atMs, acceptedMs: Number.NaN, orderedMs: Number.NaN, rebuilt: null });
    }
    this.#breaking = false;
  }

  /** Checks sold sales once nothing of them moves, and before they are retired if there is time. */
  async #check(): Promise<void> {
    const { stack } = this.#options;
    const expiredMs = await expiredUntilMs(stack);
    const ready = this.#sold.filter(({ closesAtMs }) => {
      const settledMs = closesAtMs + SETTLED_AFTER_MS;
      return Date.now() > settledMs && expiredMs > settledMs;
    });
    const lanes = Array.from({ length: CHECKED_AT_ONCE }, async () => {
      for (let sale = ready.shift(); sale !== undefined; sale = ready.shift()) await this.#checkOne(sale);
    });
    await Promise.all(lanes);
  }

  /** Drafts whose window is over. */
  readonly #missed = new Set<string>();
  readonly #suspects = new Map<string, number>();

  async #checkOne(sale: LivingSale): Promise<void> {
    const { stack } = this.#options;
    const { sold, saleId } = sale;
    if (sold === null || !(await isAtRest(stack, saleId))) return;
    const suspectMs = this.#suspects.get(saleId);
    if (suspectMs !== undefined && performance.now() < suspectMs) return;
    const opLog = opLogOf(sold.outcomes, this.#records, this.#file);
    const { problems, withRedis } = await checkSold(stack, sold, opLog);
    if (problems.length > 0 && suspectMs === undefined) {
      // Redis may have been restarted, or the sale retired, while it was read
      this.#secondLooks++;
      this.#suspects.set(saleId, performance.now() + 10_000);
      return;
    }
    for (const problem of problems.slice(0, 5)) this.#violate(problem);
    this.#sold.splice(this.#sold.indexOf(sale), 1);
    this.#checked++;
    if (withRedis) this.#checkedWithRedis++;
    // only what spot checks need
    sale.sold = { ...sold, outcomes: sold.outcomes.slice(0, 16), moves: [] };
  }

  async #areClosed(): Promise<boolean> {
    const open = this.#all.length - this.#missed.size - (await this.#salesWhere("state = 'closed'"));
    return open <= 0;
  }

  async #areArchived(): Promise<boolean> {
    return (await this.#salesWhere("state <> 'draft' AND retirement <> 'archived'")) === 0;
  }

  async #areForgotten(): Promise<boolean> {
    return Object.keys(await keysByKind(this.#options.stack)).every((kind) => !kind.startsWith('sk:{N'));
  }

  async #salesWhere(condition: string): Promise<number> {
    const [row] = await this.#options.stack.mysql.query<{ sales: string }>(
      `SELECT COUNT(*) AS sales FROM sales WHERE ${condition}`,
    );
    return Number(row?.sales);
  }

  /** A sale that is open all year, and sells a little at its begin and after the restart. */
  async #openLasting(): Promise<void> {
    const { saleId } = await openSale(this.#options.stack, {
      stock: LASTING_STOCK,
      closesAtMs: Date.now() + 24 * 3_600_000,
    });
    this.#lasting = saleId;
    await until('a first purchase is accepted', () => this.#buyOnce('first'), { everyMs: 200 });
  }

  async #endLasting(): Promise<void> {
    const isClosed = async (): Promise<boolean> =>
      (await this.#options.stack.admin.close(this.#lasting, ACTOR)).outcome === 'done';
    await until('the lasting sale is closed', isClosed, { everyMs: 500 });
  }

  async #buyOnce(userId: string): Promise<boolean> {
    const body = { method: 'POST', headers: { 'Idempotency-Key': LASTING_KEY }, body: { quantity: 1 } } as const;
    const answer = await this.#askLasting(userId, '', body);
    return answer !== null && answer.status < 300;
  }

  #probe(): Probe {
    const atMs = this.#elapsedMs();
    let tries = 0;
    return {
      buy: async () => {
        const buyer = `probe-${atMs}-${tries++}`;
        return (await this.#buyOnce(buyer)) ? buyer : null;
      },
      isOrdered: async (buyer) => (await this.#askLasting(buyer, `/${LASTING_KEY}`))?.json.status === 'ordered',
    };
  }

  /** A request of a buyer of the lasting sale; null while there is no api. */
  async #askLasting(userId: string, path: string, request: Ask = {}): Promise<Answer | null> {
    const [api] = this.#running.apis();
    if (api === undefined) return null;
    const token = createTokenSigner(String(this.#options.env.JWT_SECRET))({ userId, roles: [], ttlMs: 3_600_000 });
    return ask(`${api.url}/v1/sales/${this.#lasting}/purchases${path}`, { ...request, token, timeoutMs: 5_000 });
  }

  /** Redis and every program die at once and start again, while no sale but the lasting one is open. */
  async #restart(): Promise<Restart> {
    const { stack } = this.#options;
    const closedSales = await this.#salesWhere("state = 'closed' AND retirement IN ('none', 'begun')");
    const retiredSales = await this.#salesWhere("state = 'closed' AND retirement NOT IN ('none', 'begun')");
    const redis = stack.servers.server('redis');
    const startedMs = performance.now();
    const since = (): number => Math.round(performance.now() - startedMs);
    await Promise.all([redis.stop({ signal: 'SIGKILL' }), ...this.#programs.running.map((program) => program.crash())]);
    const redisUp = (async () => {
      await redis.start();
      await redis.waitReady();
      return since();
    })();
    // a supervisor starts a program again that gave up because Redis was not there yet
    const context = {
      start: (...args: Parameters<Programs['start']>): Promise<Program> =>
        found(`the ${args[0]} is ready`, () => this.#programs.start(...args)),
    };
    this.#running = await SoakPrograms.start(context, YEAR_ENV);
    const redisMs = await redisUp;
    const areReady = async (): Promise<boolean> =>
      (await Promise.all(this.#running.running().map(({ program }) => ask(`${program.operatorsUrl}/readyz`)))).every(
        ({ status }) => status === 200,
      );
    await until('every program is ready', areReady, { everyMs: 100 });
    const readyMs = since();
    useApis(this.#load, this.#running);
    await until('a purchase is accepted', () => this.#buyOnce('after-the-restart'), { everyMs: 100 });
    return { closedSales, retiredSales, redisMs, readyMs, acceptedMs: since() };
  }

  /** Purchases of retired sales are still answered, and the same key again is the same purchase. */
  async #spotCheck(): Promise<void> {
    const [api] = this.#running.apis();
    if (api === undefined) return;
    const sign = createTokenSigner(String(this.#options.env.JWT_SECRET));
    const sales = this.#random.shuffled(this.#all).slice(0, SPOT_CHECKS);
    for (const { saleId, sold } of sales) {
      const buyer = sold?.outcomes.indexOf(OUTCOME.ok) ?? -1;
      if (buyer === -1) continue;
      const text = this.#records.toString(
        'latin1',
        buyer * this.#file.recordBytes,
        (buyer + 1) * this.#file.recordBytes,
      );
      const key = /Idempotency-Key: (\S+)/.exec(text)?.[1] ?? '';
      const token = sign({ userId: userIdOf(buyer), roles: [], ttlMs: 3_600_000 });
      const path = `${api.url}/v1/sales/${saleId}/purchases`;
      const status = await ask(`${path}/${key}`, { token });
      if (status.status !== 200 || status.json.status !== 'ordered') {
        this.#note(`sale ${saleId}, retired: its purchase ${key} reads ${status.status} ${status.text.slice(0, 120)}`);
        continue;
      }
      const order = await ask(`${api.url}/v1/orders/${String(status.json.orderId)}`, { token });
      if (order.status !== 200)
        this.#note(`sale ${saleId}, retired: order ${String(status.json.orderId)} reads ${order.status}`);
      const headers = { 'Idempotency-Key': key };
      const again = await ask(path, { method: 'POST', token, headers, body: { quantity: 1 } });
      if (again.status !== 200 || again.json.orderId !== status.json.orderId) {
        this.#note(`sale ${saleId}, retired: the same key got ${again.status} ${again.text.slice(0, 120)}`);
      }
      const other = await ask(path, {
        method: 'POST',
        token,
        headers: { 'Idempotency-Key': 'x1' },
        body: { quantity: 1 },
      });
      if (other.json.code !== 'closed')
        this.#note(`sale ${saleId}, retired: a new key got ${other.status} ${other.text.slice(0, 120)}`);
    }
  }

  /** Those that may have rows in hot tables, with the one that is open all year. */
  #openSales(): OpenSales {
    const nowMs = Date.now();
    const open = this.#all.filter(({ closesAtMs }) => nowMs < closesAtMs + COLD_AFTER_MS);
    return { sales: open.length + 1, orders: open.reduce((sum, { buyers }) => sum + buyers, LASTING_STOCK) };
  }

  async #sample(): Promise<void> {
    this.#samples.push(...(await samplePrograms(this.#running)));
    const open = this.#openSales();
    const stores = await sampleStores(this.#options.stack);
    this.#stores.push(stores);
    for (const problem of tooManyRows(stores.rows, open)) this.#violate(problem);
    this.#lastRetired = await this.#salesWhere("retirement NOT IN ('none', 'begun')");
    this.#lastArchived = await this.#salesWhere("retirement = 'archived'");
  }

  /** About how long the rest takes: the orders that are left, at the pace of all so far, then the life of the last sale. */
  #leftMs(accepted: number): number | null {
    const tailMs = WINDOW_MIN_MS + LIFE_AFTER_CLOSE_MS;
    if (this.#soldAtMs !== null) return Math.max(0, this.#soldAtMs + tailMs - this.#elapsedMs());
    if (accepted === 0) return null;
    const wanted = this.#plan.reduce((sum, { stock }) => sum + stock, 0);
    return ((wanted - accepted) * this.#elapsedMs()) / accepted + tailMs;
  }

  #lastProgress = { atMs: 0, accepted: 0 };

  #progress(): Promise<void> {
    const { accepted, requests, unanswered, wrong } = this.#load.stats;
    const atMs = this.#elapsedMs();
    const rate = Math.round(((accepted - this.#lastProgress.accepted) * 1000) / (atMs - this.#lastProgress.atMs));
    this.#lastProgress = { atMs, accepted };
    if (!this.#breaking && this.#selling.size > 0)
      this.#pace = Math.round(Math.max((this.#pace + rate) / 2, this.#pace * 0.9));
    const store = this.#stores.at(-1);
    const rss = new Map(
      this.#samples.slice(-5).map(({ program, rssBytes }) => [program, Math.round(rssBytes / 2 ** 20)]),
    );
    const figures = {
      sold: this.#soldCount,
      waiting: this.#waiting.length,
      selling: this.#selling.size,
      toCheck: this.#sold.length,
      checked: this.#checked,
      retired: this.#lastRetired,
      archived: this.#lastArchived,
      accepted,
      perSecond: rate,
      requests,
      unanswered,
      redisMiB: Math.round((store?.redisBytes ?? 0) / 2 ** 20),
      redisKeys: store?.redisKeys,
      rows: store?.rows,
      rss: Object.fromEntries(rss),
      problems: this.#problems.length,
      secondLooks: this.#secondLooks,
      connections: this.#flow.open,
      late: this.#late,
      leftMs: this.#leftMs(accepted),
      cpu: this.#cpu.totals(),
    };
    this.#cpu.read(this.#options.stack, this.#running, this.#load);
    for (const sentence of wrong) this.#note(sentence);
    this.#options.onProgress(progressLine(atMs, this.#plan.length, figures), { result: 'progress', atMs, ...figures });
    return Promise.resolve();
  }

  /** As soon as Redis is as small as at the start; if it does not become so, the last look. */
  async #sampleAtRest(start: StoreSample): Promise<StoreSample> {
    let end = await sampleStores(this.#options.stack);
    const isSmall = async (): Promise<boolean> => {
      if (end.redisBytes <= start.redisBytes * REDIS_GROWTH_MAX) return true;
      end = await sampleStores(this.#options.stack);
      return false;
    };
    await until('Redis is as small as at the start', isSmall, { everyMs: 1_000 }).catch(() => undefined);
    return end;
  }

  async #conclude(parts: {
    readonly start: StoreSample;
    readonly sellingMs: number;
    readonly restart: Restart | null;
    readonly verdicts: readonly Verdict[];
  }): Promise<YearResult> {
    const { stack } = this.#options;
    const { start, restart, verdicts } = parts;
    // a year that ended early is not at rest, and says so at once
    const end = restart === null ? await sampleStores(stack) : await this.#sampleAtRest(start);
    if (restart !== null && !this.#violated) {
      for (const problem of tooManyRows(end.rows, NO_SALES)) this.#note(`at the end ${problem}`);
    }
    const keysLeft = await keysByKind(stack);
    const { rowsLeft, states } = await this.#countAll();
    const { requests, accepted, paid, cancelled } = this.#load.stats;
    const orders: Record<string, number> = {};
    const failed: Record<string, number> = {};
    for (const row of states) {
      orders[row.state] = (orders[row.state] ?? 0) + Number(row.orders);
      if (row.reason !== null) failed[row.reason] = (failed[row.reason] ?? 0) + Number(row.orders);
    }
    if (accepted < this.#options.orders)
      this.#note(`only ${accepted} of ${this.#options.orders} purchases were accepted`);
    const overdue = await Promise.all(
      this.#running
        .running()
        .map(({ program }) => (program.name === 'keeper' ? readMetric(program, 'seckill_overdue') : 0)),
    );
    const waiting = overdue.reduce((sum, value) => sum + value, 0);
    if (waiting > 0) this.#note(`${waiting} things are overdue at the end`);
    for (const { what, first, last, unit, flat } of verdicts) {
      if (!flat && parts.sellingMs >= JUDGED_FROM_MS) this.#note(`${what} is not flat: ${first} → ${last} (${unit})`);
    }
    if (end.redisBytes > start.redisBytes * REDIS_GROWTH_MAX) {
      this.#note(`Redis uses ${end.redisBytes} bytes at the end, ${start.redisBytes} at the start`);
    }
    if (restart !== null) this.#judgeRestart(restart);
    if (restart === null && this.#problems.length === 0) this.#note('Redis and the programs were not restarted');
    const peakRows: Record<string, number> = {};
    for (const { rows } of this.#stores) {
      for (const [table, count] of Object.entries(rows)) peakRows[table] = Math.max(peakRows[table] ?? 0, count ?? 0);
    }
    return {
      sales: this.#all.length,
      largeSales: this.#all.filter(({ large }) => large).length,
      buyers: this.#all.reduce((sum, sale) => sum + sale.buyers, 0),
      requests,
      accepted,
      orders,
      paid,
      cancelled,
      failed,
      checked: this.#checked,
      checkedWithRedis: this.#checkedWithRedis,
      retired: this.#lastRetired,
      sellingMs: parts.sellingMs,
      tookMs: this.#elapsedMs(),
      faults: this.#faults,
      restart,
      start,
      peak: { redisBytes: Math.max(...this.#stores.map(({ redisBytes }) => redisBytes)), rows: peakRows },
      end,
      keysLeft,
      rowsLeft,
      verdicts,
      cpuSeconds: this.#cpu.totals(),
      logged: this.#logged(),
      problems: this.#problems,
    };
  }

  /** Millions of rows take longer than a statement of the harness may. */
  async #countAll(): Promise<{ rowsLeft: Record<string, number>; states: readonly OrderCount[] }> {
    const { MYSQL_URL } = this.#options.env;
    const mysql = openMysqlPool({ url: String(MYSQL_URL), poolMax: 1, queryTimeoutMs: COUNT_MAX_MS });
    try {
      const states = await mysql.query<OrderCount>(
        'SELECT state, reason, COUNT(*) AS orders FROM' +
          ' (SELECT state, reason FROM orders UNION ALL SELECT state, reason FROM orders_archive) AS both_tables' +
          ' GROUP BY state, reason',
      );
      return { rowsLeft: await countAllRows({ mysql }), states };
    } finally {
      await mysql.close();
    }
  }

  #judgeRestart({ readyMs, closedSales }: Restart): void {
    if (readyMs > READY_AFTER_MAX_MS) this.#note(`after the restart the programs were ready in ${readyMs} ms`);
    const wanted = Math.min(CLOSED_AT_RESTART.max, Math.floor(this.#plan.length * CLOSED_AT_RESTART.share));
    if (closedSales < wanted) {
      this.#note(`the restart met ${closedSales} sales that were closed and not retired, not ${wanted}`);
    }
  }

  /** Warnings and errors in the logs of all programs. */
  #logged(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { name, logFile } of this.#programs.all) {
      for (const line of readFileSync(logFile, 'utf8').split('\n')) {
        const text = /"msg":"([^"]*)"/.exec(line)?.[1];
        if (text === undefined) continue;
        const key = `${name}: ${text.replace(/\d+/g, 'N').slice(0, 100)}`;
        counts[key] = (counts[key] ?? 0) + 1;
      }
    }
    return counts;
  }
}

const sentenceOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const seconds = (ms: number): string => (ms / 1000).toFixed(1);

const faultLine = ({ kind, atMs, acceptedMs, orderedMs, rebuilt }: YearFault): string =>
  `${String(Math.round(atMs / 1000)).padStart(5)} s  ${kind}: accepted again after ${seconds(acceptedMs)} s, orders after ` +
  `${seconds(orderedMs)} s${rebuilt === null ? '' : `, ${rebuilt.sales} open sales rebuilt after ${seconds(rebuilt.ms)} s`}`;

function progressLine(atMs: number, sales: number, figures: Record<string, unknown>): string {
  const { sold, waiting, selling, toCheck, checked, archived, accepted, perSecond, redisMiB, rows, rss, problems } =
    figures;
  const { connections, late, leftMs } = figures;
  const { orders = 0, outbox = 0 } = (rows ?? {}) as Record<string, number>;
  const memory = Object.entries(rss as Record<string, number>).map(
    ([name, mib]) => `${name.replace(/ \d+/, '')} ${mib}`,
  );
  const waits = late as readonly string[];
  const left = leftMs === null ? 'nothing sold yet' : `about ${Math.ceil(Number(leftMs) / 60_000)} min left`;
  return (
    `${String(Math.round(atMs / 1000)).padStart(5)} s  ${left}; ` +
    `sold ${sold}/${sales} (${selling} selling, ${waiting} ahead, ${toCheck} to check), checked ${checked}, archived ${archived}` +
    `; orders ${Number(accepted).toLocaleString('en')} (+${perSecond}/s, ${connections} at once` +
    `${waits.length === 0 ? '' : `, late: ${waits.join(' ')}`}); Redis ${redisMiB} MiB, hot rows: orders ${orders}, outbox ${outbox}` +
    `; MiB: ${memory.join(' ')}${problems === 0 ? '' : `; ${problems} PROBLEMS`}`
  );
}
