import type { Arena } from '../arena.js';
import type { Buyers, Load } from '../harness/buyers.js';
import type { Row } from '../row.js';
import type { Breakable } from './break-things.js';
import { Crowd, newTally, type CrowdTally, type Manners } from './crowd.js';
import { breakEvery, JUDGED_FROM_MS, type FaultTold } from './fault-loop.js';
import { finalCheck, REBUILT_MAX_MS } from './final-check.js';
import { judgePrograms, judgeServers, type Verdict } from './flatness.js';
import { Fleet } from './fleet.js';
import { heldForNobody } from './held-connections.js';
import { startHostileHand, type HostileTally } from './hostile-hand.js';
import { Pulse } from './pulse.js';
import { RushSales } from './rush-sales.js';
import { Sampler } from './samples.js';
import { SOAK_ENV } from './soak-env.js';

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
