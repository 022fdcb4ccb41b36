import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { prepareBuyers, readRecords, userIdOf, type BuyerFile } from '../../../bench/load/buyers.js';
import type { Environment } from '../../../src/core/config/load.js';
import { createTokenSigner } from '../../../src/http/token.js';
import { BUILT_MAIN, runCommand } from '../harness/commands.js';
import { ask, closeConnections } from '../harness/http.js';
import { Programs, readMetric, type Program } from '../harness/programs.js';
import { ACTOR, openSale } from '../harness/sales.js';
import type { StackControls } from '../harness/stack-controls.js';
import { found, until } from '../harness/wait.js';
import { createRandom, type Random } from '../random.js';
import { judgePrograms, type ProgramSample, type Verdict } from '../soak/flatness.js';
import { SoakPrograms, samplePrograms } from '../soak/samples.js';
import { checkSold, expiredUntilMs, isAtRest, opLogOf } from './books.js';
import { breakOnce, useApis, type YearFault } from './faults.js';
import { YearLoad } from './load.js';
import { OUTCOME, type SoldSale } from './load-process.js';
import { planFaults, planSales, type PlannedSale, type YearSize } from './plan.js';
import { countAllRows, keysByKind, sampleStores, type StoreSample } from './sizes.js';

/** Between a payment and the end of an order: minutes in production, as everything here. */
const PAYMENT_WINDOW_MS = 20_000;
/** What a sale needs from its last order until nothing of it moves: its orders end, their units go back. */
const SETTLED_AFTER_MS = PAYMENT_WINDOW_MS + 10_000;
const RETIRE_AFTER_MS = 75_000;
const MARKER_LIFE_MS = 120_000;

/** A year in minutes: what takes minutes and days in production takes seconds here. Clocks are what they are. */
const YEAR_ENV = {
  PAYMENT_PROVIDER: 'simulator',
  ORDER_PAYMENT_WINDOW_MS: String(PAYMENT_WINDOW_MS),
  KEEPER_EVERY_MS: '500',
  OUTBOX_KEEP_MS: '60000',
  RETIRE_AFTER_MS: String(RETIRE_AFTER_MS),
  MARKER_LIFE_MS: String(MARKER_LIFE_MS),
  REDRIVE_AFTER_MS: '30000', // longer than a check-back takes
  RECONCILE_SAFE_AGE_MS: '20000',
  RECONCILE_MARKER_AGE_MS: String(MARKER_LIFE_MS),
  RECONCILE_KEEP_MS: '60000',
  WORKER_INVISIBLE_MS: '30000',
  MYSQL_QUERY_TIMEOUT_MS: '10000',
  LOG_LEVEL: 'warn',
  NODE_OPTIONS: '--max-semi-space-size=64', // as under the supervisor
} as const;

