import { signerOf } from '../../../src/cli/setup.js';
import { loadConfig, type Environment } from '../../../src/core/config/load.js';
import { openMysqlPool, type MysqlPool } from '../../../src/mysql/pool.js';
import type { SupervisedProgram } from '../supervisor.js';
import { areRight, checkBooks, type Books } from './books.js';
import type { Buyer, BuyersWorld } from './buyer.js';
import { Faults } from './faults.js';
import { FAULTS_ENV, TRAFFIC_ENV } from './plan.js';
import { DemoSales, Operators, WaitingRooms } from './sales.js';
import { countsLine, Tally } from './tally.js';
import { Traffic } from './traffic.js';

export interface DemoOptions {
  /** Environment of the programs, made by `demoEnv`. */
  readonly env: Environment;
  readonly api: SupervisedProgram;
  readonly worker: SupervisedProgram;
  readonly faults: boolean;
  /** Reports a line with the time of day for people, and a line for programs. */
  readonly report: (sentence: string) => void;
  readonly print: (line: { readonly result: string; readonly [fact: string]: unknown }) => void;
}

/** Name under which the demo acts as an operator. */
const ACTOR = 'demo';
const COUNTS_EVERY_MS = 30_000;
const TOKEN_LIFE_MS = 3_600_000;
/** A longer payment window is configured, so no buyer waits for an order to expire. */
const PAYMENT_WINDOW_MAX_MS = 120_000;

/** Returns the settings of programs with traffic. The environment takes precedence over them. */
export function demoEnv({ faults }: { readonly faults: boolean }): Record<string, string> {
  return { ...TRAFFIC_ENV, ...(faults ? FAULTS_ENV : {}) };
}

/** Runs simulated buyers, new sales and optional faults until `stop`. */
export class Demo {
  readonly #options: DemoOptions;
  readonly #tally = new Tally();
  readonly #late = new Set<Buyer>();
  readonly #sales: DemoSales;
  readonly #rooms: WaitingRooms;
  readonly #traffic: Traffic;
  readonly #faults: Faults | null;
  readonly #mysql: MysqlPool;
  readonly #startedMs = performance.now();
  #counting: NodeJS.Timeout | undefined;

  constructor(options: DemoOptions) {
    const { env, api, worker, faults, report, print } = options;
    this.#options = options;
    const { auth, payment, order, mysql } = loadConfig(['auth', 'payment', 'order', 'mysql'], env);
    const sign = signerOf(auth);
    const stopping = new AbortController();
    const portOf = (fact: 'port' | 'operatorsPort') => `http://127.0.0.1:${api.facts[fact]}`;
    const operators = new Operators(
      () => portOf('operatorsPort'),
      () => sign({ userId: ACTOR, roles: ['admin'], ttlMs: TOKEN_LIFE_MS }),
    );
    const { paymentWindowMs } = order;
    const world: BuyersWorld = {
      url: () => portOf('port'),
      token: (userId) => sign({ userId, roles: [], ttlMs: TOKEN_LIFE_MS }),
      webhookSecret: payment.webhookSecret,
      paymentWindowMs: paymentWindowMs > PAYMENT_WINDOW_MAX_MS ? null : paymentWindowMs,
      tally: this.#tally,
      random: Math.random,
      unanswered: { count: 0 },
      late: this.#late,
      stopping: stopping.signal,
    };
    this.#mysql = openMysqlPool(mysql);
    this.#rooms = new WaitingRooms(operators);
    this.#sales = new DemoSales(operators, this.#rooms);
    this.#traffic = new Traffic(world, this.#sales, { report, stopping });
    this.#faults = faults
      ? new Faults({
          world,
          operators,
          mysql: this.#mysql,
          worker,
          apiEnv: env,
          sales: () => this.#sales.going,
          tell: ({ sentence, ...facts }) => {
            report(`Fault: ${sentence}.`);
            print({ result: 'fault', ...facts });
          },
          report,
          stopping: stopping.signal,
        })
      : null;
  }

  start(): void {
    this.#traffic.start();
    this.#faults?.start();
    this.#counting = setInterval(() => this.#showCounts(), COUNTS_EVERY_MS);
  }

  #showCounts(): void {
    const counts = this.#tally.lap();
    this.#options.report(`Buyers, ${COUNTS_EVERY_MS / 1000} s: ${countsLine(counts)}.`);
    this.#options.print({ result: 'traffic', seconds: COUNTS_EVERY_MS / 1000, counts });
  }

  /**
   * Ends traffic and faults, waits for open purchases, and checks the books while the programs still run.
   * @returns whether the books are right
   */
  async stop(): Promise<boolean> {
    const { report, print, env } = this.#options;
    clearInterval(this.#counting);
    try {
      await this.#traffic.stop();
      await this.#faults?.stop();
      await this.#rooms.close();
      const areMissing = await Promise.all([...this.#late].map((buyer) => buyer.isMissing()));
      const missing = areMissing.filter(Boolean).length;
      const minutes = (performance.now() - this.#startedMs) / 60_000;
      const counts = this.#tally.all();
      const faults = this.#faults?.counts ?? null;
      report(`Buyers, all ${minutes.toFixed(1)} min and ${this.#sales.made} sales: ${countsLine(counts)}.`);
      if (faults !== null) report(`Faults: ${faultsLine(faults)}.`);
      report('Comparing Redis and MySQL.');
      const books = await checkBooks(env, ACTOR);
      const right = areRight(books) && missing === 0;
      report(booksLine(books, missing));
      print({ result: 'books', right, ...books, missing, sales: this.#sales.made, counts, faults });
      return right;
    } finally {
      await this.#mysql.close();
    }
  }
}

/** Summarises the comparison in one sentence. */
export function booksLine(books: Books, missing: number): string {
  const { salesCompared, salesFailed, salesTaken, salesGone, counts, undecided } = books;
  const found = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`);
  const wrong = [
    ...found,
    ...(salesFailed > 0 ? [`${salesFailed} sales could not be compared`] : []),
    ...(salesTaken > 0 ? [`${salesTaken} sales were being compared by another run`] : []),
    ...(undecided > 0 ? [`${undecided} purchases undecided (see seckill dlq list for dead letters)`] : []),
    ...(missing > 0 ? [`${missing} accepted purchases have no order`] : []),
  ];
  const gone =
    salesGone === 0 ? '' : ` Redis no longer has ${salesGone} ended sales, so only their orders were compared.`;
  if (areRight(books) && missing === 0) {
    return `Result: ${salesCompared} sales compared. Redis and MySQL match, and every accepted purchase is an order or has a reason why not.${gone}`;
  }
  const faults = wrong.length === 0 ? 'no sale could be compared' : wrong.join(', ');
  return `Result: ${salesCompared} sales compared: ${faults}.${gone} For details run: seckill reconcile`;
}

/** Lists the faults that occurred. */
export function faultsLine({ poisoned_batch, dead_letters, killed_worker, half_message }: Faults['counts']): string {
  const occurred = [
    [poisoned_batch, `purchases that MySQL refused (${dead_letters} became dead letters)`],
    [killed_worker, 'killed workers'],
    [half_message, 'apis that died with an open half message'],
  ].filter(([count]) => count !== 0);
  return occurred.length === 0 ? 'none' : occurred.map((fault) => fault.join(' ')).join(', ');
}
