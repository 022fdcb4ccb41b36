import { randomBytes } from 'node:crypto';
import { breakerRules, DEPENDENCIES, type BreakerRules } from '../../src/admission/breaker/breaker-rules.js';
import { REPORT_TIMES, SharedBreakers } from '../../src/admission/breaker/shared-breakers.js';
import { Degrade, degradeRules, type DegradeRules } from '../../src/admission/degrade/degrade.js';
import { loadConfig } from '../../src/core/config/load.js';
import type { BreakerStore } from '../../src/core/ports/admission-stores.js';
import { systemClock } from '../../src/programs/system-clock.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { createLimitStore } from '../../src/redis/limit-store.js';
import { createNonceStore } from '../../src/redis/nonce-store.js';
import { createPurchaseTokenStore } from '../../src/redis/purchase-token-store.js';
import { noAdmissionMetrics as metrics } from '../../test/helpers/no-metrics.js';
import { silentLog } from '../../test/helpers/silent-log.js';
import { costOfCall, costWhileConcurrent, type LayerCost } from './cost.js';
import { freshTokenCosts } from './fresh-tokens.js';
import { evenStreamCosts, limitCosts, listsCost } from './lists-and-limits.js';
import { passCost, signCosts, tokenCosts } from './signatures-and-tokens.js';
import { inChildProcess } from '../load/child.js';
import { secondsOf, type Context } from '../scenarios/context.js';

/** Every admission layer, alone. */
export interface LayersFigures {
  readonly kind: 'layers';
  readonly scenario: 'layers';
  readonly costs: readonly LayerCost[];
}

/** What each admission layer costs per request, on and off: in process, where a socket would hide it. */
export async function layers(context: Context): Promise<LayersFigures> {
  const { session } = context;
  session.progress('layers: each admission layer, on and off');
  const task = { redisUrl: session.stack.env().REDIS_URL, ms: secondsOf(context, 'layers') * 1000 };
  return { kind: 'layers', scenario: 'layers', costs: await measureLayers(task, session.signal) };
}

/** A busy machine may pause. */
const REPLY_TIMEOUT_MS = 30_000;

async function redisSeconds({ redis }: RedisConnection): Promise<number> {
  const text = await redis.info('cpu');
  const figure = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1]);
  return figure('used_cpu_user') + figure('used_cpu_sys');
}

interface LayersTask {
  readonly redisUrl: string;
  /** Counted time of each case that calls Redis. */
  readonly ms: number;
}

/** Measures every admission layer in a process that does nothing else. */
const measureLayers = inChildProcess<LayersTask, LayerCost[]>(import.meta.url, async ({ redisUrl, ms }) => {
  const options = { ...loadConfig(['redis'], { ...process.env, REDIS_URL: redisUrl }).redis };
  const connection = await connectRedis({ ...options, replyTimeoutMs: REPLY_TIMEOUT_MS }, silentLog);
  try {
    const shared = { redisCpu: () => redisSeconds(connection), ms };
    const stores = { nonces: createNonceStore(connection), tokens: createPurchaseTokenStore(connection), ...shared };
    const run = randomBytes(4).toString('hex');
    return [
      ...freshTokenCosts(),
      listsCost(),
      ...(await limitCosts({ store: createLimitStore(connection), run, ...shared })),
      ...(await evenStreamCosts({ ms })),
      ...(await signCosts(stores)),
      ...(await tokenCosts(stores)),
      passCost(),
      ...(await breakerCosts({ ms })),
      degradeCost(),
    ];
  } finally {
    await connection.close();
  }
});

const NO_STORE: BreakerStore = { exchange: () => Promise.resolve([]), withdraw: () => Promise.resolve() };
function breakers(rules: BreakerRules): SharedBreakers {
  const ports = { store: NO_STORE, clock: systemClock, random: Math.random, metrics, log: silentLog };
  return new SharedBreakers({ rules: () => rules, ...ports }, { processId: 'bench', ...REPORT_TIMES });
}

const rulesOf = (mode: BreakerRules['mode']): BreakerRules => breakerRules.parse({ mode });
/** Neither slow nor failing, so that the breaker stays closed. */
const DONE = Promise.resolve();
const call = (): Promise<void> => DONE;

/** The breakers: called once per request, and around each call to a dependency. A batch is one such call for many purchases. */
async function breakerCosts({ ms }: { readonly ms: number }): Promise<LayerCost[]> {
  const [off, on] = [breakers(rulesOf('off')), breakers(rulesOf('on'))];
  const asks = (one: SharedBreakers) => () => DEPENDENCIES.some((dependency) => one.refuses(dependency));
  const watches = (one: SharedBreakers) => () => one.watch('redis', call);
  const [watchedOff, watchedOn] = [
    await costWhileConcurrent(watches(off), { ms }),
    await costWhileConcurrent(watches(on), { ms }),
  ];
  const none = { refusedUs: null, redisUs: null };
  return [
    { name: 'breaker, asked for all three', offUs: costOfCall(asks(off)), inUs: costOfCall(asks(on)), ...none },
    { name: 'breaker, a call watched', offUs: watchedOff.ownUs, inUs: watchedOn.ownUs, ...none },
  ];
}

/** The level of a purchase: everything in order, with the breakers asked; and switched off. */
function degradeCost(): LayerCost {
  const closed = breakers(rulesOf('on'));
  const levels = (rules: DegradeRules) => {
    const refuses = closed.refuses.bind(closed);
    const degrade = new Degrade({ rules: () => rules, refuses, metrics });
    return (place: number) => degrade.rulingOf('purchase', USERS[place & (USERS.length - 1)] as string);
  };
  const switched = { purchase: { level: 'L4', percent: 50 } };
  return {
    name: 'degradation, breakers closed',
    offUs: costOfCall(levels(degradeRules.parse({}))),
    inUs: costOfCall(levels(degradeRules.parse({ mode: 'on' }))),
    refusedUs: costOfCall(levels(degradeRules.parse({ mode: 'on', switches: switched }))),
    redisUs: null,
  };
}

const USERS = Array.from({ length: 1024 }, (_, place) => `u${place}`);
