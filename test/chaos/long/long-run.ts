import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { idempotencyKeyAt, prepareBuyers, readRecords, userIdOf, type BuyerFile } from '../../../bench/load/buyers.js';
import type { Environment } from '../../../src/core/config/load.js';
import { openMysqlPool } from '../../../src/mysql/pool.js';
import { BUILT_MAIN, RunningCommand } from '../harness/commands.js';
import { ask, closeConnections } from '../harness/http.js';
import { Programs, readMetric, type Program } from '../harness/programs.js';
import type { StackControls } from '../harness/stack-controls.js';
import { ProxiedServer, type ProxiedName } from '../harness/tcp-proxy.js';
import { found, until } from '../harness/wait.js';
import { createRandom, type Random } from '../random.js';
import { checkSold, expiredUntilMs, isAtRest, opLogOf } from './books.js';
import { Buyers } from './buyers.js';
import { OUTCOME, type SoldSale } from './buyers-process.js';
import { CpuMeter } from './cpu.js';
import { breakOnce, FaultDraw, useApis, type Fault, type FaultReport } from './faults.js';
import { judgePrograms, judgeServers, type ProgramSample, type Verdict } from './flatness.js';
import { expectNoConnections, LASTING_STOCK, LastingSale } from './lasting-sale.js';
import { Pace, readBacklog } from './pace.js';
import type { PlannedSale, RunPlan } from './plan.js';
import { faultSentence, progressSentence } from './report.js';
import { LongPrograms, openOf, samplePrograms } from './samples.js';
import { COLD_AFTER_MS, LIFE_AFTER_CLOSE_MS, RUN_ENV, SETTLED_AFTER_MS } from './settings.js';
import { countAllRows, keysByKind, sampleStores, tooManyRows, type OpenSales, type StoreSample } from './sizes.js';

/** The shortest window of a sale, with room for an outage and a pause of all buyers. */
const WINDOW_MIN_MS = 150_000;
/** Window of a sale as a multiple of its selling time at the current pace, because other sales sell too. */
const WINDOW_SHARE = 4;
/** Time between an import and the opening, for the start of the command and for warming. */
const LEAD_MS = 8_000;
const WARM_BEFORE = '6s';
/** Buyers of sales that are imported and not yet sold, in seconds of load. */
const AHEAD_SECONDS = 30;
/** Share of these buyers at which the next import starts. Few imports start few commands. */
const AHEAD_LOW = 0.6;
const IMPORTED_AT_ONCE = 80;
/** Sales that one api sells at the same time. */
const SALES_AT_ONCE = 2;
const PACE_EVERY_MS = 1_000;
const OPENED_LATE_MS = 60_000;
const TICK_MS = 300;
const PROGRESS_EVERY_MS = 5_000;
const SAMPLE_EVERY_MS = 15_000;
const INVALID_EVERY_MS = 1_000;
const CHECKED_AT_ONCE = 2;
/** A sale with a finding is read again after this time, because Redis may have restarted during the first read. */
const SECOND_LOOK_MS = 10_000;
/** Limit between the last purchase and the last archived order. */
const TAIL_MAX_MS = 15 * 60_000;
/** Limit between the kill of Redis and all programs and the last ready program. */
const READY_AFTER_MAX_MS = 30_000;
/** Maximum memory of Redis at the end, compared with the start. */
const REDIS_GROWTH_MAX = 1.05;
const NO_SALES: OpenSales = { sales: 0, orders: 0 };
/** Only a longer run judges memory, because the young generations of the programs have to fill first. */
const JUDGED_FROM_MS = 10 * 60_000;
const PROBLEMS_MAX = 50;
const COUNT_MAX_MS = 300_000;
const SPOT_CHECKS = 100;
/** Consecutive failures of a timer that a killed server alone does not explain. */
const FAILURES_MAX = 60;
const PROXIED: readonly ProxiedName[] = ['redis', 'mysql', 'broker'];

