// What one check of the limits costs at 1,000 requests under way, and how many round trips it takes:
//   REDIS_URL=redis://127.0.0.1:16379 node --import tsx bench/admission/limit-cost.ts [seconds]
// It writes under endpoints of its own, which end with their windows. Exit code 1: something failed.
import { randomBytes } from 'node:crypto';
import { steadyClock } from '../../src/programs/system-clock.js';
import { loadConfig } from '../../src/core/config/load.js';
import { limitsRules, type LimitsRules, Limits } from '../../src/admission/limits/limits.js';
import type { Caller } from '../../src/admission/layer.js';
import type { LimitStore } from '../../src/core/ports/admission-stores.js';
import type { AdmissionMetrics } from '../../src/admission/metrics.js';
import { noAdmissionMetrics } from '../../test/helpers/no-admission-metrics.js';
import { silentLog } from '../../test/helpers/silent-log.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { createLimitStore } from '../../src/redis/limit-store.js';

const REQUESTS_UNDER_WAY = 1000;
const WARM_MS = 1000;
/** So many buyers and addresses take turns, an address for every ten buyers. */
const BUYERS = 50_000;
const BUYERS_PER_ADDRESS = 10;
/** A busy machine may pause; requests that the process counts by itself would spoil the figures. */
const REPLY_TIMEOUT_MS = 5000;
/** Steps between looks at the clock where nothing is waited for. */
const STEPS_PER_LOOK = 1000;

interface Cost {
  readonly name: string;
  readonly perSecond: number;
  /** Processor time of this process per request, µs. */
  readonly ownUs: number;
  /** Processor time of Redis per request, µs. */
  readonly redisUs: number;
  readonly roundTrips: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Wide enough that nobody is refused: a request that is allowed costs most. */
const WIDE = { limit: 1_000_000, windowMs: 10_000 };
const ON = {
  mode: 'on',
  replyTimeoutMs: REPLY_TIMEOUT_MS,
  purchase: { global: { ratePerSecond: 1_000_000, burst: 1_000_000 }, user: WIDE, ip: WIDE },
} as const;

const CASES: readonly (readonly [name: string, rules: LimitsRules])[] = [
  ['off', limitsRules.parse({})],
  ['all of them', limitsRules.parse(ON)],
  ['bucket only', limitsRules.parse({ ...ON, purchase: { global: ON.purchase.global } })],
  ['everybody refused', limitsRules.parse({ ...ON, purchase: { ip: { limit: 1, windowMs: 60_000 } } })],
];

/** Seconds of processor that Redis has used. */
async function redisSeconds({ redis }: RedisConnection): Promise<number> {
  const text = await redis.info('cpu');
  const figure = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1]);
  return figure('used_cpu_user') + figure('used_cpu_sys');
}

/** Nearest rank. */
const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;

async function measure(connection: RedisConnection, [name, rules]: (typeof CASES)[number], ms: number): Promise<Cost> {
  const run = randomBytes(4).toString('hex');
  const shared = createLimitStore(connection);
  let calls = 0;
  const store: LimitStore = {
    take: (call) => {
      calls++;
      return shared.take({ ...call, endpoint: `bench-${run}` });
    },
  };
  const parts = { rules: () => rules, store, clock: steadyClock, metrics: onlyRedis, log: silentLog };
  const limits = new Limits(parts);
  let done = 0;
  let waits: number[] = [];
  let endMs = performance.now() + WARM_MS;
  const buyer = async (place: number): Promise<void> => {
    for (let step = place; performance.now() < endMs; step += REQUESTS_UNDER_WAY) {
      const user = step % BUYERS;
      const address = Math.floor(user / BUYERS_PER_ADDRESS);
      const caller: Caller = { endpoint: 'purchase', address: `10.0.${address >> 8}.${address & 255}`, agent: '' };
      const askedMs = performance.now();
      if (limits.mode === 'off') done += callOften(limits);
      else {
        if ((await limits.anonymous(caller)) === null) await limits.buyer(caller, `u${user}`);
        done++;
      }
      waits.push(performance.now() - askedMs);
    }
  };
  const crowd = (): Promise<unknown> =>
    Promise.all(Array.from({ length: REQUESTS_UNDER_WAY }, (_, place) => buyer(place)));
  await crowd();
  [done, calls, waits] = [0, 0, []];
  const [own, redis, fromMs] = [process.cpuUsage(), await redisSeconds(connection), performance.now()];
  endMs = fromMs + ms;
  await crowd();
  const { user, system } = process.cpuUsage(own);
  const seconds = (performance.now() - fromMs) / 1000;
  const redisUs = ((await redisSeconds(connection)) - redis) * 1_000_000;
  waits.sort((a, b) => a - b);
  return {
    name,
    perSecond: done / seconds,
    ownUs: (user + system) / done,
    redisUs: redisUs / done,
    roundTrips: calls / done,
    p50Ms: percentile(waits, 0.5),
    p99Ms: percentile(waits, 0.99),
  };
}

const onlyRedis: AdmissionMetrics = {
  ...noAdmissionMetrics,
  requestsCounted: (by) => {
    if (by === 'local') throw new Error(`Redis did not answer within ${REPLY_TIMEOUT_MS} ms`);
  },
};

/** While it is off, admission reads the mode and no more; many times at once, or the clock would be measured. */
function callOften(limits: Limits): number {
  for (let i = 1; i < STEPS_PER_LOOK; i++) if (limits.mode !== 'off') throw new Error('not off');
  return STEPS_PER_LOOK;
}

const seconds = Number(process.argv[2] ?? 5);
const connection = await connectRedis(
  { ...loadConfig(['redis'], process.env).redis, replyTimeoutMs: REPLY_TIMEOUT_MS },
  silentLog,
);
try {
  console.log('| limits | requests/s | own µs | Redis µs | round trips | p50 ms | p99 ms |');
  console.log('|---|---|---|---|---|---|---|');
  for (const one of CASES) {
    const cost = await measure(connection, one, seconds * 1000);
    const { name, perSecond, ownUs, redisUs, roundTrips, p50Ms, p99Ms } = cost;
    const figures = [ownUs.toFixed(3), redisUs.toFixed(2), roundTrips.toFixed(4), p50Ms.toFixed(2), p99Ms.toFixed(2)];
    console.log(`| ${name} | ${Math.round(perSecond)} | ${figures.join(' | ')} |`);
  }
} finally {
  await connection.close();
}
