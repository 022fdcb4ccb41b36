import { waitUntil } from '../../../deploy/local/stack/probes.js';
import type { ScenarioContext } from '../context.js';
import type { Buyers } from '../harness/buyers.js';
import { closeConnections } from '../harness/http.js';
import type { Program } from '../harness/programs.js';
import { bucketStatusOf } from '../harness/redis.js';
import type { Scenario } from '../scenario.js';
import { breakEvery, JUDGED_FROM_MS, type FaultReport } from './faults.js';
import { judgePrograms, judgeServers, type Verdict } from '../long/flatness.js';
import {
  BuyerLoad,
  LastSuccess,
  newTally,
  SelloutSales,
  startInvalidRequests,
  type BuyerHabits,
  type BuyerTally,
  type InvalidTally,
} from './load.js';
import { openOf, Sampler, SoakPrograms } from '../long/samples.js';

/** Short, so that orders expire all the time; longer than an outage and a poll for the order together. */
const PAYMENT_WINDOW_MS = 60_000;

/** What every program of a soak runs with, besides what the harness sets. */
const SOAK_ENV = {
  PAYMENT_PROVIDER: 'simulator',
  ORDER_PAYMENT_WINDOW_MS: String(PAYMENT_WINDOW_MS),
  JWT_CACHE_MAX: '1000', // full after a minute: 20,000 fill for a quarter of an hour, and look like a leak of 8 MiB
  REDRIVE_AFTER_MS: '30000', // longer than a check-back takes; the end of a soak waits for it
} as const;

/** Two that never sell out: in one a buyer may have a single live order, in the other two units. */
const STEADY_SALES = [{ limitPerBuyer: 1 }, { limitPerBuyer: 2 }];
/** More than a soak of hours sells. */
const STEADY_STOCK = 1_000_000;
/** What is not paid or cancelled expires. */
const STEADY_HABITS: BuyerHabits = { parallel: 3, repeat: 0.1, pay: 0.5, cancel: 0.5 };
/** Start, rest and check of a long soak. */
const AROUND_MS = 15 * 60_000;
/** Further problems would only repeat the first ones. */
const PROBLEMS_MAX = 20;

export interface SoakOptions {
  readonly minutes: number;
  readonly faultEveryMs: number;
  /** Called with each fault as soon as it is over. */
  readonly onFault: (fault: FaultReport) => void;
  /** After it nothing is broken or started any more: the servers are being stopped. */
  readonly signal: AbortSignal;
}

/** Mixed load and random faults for minutes, as one scenario; the measurements stay here. */
export class Soak {
  readonly faults: FaultReport[] = [];
  readonly buyers: BuyerTally = newTally();
  readonly invalidRequests: InvalidTally = { sent: 0, wrong: [] };
  verdicts: readonly Verdict[] = [];
  sales = { opened: 0, soldOut: 0 };
  readonly #options: SoakOptions;
  readonly #runMs: number;

  constructor(options: SoakOptions) {
    this.#options = options;
    this.#runMs = options.minutes * 60_000;
  }

  get scenario(): Scenario {
    const { minutes, faultEveryMs } = this.#options;
    return {
      name: 'soak',
      title: `${minutes} minutes of mixed load with a fault every ${faultEveryMs / 1000} s`,
      alone: true,
      mayFail: ['units_lost'], // a kill of Redis may cost what came after the last write of its log
      healMaxMs: REBUILT_MAX_MS, // of closed sales
      timeoutMs: this.#runMs + AROUND_MS,
      run: (context) => this.#run(context),
    };
  }

  async #run(context: ScenarioContext): Promise<void> {
    const { random } = context;
    const { faultEveryMs, onFault, signal } = this.#options;
    const proxies = {
      redis: await context.proxy('redis'),
      mysql: await context.proxy('mysql'),
      broker: await context.proxy('broker'),
    };
    const env = { ...SOAK_ENV, ...proxies.redis.env, ...proxies.mysql.env, ...proxies.broker.env };
    const programs = await SoakPrograms.start(context, env);
    const apis = (): Program[] => programs.apis();
    const closesAtMs = Date.now() + this.#runMs + 2 * AROUND_MS;
    const steady: Buyers[] = [];
    for (const { limitPerBuyer } of STEADY_SALES) {
      const { saleId } = await context.openSale({ stock: STEADY_STOCK, limitPerBuyer, closesAtMs });
      steady.push(context.buyers(saleId, apis));
    }
    const saleIds = steady.map(({ saleId }) => saleId);
    const lastSuccess = new LastSuccess();
    const sellouts = new SelloutSales(context, apis, lastSuccess, this.buyers, closesAtMs);
    const urls = (): string[] => apis().map(({ url }) => url);
    const loads = [
      ...steady.map((buyers) => new BuyerLoad(random, buyers, STEADY_HABITS, lastSuccess, this.buyers).start()),
      startInvalidRequests(steady[0] as Buyers, urls, random, this.invalidRequests),
      sellouts.start(),
    ];
    const sampler = new Sampler(programs, context.stack);
    try {
      await context.until('the load is on', () => lastSuccess.orderedSince(0, saleIds));
      await breakEvery({ context, programs, proxies, saleIds, signal }, lastSuccess, {
        runMs: this.#runMs,
        everyMs: faultEveryMs,
        onFault: (fault) => {
          this.faults.push(fault);
          onFault(fault);
        },
      });
    } finally {
      await Promise.all(loads.map((load) => load.stop()));
      await sampler.stop();
    }
    const leaked = await leakedConnections(apis());
    // open sales within the time of every scenario; closed ones may take longer
    const late = await context.recovered(saleIds).then(
      () => [],
      ({ message }: Error) => [message],
    );
    this.sales = { opened: steady.length + sellouts.buyers.length, soldOut: sellouts.soldOut };
    this.verdicts = [...judgePrograms(sampler.programs), ...judgeServers(sampler.servers)];
    const all = [...steady, ...sellouts.buyers];
    const inSales = await problemsInSales(context, all).catch((error: Error) => [error.message]);
    const problems = [...leaked, ...late, ...inSales, ...this.#problems(programs)];
    if (problems.length > 0) throw new Error(problems.slice(0, PROBLEMS_MAX).join('; '));
  }