export interface LongRunOptions {
  readonly plan: RunPlan;
  readonly stack: StackControls;
  readonly env: Environment;
  readonly signal: AbortSignal;
  readonly onProgress: (line: string) => void;
}

/** An imported sale. */
interface LivingSale extends PlannedSale {
  readonly saleId: string;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  sold: SoldSale | null;
}

/** The restart of Redis and every program at the same moment. Times in ms are since the kill. */
interface Restart {
  /** Sales that were closed and still in Redis, and sales that were retired. */
  readonly closedSales: number;
  readonly retiredSales: number;
  readonly redisMs: number;
  /** When every program was ready. */
  readonly readyMs: number;
  /** When a purchase of an open sale was accepted. */
  readonly acceptedMs: number;
}

/** The figures of a long run. */
export interface LongRunResult {
  readonly name: RunPlan['name'];
  readonly sales: number;
  readonly largeSales: number;
  readonly buyers: number;
  readonly requests: number;
  readonly accepted: number;
  readonly repeated: number;
  readonly invalidRequests: number;
  readonly orders: Readonly<Record<string, number>>;
  readonly paid: number;
  readonly cancelled: number;
  readonly failed: Readonly<Record<string, number>>;
  readonly checked: number;
  readonly checkedWithRedis: number;
  readonly retired: number;
  readonly sellingMs: number;
  readonly tookMs: number;
  readonly faults: readonly FaultReport[];
  readonly restart: Restart | null;
  readonly start: StoreSample;
  readonly peak: { readonly redisBytes: number; readonly rows: Readonly<Record<string, number>> };
  readonly end: StoreSample;
  readonly keysLeft: Readonly<Record<string, number>>;
  readonly rowsLeft: Readonly<Record<string, number>>;
  readonly verdicts: readonly Verdict[];
  /** CPU seconds by program and server. */
  readonly cpuSeconds: Readonly<Record<string, number>>;
  /** Warnings and errors of the programs, and how often each was logged. */
  readonly logged: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
}

/** Thrown if a promise is broken, which makes the rest of the run worthless. */
class Violated extends Error {}

/** Takes sales through their whole life on real servers, and breaks things in between. */
export class LongRun {
  readonly #options: LongRunOptions;
  readonly #plan: RunPlan;
  readonly #random: Random;
  readonly #programs: Programs;
  readonly #proxies: Partial<Record<ProxiedName, ProxiedServer>> = {};
  readonly #startedMs = performance.now();
  readonly #problems: string[] = [];
  readonly #all: LivingSale[] = [];
  readonly #waiting: LivingSale[] = [];
  readonly #selling = new Set<LivingSale>();
  readonly #sold: LivingSale[] = [];
  /** Drafts whose window is over. */
  readonly #missed = new Set<string>();
  /** Sales with a finding, and when they are read a second time. */
  readonly #suspects = new Map<string, number>();
  readonly #faults: FaultReport[] = [];
  readonly #stores: StoreSample[] = [];
  readonly #samples: ProgramSample[] = [];
  readonly #cpu = new CpuMeter();
  readonly #pace: Pace;
  readonly #lasting: LastingSale;
  /** Aborted when the run is over, even after a failure. */
  readonly #over = new AbortController();
  #running!: LongPrograms;
  #buyers!: Buyers;
  #file!: BuyerFile;
  #records!: Buffer;
  #soldCount = 0;
  #checked = 0;
  #checkedWithRedis = 0;
  #importing = false;
  #import: RunningCommand | null = null;
  #fault: Promise<void> = Promise.resolve();
  #breaking = false;
  #quietSinceMs = 0;
  #retired = 0;
  #archived = 0;
  #late: readonly string[] = [];
  #violated = false;
  /** When the last sale was sold, in ms since the run began. */
  #soldAtMs: number | null = null;
  /** Recent purchases per second of the machine. */
  #perSecond: number;
  #lastProgress = { atMs: 0, accepted: 0 };

