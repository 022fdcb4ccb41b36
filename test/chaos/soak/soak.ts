import type { Arena } from '../context.js';
import type { Buyers, Load } from '../harness/buyers.js';
import { closeConnections } from '../harness/http.js';
import type { Program } from '../harness/programs.js';
import { standingOf } from '../harness/redis.js';
import { until } from '../harness/wait.js';
import type { Row } from '../scenario.js';
import { type Breakable, breakEvery, type FaultTold, JUDGED_FROM_MS } from './faults.js';
import { judgePrograms, judgeServers, type Verdict } from './flatness.js';
import {
  Crowd,
  type CrowdTally,
  type HostileTally,
  type Manners,
  newTally,
  Pulse,
  RushSales,
  startHostileHand,
} from './load.js';
import { Fleet, openOf, Sampler } from './samples.js';

export interface SoakOptions {
  readonly minutes: number;
  readonly faultEveryMs: number;
  /** Each fault as soon as it is over. */
  readonly onFault: (told: FaultTold) => void;
  /** After it nothing is broken and nothing is started any more: the servers are being stopped. */
  readonly signal: AbortSignal;
}

/** Two that never sell out: in one a buyer may have a single live order, in the other two units. */
const STEADY_SALES = [{ limitPerBuyer: 1 }, { limitPerBuyer: 2 }];
/** More than a soak of hours sells. */
const STEADY_STOCK = 1_000_000;
/** What is not paid or cancelled expires. */
const STEADY_MANNERS: Manners = { hands: 3, askAgain: 0.1, pay: 0.5, cancel: 0.5 };
/** Start, rest and check of a long soak. */
const AROUND_MS = 15 * 60_000;
const LOAD_ON_MAX_MS = 60_000;
/** Sentences that are told; more would only repeat the first ones. */
const WRONG_MAX = 20;

/** Mixed load and random faults for minutes, as one row; what it measured stays here. */
export class Soak {
  readonly faults: FaultTold[] = [];
  readonly crowd: CrowdTally = newTally();
  readonly hostile: HostileTally = { sent: 0, wrong: [] };
  verdicts: readonly Verdict[] = [];
  sales = { opened: 0, soldOut: 0 };
  readonly #options: SoakOptions;
  readonly #runMs: number;

  constructor(options: SoakOptions) {
    this.#options = options;
    this.#runMs = options.minutes * 60_000;
  }

  get row(): Row {
    return {
      id: 'soak',
      title: `${this.#options.minutes} minutes of mixed load with a fault every ${this.#options.faultEveryMs / 1000} s`,
      ...{ fast: false, alone: true },
      mayFail: ['units_lost'], // a kill of Redis may cost what came after the last write of its log
      healMaxMs: REBUILT_MAX_MS, // of closed sales
      timeoutMs: this.#runMs + AROUND_MS,
      run: (arena) => this.#run(arena),
    };
  }

  async #run(arena: Arena): Promise<void> {
    const proxies = {
      ...{ redis: await arena.proxy('redis'), mysql: await arena.proxy('mysql') },
      broker: await arena.proxy('broker'),
    };
    const env = { ...SOAK_ENV, ...proxies.redis.env, ...proxies.mysql.env, ...proxies.broker.env };
    const fleet = await Fleet.start(arena, env);
    const closesAtMs = Date.now() + this.#runMs + 2 * AROUND_MS;
    const steady: Buyers[] = [];
    for (const { limitPerBuyer } of STEADY_SALES) {
      const { saleId } = await arena.openSale({ stock: STEADY_STOCK, limitPerBuyer, closesAtMs });
      steady.push(arena.buyers(saleId, () => fleet.apis()));
    }
    const saleIds = steady.map(({ saleId }) => saleId);
    const pulse = new Pulse();
    const rush = new RushSales(arena, { apis: () => fleet.apis(), pulse, tally: this.crowd, closesAtMs });
    const loads = this.#startLoads(arena, { fleet, steady, pulse, rush });
    const sampler = new Sampler(fleet, arena.stack);
    try {
      await arena.until('the load is on', () => pulse.ordersSince(0, saleIds), LOAD_ON_MAX_MS);
      await this.#breakAll({ arena, fleet, proxies, saleIds, signal: this.#options.signal }, pulse);
    } finally {
      await Promise.all(loads.map((load) => load.stop()));
      await sampler.stop();
    }
    const held = await heldForNobody(fleet.apis());
    // those that serve buyers, in the time of every row; closed ones may take longer
    const late = await arena.recovered(saleIds).then(
      () => [],
      ({ message }: Error) => [message],
    );
    this.sales = { opened: steady.length + rush.buyers.length, soldOut: rush.soldOut };
    this.verdicts = [...judgePrograms(sampler.programs), ...judgeServers(sampler.servers)];
    const books = await finalCheck(arena, [...steady, ...rush.buyers]).catch((error: Error) => [error.message]);
    const wrong = [...held, ...late, ...books, ...this.#found(fleet)];
    if (wrong.length > 0) throw new Error(wrong.slice(0, WRONG_MAX).join('; '));
  }