  /** What is wrong besides the sales, one sentence each. */
  #problems(programs: SoakPrograms): string[] {
    const grown = this.verdicts.filter(({ flat }) => !flat);
    const ended = programs.endedAlone();
    const isJudged = (name: string): boolean => this.verdicts.some(({ what }) => what.startsWith(`${name} `));
    const unjudged = ['api', 'worker', 'keeper', 'Redis', 'MySQL'].filter((name) => !isJudged(name));
    return [
      ...grown.map(({ what, first, last, unit }) => `${what} is not flat: ${first} → ${last} (${unit})`),
      ...(this.#runMs < JUDGED_FROM_MS ? [] : unjudged.map((name) => `too few samples of ${name} to judge it`)),
      ...this.buyers.wrong,
      ...this.invalidRequests.wrong,
      ...ended.map(({ name, logFile }) => `the ${name} ended by itself; its log is ${logFile}`),
    ];
  }
}

/** Each takes the keeper some seconds: enough for fifty after the last kill of Redis. */
const REBUILT_MAX_MS = 180_000;
/** The last re-drive starts after 30 s and needs as long; the rest is for a shared machine. */
const REST_MAX_MS = 120_000;

/**
 * After load and faults: purchases without an answer are retried, unpaid orders end, every sale comes to rest and its
 * invariants are checked.
 * @param all one client for each sale
 * @returns what is wrong, one sentence each
 */
async function problemsInSales(context: ScenarioContext, all: readonly Buyers[]): Promise<string[]> {
  const { stack } = context;
  for (const buyers of all) {
    const { saleId } = buyers;
    await context.until(
      `sale ${saleId} is rebuilt`,
      async () => {
        const { state, sameServer } = await bucketStatusOf(stack, saleId);
        if (sameServer && state !== null && state !== 'repair') return true;
        await buyers.status('late').catch(() => null); // a closed sale is rebuilt once somebody asks for what only Redis may hold
        return false;
      },
      { grantedMs: REBUILT_MAX_MS },
    );
  }
  for (const buyers of all) await buyers.retryUnknown();
  const areOver = async (): Promise<boolean> => {
    const sql = "SELECT COUNT(*) AS open FROM orders WHERE state = 'pending_payment'";
    const [row] = await stack.mysql.query<{ open: string }>(sql);
    return Number(row?.open) === 0;
  };
  await context.until('every order is paid or has ended', areOver, { everyMs: 500 });
  const problems: string[] = [];
  for (const { saleId, opLog } of all) {
    try {
      const { rows } = await context.expectInvariants(saleId, REST_MAX_MS);
      const accepted = opLog.count('ok');
      if (rows !== accepted)
        problems.push(`sale ${saleId}: ${accepted} purchases were accepted, and ${rows} have a row`);
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  return problems;
}

/** An api closes at once what its peer has closed; a machine under load needs some time. */
const CLOSED_WITHIN_MS = 10_000;

/** Closes every connection of buyers. @returns a sentence for each api that keeps some all the same */
async function leakedConnections(
  apis: readonly Pick<Program, 'pid'>[],
  withinMs = CLOSED_WITHIN_MS,
): Promise<string[]> {
  closeConnections();
  const leaks = apis.map(async ({ pid }): Promise<string[]> => {
    const inbound = (): number => openOf({ pid })?.inbound ?? 0;
    const areClosed = await waitUntil(() => inbound() === 0, { timeoutMs: withinMs, everyMs: 50 });
    return areClosed ? [] : [`api ${pid} holds ${inbound()} connections that buyers have closed`];
  });
  return (await Promise.all(leaks)).flat();
}