  constructor(options: LongRunOptions) {
    const { plan, env, stack } = options;
    this.#options = options;
    this.#plan = plan;
    this.#perSecond = plan.aheadMin / 10;
    this.#random = createRandom(`${plan.seed} ${plan.name} run`);
    this.#programs = new Programs(env, stack.servers.dir, BUILT_MAIN);
    this.#pace = new Pace(plan.connections);
    this.#lasting = new LastingSale(stack, String(env.JWT_SECRET), () => this.#running.apis());
  }

  async run(): Promise<LongRunResult> {
    const { stack, env, signal } = this.#options;
    const count = Math.max(...this.#plan.sales.map(({ buyers }) => buyers));
    this.#file = await prepareBuyers(join(stack.servers.dir, 'load'), {
      secret: String(env.JWT_SECRET),
      count,
      signal,
      progress: () => undefined,
    });
    this.#records = readRecords({ ...this.#file, first: 0, count });
    try {
      if (this.#plan.faultKinds.some((kind) => kind.endsWith('_reset'))) {
        for (const name of PROXIED) this.#proxies[name] = await ProxiedServer.open(name, stack.env);
      }
      this.#running = await LongPrograms.start(this.#programs, this.#programEnv);
      this.#buyers = await Buyers.start({ ...this.#file, count }, this.#plan.connections, SALES_AT_ONCE);
      useApis(this.#buyers, this.#running);
      return await this.#live();
    } finally {
      this.#over.abort();
      await this.#fault; // the fault may be about to start a server
      this.#import?.signal('SIGKILL');
      await this.#import?.end;
      await this.#buyers?.stop();
      closeConnections();
      await this.#programs.close();
      await Promise.allSettled(Object.values(this.#proxies).map(({ proxy }) => proxy.close()));
    }
  }

  get #programEnv(): Record<string, string> {
    return Object.assign({ ...RUN_ENV }, ...Object.values(this.#proxies).map(({ env }) => env)) as Record<
      string,
      string
    >;
  }

  async #live(): Promise<LongRunResult> {
    const { stack, signal } = this.#options;
    await this.#lasting.open();
    const start = await sampleStores(stack);
    this.#stores.push(start);
    const invalid = this.#every('invalid requests', INVALID_EVERY_MS, async () => {
      const wrong = await this.#lasting.sendInvalid(this.#random);
      if (wrong !== null) this.#note(wrong);
    });
    const pace = this.#every('the pace', PACE_EVERY_MS, () => this.#followPace());
    const timers = [
      this.#every('progress', PROGRESS_EVERY_MS, () => this.#progress()),
      this.#every('sizes', SAMPLE_EVERY_MS, () => this.#sample()),
      this.#every('the check of books', 1_000, () => this.#check()),
    ];
    let sellingMs = 0;
    let restart: Restart | null = null;
    let verdicts: readonly Verdict[] = [];
    try {
      await this.#sellAll();
      sellingMs = this.#elapsedMs();
      this.#soldAtMs = sellingMs;
      verdicts = this.#judge();
      await this.#until('every sale that was begun is sold', () => this.#selling.size === 0);
      await Promise.all([pace.stop(), invalid.stop()]);
      await this.#buyersLeave();
      await this.#until('every sale is closed', () => this.#areClosed());
      restart = await this.#restart();
      await this.#lasting.close();
      await this.#until('every sale is checked', () => this.#checked + this.#missed.size === this.#all.length);
      const isArchived = async (): Promise<boolean> =>
        (await this.#salesWhere("state <> 'draft' AND retirement <> 'archived'")) === 0;
      await this.#until('the orders of every sale are in the archive', isArchived);
      await this.#until('Redis has forgotten every sale', () => this.#areForgotten());
      await this.#until('the outbox is empty', async () => (await sampleStores(stack)).rows.outbox === 0);
      await this.#spotCheck();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof Violated)) this.#note(sentenceOf(error));
      sellingMs ||= this.#elapsedMs();
    } finally {
      await Promise.all([...timers, pace, invalid].map((timer) => timer.stop()));
    }
    return this.#conclude({ start, sellingMs, restart, verdicts });
  }

  /** Imports and sells one sale after another, and causes faults in between. */
  async #sellAll(): Promise<void> {
    const { sales, faultKinds, faultStep, faultsMin, sellsMaxMs, endsByTime, seed } = this.#plan;
    const draw = new FaultDraw(createRandom(`${seed} faults of a ${this.#plan.name}`), faultKinds, faultStep);
    const beganMs = performance.now();
    this.#quietSinceMs = beganMs;
    const dueShare = (): number | null => {
      const nowMs = performance.now();
      const [elapsedMs, quietMs] = [nowMs - beganMs, nowMs - this.#quietSinceMs];
      return this.#plan.faultDue({ soldSales: this.#soldCount, faults: this.#faults.length, elapsedMs, quietMs });
    };
    const isOver = (): boolean =>
      this.#soldCount === sales.length || (isLate() && this.#soldCount === this.#all.length);
    const isLate = (): boolean => performance.now() - beganMs > sellsMaxMs;
    while (!isOver()) {
      this.#assertSound();
      this.#options.signal.throwIfAborted();
      if (!isLate()) void this.#importMore();
      else if (!endsByTime) {
        this.#note(`only ${this.#soldCount} of ${sales.length} sales were sold in ${sellsMaxMs / 60_000} minutes`);
        return;
      }
      await this.#handOver().catch(() => undefined); // MySQL may be down for a moment
      const share = this.#breaking ? null : dueShare();
      if (share !== null) this.#fault = this.#break(draw.draw(share));
      await sleep(TICK_MS);
    }
    await this.#until('the last fault is over', () => !this.#breaking);
    // a small run may sell everything before its faults are due
    while (this.#faults.length < faultsMin) {
      this.#fault = this.#break(draw.draw(dueShare() ?? 1));
      await this.#until('the fault is over', () => !this.#breaking);
    }
  }

  /** Waits until `isSo` is true, a promise is broken or a person interrupts. */
  async #until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    let failed = false;
    const check = async (): Promise<boolean> => {
      failed = this.#isUnsound() || this.#options.signal.aborted;
      return failed || isSo();
    };
    await until(what, check, { everyMs: 1_000, grantedMs: TAIL_MAX_MS });
    this.#options.signal.throwIfAborted();
    if (failed) throw new Violated();
  }