/** The least window of a sale: an outage must fit in. */
const WINDOW_MIN_MS = 90_000;
/** Of the time that its buyers take at the pace of the last seconds: the other sales have their part of it. */
const WINDOW_SHARE = 4;
/** From an import until its sales open: the command starts, the keeper warms and opens. */
const LEAD_MS = 8_000;
const WARM_BEFORE = '6s';
/** Buyers of sales that are imported and not yet sold: so many seconds of load, and these at least. */
const AHEAD_SECONDS = 30;
const AHEAD_MIN = 20_000;
const IMPORTED_AT_ONCE = 20;
/** Purchases a second before any was counted. */
const PACE_FIRST = 1_000;
const CONNECTIONS = 256;
/** Of each api. */
const SALES_AT_ONCE = 2;
const OPENED_LATE_MS = 60_000;
const TICK_MS = 300;
const PROGRESS_EVERY_MS = 5_000;
const SAMPLE_EVERY_MS = 10_000;
const CHECKED_AT_ONCE = 2;
/** From the last purchase until every sale is retired; longer than a sale that was kept is left alone. */
const TAIL_MAX_MS = 15 * 60_000;
const RESTART_MAX_MS = 120_000;
/** A year that sells for so long judges the memory of its programs; until then their young generations fill. */
const JUDGED_FROM_MS = 10 * 60_000;
const PROBLEMS_MAX = 50;
const SPOT_CHECKS = 100;

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
  readonly closedSales: number;
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
  /** Warnings and errors of the programs: message → how often. */
  readonly logged: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
}

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
      await this.#load?.stop();
      closeConnections();
      await this.#programs.close();
    }
  }

  async #live(): Promise<YearResult> {
    const { stack, sales } = this.#options;
    const lasting = await this.#openLasting();
    const start = await sampleStores(stack);
    this.#stores.push(start);
    const faults = planFaults(this.#options.faults, sales, createRandom(`${this.#options.seed} faults of a year`));
    const timers = [
      every(PROGRESS_EVERY_MS, () => this.#progress()),
      every(SAMPLE_EVERY_MS, () => this.#sample()),
      every(1_000, () => this.#check()),
    ];
    let sellingMs = 0;
    let restart: Restart | null = null;
    const deadlineMs = performance.now() + this.#options.minutes * 60_000;
    try {
      while (this.#soldCount < this.#plan.length) {
        this.#options.signal.throwIfAborted();
        if (performance.now() > deadlineMs) {
          this.#problems.push(
            `only ${this.#soldCount} of ${sales} sales were sold in ${this.#options.minutes} minutes`,
          );
          break;
        }
        void this.#importMore();
        await this.#handOver().catch(() => undefined); // MySQL is away for a moment
        const fault = faults[this.#faults.length];
        if (fault !== undefined && !this.#breaking && this.#soldCount >= fault.afterSales) void this.#break(fault.kind);
        for (const { name, logFile } of this.#running.endedAlone()) {
          throw new Error(`the ${name} ended, and no fault had killed it; its log is ${logFile}`);
        }
        if (!this.#load.running) throw new Error('the process of the buyers ended');
        await sleep(TICK_MS);
      }
      await until('the last fault is over', () => !this.#breaking, TAIL_MAX_MS);
      sellingMs = this.#elapsedMs();
      await until('every sale that was begun is sold', () => this.#selling.size === 0, TAIL_MAX_MS, 500);
      const judged = [...this.#samples];
      await until('every sale is closed', () => this.#areClosed(), TAIL_MAX_MS, 1_000);
      restart = await this.#restart(lasting);
      await this.#endLasting(lasting);
      await until(
        'every sale is checked',
        () => this.#checked + this.#missed.size === this.#all.length,
        TAIL_MAX_MS,
        1_000,
      );
      await until('every sale is retired and forgotten', () => this.#areForgotten(), TAIL_MAX_MS, 2_000).catch(
        (error: Error) => this.#note(error.message),
      );
      await sleep(MARKER_LIFE_MS); // what is left of the last ones ends by itself
      await this.#spotCheck();
      for (const timer of timers) await timer.stop();
      return await this.#conclude({ start, sellingMs, restart, verdicts: judgePrograms(judged) });
    } finally {
      await Promise.all(timers.map((timer) => timer.stop()));
    }
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
    if (this.#importing || ahead >= aheadMax || this.#all.length >= this.#plan.length) return;
    this.#importing = true;
    try {
      const some: PlannedSale[] = [];
      for (const sale of this.#plan.slice(this.#all.length, this.#all.length + IMPORTED_AT_ONCE)) {
        if (ahead >= aheadMax) break;
        some.push(sale);
        ahead += sale.buyers;
      }
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
      const { code, lines, stderr } = await runCommand(['sale', 'import', file, '--json'], this.#options.env);
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

  async #break(kind: YearFault['kind']): Promise<void> {
    this.#breaking = true;
    const atMs = this.#elapsedMs();
    const { stack, signal } = this.#options;
    const world = { stack, signal, programs: this.#running, load: this.#load };
    try {
      const fault: YearFault = { ...(await breakOnce(world, kind)), atMs };
      this.#faults.push(fault);
      this.#options.onProgress(faultLine(fault), { result: 'fault', ...fault });
    } catch (error) {
      this.#note(`${kind} at ${Math.round(atMs / 1000)} s did not heal: ${sentenceOf(error)}`);
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
    for (const problem of problems.slice(0, 5)) this.#note(problem);
    this.#sold.splice(this.#sold.indexOf(sale), 1);
    this.#checked++;
    if (withRedis) this.#checkedWithRedis++;
    // only what spot checks need
    sale.sold = { ...sold, outcomes: sold.outcomes.slice(0, 16), moves: [] };
  }

  async #areClosed(): Promise<boolean> {
    const [row] = await this.#options.stack.mysql.query<{ open: string }>(
      "SELECT COUNT(*) AS open FROM sales WHERE state IN ('warm', 'open', 'paused')",
    );
    return Number(row?.open) <= 1; // the lasting one
  }

  async #areForgotten(): Promise<boolean> {
    const [row] = await this.#options.stack.mysql.query<{ left_over: string }>(
      "SELECT COUNT(*) AS left_over FROM sales WHERE state <> 'draft' AND retirement IN ('none', 'begun')",
    );
    return Number(row?.left_over) === 0;
  }

  /** A sale that is open all year, and sells a little at its begin and after the restart. */
  async #openLasting(): Promise<string> {
    const { saleId } = await openSale(this.#options.stack, { stock: 1_000, closesAtMs: Date.now() + 24 * 3_600_000 });
    await until('a first purchase is accepted', () => this.#buyOnce(saleId, 'first'), RESTART_MAX_MS, 200);
    return saleId;
  }

  async #endLasting(saleId: string): Promise<void> {
    const isClosed = async (): Promise<boolean> =>
      (await this.#options.stack.admin.close(saleId, ACTOR)).outcome === 'done';
    await until('the lasting sale is closed', isClosed, RESTART_MAX_MS, 500);
  }

  async #buyOnce(saleId: string, userId: string): Promise<boolean> {
    const token = createTokenSigner(String(this.#options.env.JWT_SECRET))({ userId, roles: [], ttlMs: 3_600_000 });
    const [api] = this.#running.apis();
    if (api === undefined) return false;
    const answer = await ask(`${api.url}/v1/sales/${saleId}/purchases`, {
      method: 'POST',
      token,
      headers: { 'Idempotency-Key': 'k1' },
      body: { quantity: 1 },
      timeoutMs: 5_000,
    });
    return answer.status < 300;
  }

  /** Redis and every program die at once and start again, while no sale but the lasting one is open. */
  async #restart(lasting: string): Promise<Restart> {
    const { stack } = this.#options;
    const [closed] = await stack.mysql.query<{ sales: string }>(
      "SELECT COUNT(*) AS sales FROM sales WHERE state = 'closed'",
    );
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
        found(`the ${args[0]} is ready`, () => this.#programs.start(...args), RESTART_MAX_MS),
    };
    this.#running = await SoakPrograms.start(context, YEAR_ENV);
    const redisMs = await redisUp;
    const areReady = async (): Promise<boolean> =>
      (await Promise.all(this.#running.running().map(({ program }) => ask(`${program.operatorsUrl}/readyz`)))).every(
        ({ status }) => status === 200,
      );
    await until('every program is ready', areReady, RESTART_MAX_MS, 100);
    const readyMs = since();
    useApis(this.#load, this.#running);
    await until('a purchase is accepted', () => this.#buyOnce(lasting, 'after-the-restart'), RESTART_MAX_MS, 100);
    return { closedSales: Number(closed?.sales), redisMs, readyMs, acceptedMs: since() };
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

  async #sample(): Promise<void> {
    this.#samples.push(...(await samplePrograms(this.#running)));
    this.#stores.push(await sampleStores(this.#options.stack));
    const [row] = await this.#options.stack.mysql.query<{ retired: string }>(
      "SELECT COUNT(*) AS retired FROM sales WHERE retirement NOT IN ('none', 'begun')",
    );
    this.#lastRetired = Number(row?.retired);
  }

  #lastProgress = { atMs: 0, accepted: 0 };

  async #progress(): Promise<void> {
    const { accepted, requests, unanswered, wrong } = this.#load.stats;
    const atMs = this.#elapsedMs();
    const rate = Math.round(((accepted - this.#lastProgress.accepted) * 1000) / (atMs - this.#lastProgress.atMs));
    this.#lastProgress = { atMs, accepted };
    if (!this.#breaking) this.#pace = Math.round(Math.max((this.#pace + rate) / 2, this.#pace * 0.9));
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
    };
    for (const sentence of wrong) this.#note(sentence);
    this.#options.onProgress(progressLine(atMs, this.#plan.length, figures), { result: 'progress', atMs, ...figures });
    await Promise.resolve();
  }

  async #conclude(parts: {
    readonly start: StoreSample;
    readonly sellingMs: number;
    readonly restart: Restart | null;
    readonly verdicts: readonly Verdict[];
  }): Promise<YearResult> {
    const { stack } = this.#options;
    const { start, restart, verdicts } = parts;
    const end = await sampleStores(stack);
    const keysLeft = await keysByKind(stack);
    const rowsLeft = await countAllRows(stack);
    const { requests, accepted, paid, cancelled } = this.#load.stats;
    const states = await stack.mysql.query<{ state: string; reason: string | null; orders: string }>(
      'SELECT state, reason, COUNT(*) AS orders FROM orders GROUP BY state, reason',
    );
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
    if (end.redisBytes > start.redisBytes * 1.05) {
      this.#note(`Redis uses ${end.redisBytes} bytes at the end, ${start.redisBytes} at the start`);
    }
    if (restart !== null && restart.readyMs > 30_000) this.#note(`the restart took ${restart.readyMs} ms`);
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
      logged: this.#logged(),
      problems: this.#problems,
    };
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

/** Runs again and again, one at a time; what it throws is left to the next one. */
function every(ms: number, work: () => Promise<void>): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const done = (async () => {
    while (!stopping.signal.aborted) {
      await sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (!stopping.signal.aborted) await work().catch(() => undefined);
    }
  })();
  return {
    stop: async () => {
      stopping.abort();
      await done;
    },
  };
}

const sentenceOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const seconds = (ms: number): string => (ms / 1000).toFixed(1);

const faultLine = ({ kind, atMs, acceptedMs, orderedMs, rebuilt }: YearFault): string =>
  `${String(Math.round(atMs / 1000)).padStart(5)} s  ${kind}: accepted again after ${seconds(acceptedMs)} s, orders after ` +
  `${seconds(orderedMs)} s${rebuilt === null ? '' : `, ${rebuilt.sales} open sales rebuilt after ${seconds(rebuilt.ms)} s`}`;

function progressLine(atMs: number, sales: number, figures: Record<string, unknown>): string {
  const { sold, waiting, selling, toCheck, checked, retired, accepted, perSecond, redisMiB, rows, rss, problems } =
    figures;
  const { outbox = 0, order_ranges: ranges = 0 } = (rows ?? {}) as Record<string, number>;
  const memory = Object.entries(rss as Record<string, number>).map(
    ([name, mib]) => `${name.replace(/ \d+/, '')} ${mib}`,
  );
  return (
    `${String(Math.round(atMs / 1000)).padStart(5)} s  sold ${sold}/${sales} (${selling} selling, ${waiting} ahead, ${toCheck} to check)` +
    `, checked ${checked}, retired ${retired}; orders ${Number(accepted).toLocaleString('en')} (+${perSecond}/s)` +
    `; Redis ${redisMiB} MiB, outbox ${outbox}, ranges ${ranges}; MiB: ${memory.join(' ')}` +
    `${problems === 0 ? '' : `; ${problems} PROBLEMS`}`
  );
}