  #startLoads(
    arena: Arena,
    { fleet, steady, pulse, rush }: { fleet: Fleet; steady: readonly Buyers[]; pulse: Pulse; rush: RushSales },
  ): Load[] {
    const { random } = arena;
    const urls = (): string[] => fleet.apis().map(({ url }) => url);
    return [
      ...steady.map((buyers) => new Crowd(random, buyers, STEADY_MANNERS, { pulse, tally: this.crowd }).start()),
      startHostileHand(steady[0] as Buyers, urls, random, this.hostile),
      rush.start(),
    ];
  }

  #breakAll(world: Breakable, pulse: Pulse): Promise<void> {
    const { faultEveryMs, onFault } = this.#options;
    const told = (fault: FaultTold): void => {
      this.faults.push(fault);
      onFault(fault);
    };
    return breakEvery({ world, pulse, runMs: this.#runMs, everyMs: faultEveryMs, onFault: told });
  }

  /** What was wrong besides the books, one sentence each. */
  #found(fleet: Fleet): string[] {
    const grown = this.verdicts.filter(({ flat }) => !flat);
    const ended = fleet.endedAlone().map(({ name, logFile }) => `the ${name} ended by itself; its log is ${logFile}`);
    const judged = (name: string): boolean => this.verdicts.some(({ what }) => what.startsWith(`${name} `));
    const missing = ['api', 'worker', 'keeper', 'Redis', 'MySQL'].filter((name) => !judged(name));
    return [
      ...grown.map(({ what, first, last, unit }) => `${what} is not flat: ${first} → ${last} (${unit})`),
      ...(this.#runMs < JUDGED_FROM_MS ? [] : missing.map((name) => `nothing could be said of the memory of ${name}`)),
      ...[...this.crowd.wrong, ...this.hostile.wrong, ...ended],
    ];
  }
}

/** For the sweep that ends what nobody paid, after the last window has passed. */
const SWEEP_MAX_MS = 60_000;
/** They are looked for every 30 s, and each takes some seconds: enough for fifty after the last kill of Redis. */
export const REBUILT_MAX_MS = 180_000;
/** The last re-drive begins after 30 s and needs as long; the rest is a shared machine. */
const REST_MAX_MS = 120_000;

/**
 * Load and faults are over: whoever does not know asks again, what nobody paid ends, every sale comes to rest and is
 * held against all that its buyers heard.
 * @param all one client for each sale
 * @returns what is wrong, one sentence each
 */
export async function finalCheck(arena: Arena, all: readonly Buyers[]): Promise<string[]> {
  for (const { saleId } of all)
    await arena.until(`sale ${saleId} is rebuilt`, () => isWhole(arena, saleId), REBUILT_MAX_MS);
  for (const buyers of all) await buyers.askAgain();
  await arena.until('every order is paid or has ended', () => noneIsOpen(arena), PAYMENT_WINDOW_MS + SWEEP_MAX_MS, 500);
  const wrong: string[] = [];
  for (const { saleId, opLog } of all) {
    try {
      const { rows } = await arena.rest(saleId, REST_MAX_MS);
      const yes = opLog.count('ok');
      if (rows !== yes) wrong.push(`sale ${saleId}: ${yes} purchases heard yes, and ${rows} have a row`);
    } catch (error) {
      wrong.push((error as Error).message);
    }
  }
  return wrong;
}

/** Closed sales are rebuilt too, one after the other, when buyers of open ones have long been served again. */
async function isWhole({ stack }: Arena, saleId: string): Promise<boolean> {
  const { state, sameServer } = await standingOf(stack, saleId);
  return sameServer && state !== null && state !== 'repair';
}

async function noneIsOpen({ stack }: Arena): Promise<boolean> {
  const sql = "SELECT COUNT(*) AS open FROM orders WHERE state = 'pending_payment'";
  const [row] = await stack.mysql.query<{ open: string }>(sql);
  return Number(row?.open) === 0;
}

/** Short, so that orders expire all the time; longer than an outage and a look for the order take together. */
export const PAYMENT_WINDOW_MS = 60_000;

/** What every program of a soak runs with, besides what the harness sets. */
export const SOAK_ENV = {
  PAYMENT_PROVIDER: 'simulator',
  ORDER_PAYMENT_WINDOW_MS: String(PAYMENT_WINDOW_MS),
  JWT_CACHE_MAX: '1000', // full after a minute: 20,000 fill for a quarter of an hour, and look like a leak of 8 MiB
  REDRIVE_AFTER_MS: '30000', // longer than a check-back takes; the end of a soak waits for it
} as const;

/** To close what its peer has closed takes an api no time; a machine under load some. */
const HANG_UP_MAX_MS = 10_000;

/** Every buyer hangs up. @returns a sentence for each api that keeps connections all the same */
export async function heldForNobody(
  apis: readonly Pick<Program, 'pid'>[],
  withinMs = HANG_UP_MAX_MS,
): Promise<string[]> {
  closeConnections();
  const told: string[] = [];
  const leave = async ({ pid }: Pick<Program, 'pid'>): Promise<void> => {
    const guests = (): number => openOf({ pid })?.guests ?? 0;
    await until('nobody is connected', () => guests() === 0, withinMs).catch(() => {
      told.push(`api ${pid} holds ${guests()} connections whose buyers have hung up`);
    });
  };
  await Promise.all(apis.map(leave));
  return told;
}