  /** @throws Violated */
  #assertSound(): void {
    if (this.#isUnsound()) throw new Violated();
  }

  #isUnsound(): boolean {
    for (const { name, logFile } of this.#running.endedAlone()) {
      this.#violate(`the ${name} ended, and no fault had killed it; its log is ${logFile}`);
    }
    if (!this.#buyers.running) this.#violate('the process of the buyers ended');
    return this.#violated;
  }

  /** Records a broken promise for good. */
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
    const at = String(Math.round(this.#elapsedMs() / 1000)).padStart(5);
    this.#options.onProgress(`${at} s  PROBLEM: ${problem}`);
  }

  /** Imports the next sales when few are waiting, with the command that operators use. */
  async #importMore(): Promise<void> {
    const { sales } = this.#plan;
    const perSecond = Math.max(this.#perSecond, 1);
    let ahead = [...this.#waiting, ...this.#selling].reduce((sum, { buyers }) => sum + buyers, 0);
    const aheadMax = Math.max(this.#plan.aheadMin, AHEAD_SECONDS * perSecond);
    if (this.#importing || ahead >= aheadMax * AHEAD_LOW || this.#all.length >= sales.length) return;
    const some: PlannedSale[] = [];
    for (const sale of sales.slice(this.#all.length, this.#all.length + IMPORTED_AT_ONCE)) {
      if (ahead >= aheadMax || !this.#mayImport(sale)) break;
      some.push(sale);
      ahead += sale.buyers;
    }
    if (some.length === 0) return;
    this.#importing = true;
    try {
      const opensAtMs = Date.now() + LEAD_MS;
      const made = some.map((sale) => ({
        ...sale,
        opensAtMs,
        closesAtMs: opensAtMs + WINDOW_MIN_MS + Math.round((1000 * WINDOW_SHARE * sale.buyers) / perSecond),
      }));
      const ids = await this.#importSales(made);
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

  /** @returns the id of each imported sale, by SKU */
  async #importSales(made: readonly Omit<LivingSale, 'saleId' | 'sold'>[]): Promise<Map<string, string>> {
    const { stack, env } = this.#options;
    const folder = join(stack.servers.dir, 'load');
    const file = join(folder, 'sales.json');
    const rows = made.map(({ sku, stock, buckets, opensAtMs, closesAtMs, large }) => ({
      sku,
      title: large ? 'A large sale' : 'A sale',
      priceCents: 1999,
      stock,
      limitPerBuyer: 1,
      buckets,
      opensAt: new Date(opensAtMs).toISOString(),
      closesAt: new Date(closesAtMs).toISOString(),
      warmBefore: WARM_BEFORE,
    }));
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, JSON.stringify(rows));
    this.#import = new RunningCommand(['sale', 'import', file, '--json'], env);
    const { code, lines, stderr } = await this.#import.end;
    if (code === 0) return new Map(lines.map(({ sku, saleId }) => [String(sku), String(saleId)]));
    // a server was down: either all of these sales exist or none
    const skus = made.map(({ sku }) => sku);
    const read = () =>
      stack.mysql.query<{ id: string; sku: string }>('SELECT id, sku FROM sales WHERE sku IN (?)', [skus]);
    const left = await found('MySQL answers', read);
    if (left.length !== 0 && left.length !== made.length) {
      this.#note(`an import that failed left ${left.length} of ${made.length} sales`);
    }
    if (this.#faults.length === 0 && !this.#breaking) this.#note(`an import failed: ${stderr.slice(0, 300)}`);
    return new Map(left.map(({ id, sku }) => [sku, String(id)]));
  }

  /** Lets the last sales wait until all other sales have closed, which may be late on a slow machine. */
  #mayImport({ last }: PlannedSale): boolean {
    const firstEndsMs = Date.now() + LEAD_MS + WINDOW_MIN_MS;
    return !last || this.#all.every((sale) => sale.last || sale.closesAtMs <= firstEndsMs);
  }

  /** Hands sales that the keeper has opened to the buyers. */
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
      const missed = state !== 'open' && nowMs > sale.closesAtMs; // no keeper ran during its window
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
      } else if (nowMs > sale.opensAtMs + OPENED_LATE_MS && !this.#breaking && !this.#plan.endsByTime) {
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
    sale.sold = await this.#buyers.sell({ saleId, buyers, closesAtMs });
    this.#selling.delete(sale);
    this.#soldCount++;
    this.#sold.push(sale);
  }

  /** Repeats `work`. A failure is recorded only if it occurs many times in a row. */
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

  /** Gives buyers only as many connections as workers and keeper can keep up with. */
  async #followPace(): Promise<void> {
    const backlog = await readBacklog(this.#options.stack, [...this.#selling]);
    this.#late = this.#pace.follow(backlog);
    this.#buyers.pace(this.#pace.open);
  }

  async #break(fault: Fault): Promise<void> {
    this.#breaking = true;
    const atMs = this.#elapsedMs();
    const signal = AbortSignal.any([this.#options.signal, this.#over.signal]);
    const probe = this.#lasting.probe(`probe-${atMs}`);
    const { stack } = this.#options;
    const world = { stack, signal, probe, programs: this.#running, buyers: this.#buyers, proxies: this.#proxies };
    try {
      const report: FaultReport = { ...(await breakOnce(world, fault)), atMs };
      this.#faults.push(report);
      this.#options.onProgress(faultSentence(report));
    } catch (error) {
      if (signal.aborted) return;
      this.#violate(`${fault.kind} at ${Math.round(atMs / 1000)} s did not heal: ${sentenceOf(error)}`);
      this.#faults.push({ ...fault, atMs, acceptedMs: Number.NaN, orderedMs: Number.NaN, rebuilt: null });
    }
    this.#quietSinceMs = performance.now();
    this.#breaking = false;
  }

  /** Checks sold sales once they are at rest and, if there is time, before they are retired. */
  async #check(): Promise<void> {
    const expiredMs = await expiredUntilMs(this.#options.stack);
    const ready = this.#sold.filter(({ closesAtMs }) => {
      const settledMs = closesAtMs + SETTLED_AFTER_MS;
      return Date.now() > settledMs && expiredMs > settledMs;
    });
    const lanes = Array.from({ length: CHECKED_AT_ONCE }, async () => {
      for (let sale = ready.shift(); sale !== undefined; sale = ready.shift()) await this.#checkOne(sale);
    });
    await Promise.all(lanes);
  }

  async #checkOne(sale: LivingSale): Promise<void> {
    const { stack } = this.#options;
    const { sold, saleId } = sale;
    if (sold === null || this.#breaking || !(await isAtRest(stack, saleId))) return;
    const suspectMs = this.#suspects.get(saleId);
    if (suspectMs !== undefined && performance.now() < suspectMs) return;
    const opLog = opLogOf(sold.outcomes, this.#records, this.#file);
    const { problems, withRedis } = await checkSold(stack, sold, opLog);
    if (problems.length > 0 && suspectMs === undefined) {
      this.#suspects.set(saleId, performance.now() + SECOND_LOOK_MS);
      return;
    }
    for (const problem of problems.slice(0, 5)) this.#violate(problem);
    this.#sold.splice(this.#sold.indexOf(sale), 1);
    this.#checked++;
    if (withRedis) this.#checkedWithRedis++;
    sale.sold = { ...sold, outcomes: sold.outcomes.slice(0, 16), moves: [] }; // spot checks need no more
  }

  async #areClosed(): Promise<boolean> {
    return this.#all.length - this.#missed.size <= (await this.#salesWhere("state = 'closed'"));
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

  /** Closes every connection of buyers and waits until the apis have closed theirs. */
  async #buyersLeave(): Promise<void> {
    this.#buyers.pace(0);
    const inbound = (): number =>
      this.#running.apis().reduce((sum, { pid }) => sum + (openOf({ pid })?.inbound ?? 0), 0);
    await expectNoConnections(inbound).catch((error: Error) => this.#note(error.message));
  }

  /** Kills Redis and every program at the same moment and starts them again, while only the lasting sale is open. */
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
    // restarts a program that gave up because Redis was not up yet, as a supervisor would
    const supervisor = {
      start: (...args: Parameters<Programs['start']>): Promise<Program> =>
        found(`the ${args[0]} is ready`, () => this.#programs.start(...args)),
    };
    this.#running = await LongPrograms.start(supervisor, this.#programEnv);
    const redisMs = await redisUp;
    const areReady = async (): Promise<boolean> =>
      (await Promise.all(this.#running.running().map(({ program }) => ask(`${program.operatorsUrl}/readyz`)))).every(
        ({ status }) => status === 200,
      );
    await until('every program is ready', areReady, { everyMs: 100 });
    const readyMs = since();
    await until('a purchase is accepted', () => this.#lasting.buy('after-the-restart'), { everyMs: 100 });
    if (readyMs > READY_AFTER_MAX_MS) this.#note(`after the restart the programs were ready in ${readyMs} ms`);
    if (closedSales < this.#plan.closedAtRestart) {
      const wanted = this.#plan.closedAtRestart;
      this.#note(`the restart met ${closedSales} sales that were closed and not retired, not ${wanted}`);
    }
    return { closedSales, retiredSales, redisMs, readyMs, acceptedMs: since() };
  }

  /** Checks that purchases of retired sales are still answered, and that the same key returns the same purchase. */
  async #spotCheck(): Promise<void> {
    for (const { saleId, sold } of this.#random.shuffled(this.#all).slice(0, SPOT_CHECKS)) {
      const buyer = sold?.outcomes.indexOf(OUTCOME.ok) ?? -1;
      if (buyer === -1) continue;
      const key = idempotencyKeyAt(this.#records, { ...this.#file, first: 0 }, buyer);
      for (const problem of await this.#lasting.askRetired(saleId, userIdOf(buyer), key)) this.#note(problem);
    }
  }

  /** Counts sales that may have rows in hot tables, including the lasting sale. */
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
    this.#retired = await this.#salesWhere("retirement NOT IN ('none', 'begun')");
    this.#archived = await this.#salesWhere("retirement = 'archived'");
  }

  /** Judges growth. The load of a year varies, so its connections are not judged. */
  #judge(): Verdict[] {
    const [first] = this.#stores;
    const servers = this.#stores.map((sample) => ({ ...sample, ageMs: sample.atMs - (first?.atMs ?? 0) }));
    return [...judgePrograms(this.#samples), ...(this.#plan.endsByTime ? judgeServers(servers) : [])];
  }

  /** Estimates the remaining time: the remaining orders at the pace so far, then the life of the last sale. */
  #leftMs(accepted: number): number | null {
    const tailMs = WINDOW_MIN_MS + LIFE_AFTER_CLOSE_MS;
    if (this.#soldAtMs !== null) return Math.max(0, this.#soldAtMs + tailMs - this.#elapsedMs());
    if (this.#plan.endsByTime) return Math.max(0, this.#plan.sellsMaxMs - this.#elapsedMs()) + tailMs;
    if (accepted === 0) return null;
    const wanted = this.#plan.sales.reduce((sum, { stock }) => sum + stock, 0);
    return ((wanted - accepted) * this.#elapsedMs()) / accepted + tailMs;
  }

  #progress(): Promise<void> {
    const { accepted, wrong } = this.#buyers.stats;
    const atMs = this.#elapsedMs();
    const perSecond = Math.round(((accepted - this.#lastProgress.accepted) * 1000) / (atMs - this.#lastProgress.atMs));
    this.#lastProgress = { atMs, accepted };
    if (!this.#breaking && this.#selling.size > 0) {
      this.#perSecond = Math.round(Math.max((this.#perSecond + perSecond) / 2, this.#perSecond * 0.9));
    }
    const store = this.#stores.at(-1);
    const rss = this.#samples
      .slice(-5)
      .map(({ program, rssBytes }) => [program, Math.round(rssBytes / 2 ** 20)] as const);
    this.#cpu.read(this.#options.stack, this.#running, this.#buyers);
    const figures = {
      atMs,
      sales: this.#plan.endsByTime ? null : this.#plan.sales.length,
      sold: this.#soldCount,
      waiting: this.#waiting.length,
      selling: this.#selling.size,
      toCheck: this.#sold.length,
      checked: this.#checked,
      archived: this.#archived,
      accepted,
      perSecond,
      redisMiB: Math.round((store?.redisBytes ?? 0) / 2 ** 20),
      rows: store?.rows ?? {},
      rss: Object.fromEntries(rss) as Record<string, number>,
      problems: this.#problems.length,
      connections: this.#pace.open,
      late: this.#late,
      leftMs: this.#leftMs(accepted),
    };
    for (const sentence of wrong) this.#note(sentence);
    this.#options.onProgress(progressSentence(figures));
    return Promise.resolve();
  }

  /** Samples the stores once Redis is as small as at the start, or after a time limit. */
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
  }): Promise<LongRunResult> {
    const { stack } = this.#options;
    const { start, restart, verdicts, sellingMs } = parts;
    // a run that ended early never comes to rest
    const end = restart === null ? await sampleStores(stack) : await this.#sampleAtRest(start);
    const { requests, accepted, repeated, paid, cancelled } = this.#buyers.stats;
    if (restart === null) {
      if (this.#problems.length === 0) this.#note('Redis and the programs were not restarted');
    } else if (!this.#violated) {
      for (const problem of tooManyRows(end.rows, NO_SALES)) this.#note(`at the end ${problem}`);
    }
    if (accepted < this.#plan.ordersMin) {
      this.#note(`only ${accepted} of ${this.#plan.ordersMin} purchases were accepted`);
    }
    const keepers = this.#running.running().filter(({ program }) => program.name === 'keeper');
    const overdue = await Promise.all(keepers.map(({ program }) => readMetric(program, 'seckill_overdue')));
    const waiting = overdue.reduce((sum, value) => sum + value, 0);
    if (waiting > 0) this.#note(`${waiting} items are overdue at the end`);
    for (const { what, first, last, unit, flat } of verdicts) {
      if (!flat && sellingMs >= JUDGED_FROM_MS) this.#note(`${what} is not flat: ${first} → ${last} (${unit})`);
    }
    if (end.redisBytes > start.redisBytes * REDIS_GROWTH_MAX) {
      this.#note(`Redis uses ${end.redisBytes} bytes at the end, ${start.redisBytes} at the start`);
    }
    const peakRows: Record<string, number> = {};
    for (const { rows } of this.#stores) {
      for (const [table, count] of Object.entries(rows)) peakRows[table] = Math.max(peakRows[table] ?? 0, count ?? 0);
    }
    return {
      name: this.#plan.name,
      sales: this.#all.length,
      largeSales: this.#all.filter(({ large }) => large).length,
      buyers: this.#all.reduce((sum, sale) => sum + sale.buyers, 0),
      ...{ requests, accepted, repeated, paid, cancelled, invalidRequests: this.#lasting.invalidRequests },
      ...(await this.#countAll()),
      checked: this.#checked,
      checkedWithRedis: this.#checkedWithRedis,
      retired: this.#retired,
      sellingMs,
      tookMs: this.#elapsedMs(),
      faults: this.#faults,
      restart,
      start,
      peak: { redisBytes: Math.max(...this.#stores.map(({ redisBytes }) => redisBytes)), rows: peakRows },
      end,
      keysLeft: await keysByKind(stack),
      verdicts,
      cpuSeconds: this.#cpu.totals(),
      logged: this.#logged(),
      problems: this.#problems,
    };
  }

  /** Counts rows on a separate connection, because millions of rows take longer than the harness allows. */
  async #countAll(): Promise<Pick<LongRunResult, 'orders' | 'failed' | 'rowsLeft'>> {
    const { MYSQL_URL } = this.#options.env;
    const mysql = openMysqlPool({ url: String(MYSQL_URL), poolMax: 1, queryTimeoutMs: COUNT_MAX_MS });
    try {
      const states = await mysql.query<{ state: string; reason: string | null; orders: string }>(
        'SELECT state, reason, COUNT(*) AS orders FROM' +
          ' (SELECT state, reason FROM orders UNION ALL SELECT state, reason FROM orders_archive) AS both_tables' +
          ' GROUP BY state, reason',
      );
      const orders: Record<string, number> = {};
      const failed: Record<string, number> = {};
      for (const row of states) {
        orders[row.state] = (orders[row.state] ?? 0) + Number(row.orders);
        if (row.reason !== null) failed[row.reason] = (failed[row.reason] ?? 0) + Number(row.orders);
      }
      return { orders, failed, rowsLeft: await countAllRows({ mysql }) };
    } finally {
      await mysql.close();
    }
  }

  /** Counts warnings and errors in the logs of all programs. */
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
