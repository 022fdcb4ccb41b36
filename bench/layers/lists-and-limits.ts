import { Admission } from '../../src/admission/admission.js';
import type { AdmissionRequest, Layer } from '../../src/admission/layer.js';
import { Limits, limitsRules, type LimitsRules } from '../../src/admission/limits/limits.js';
import { Lists, listsRules, type ListsRules } from '../../src/admission/lists/lists.js';
import type { AdmissionMetrics } from '../../src/admission/metrics.js';
import type { LimitStore } from '../../src/core/ports/admission-stores.js';
import type { Clock } from '../../src/core/ports/clock.js';
import { systemClock } from '../../src/programs/system-clock.js';
import { noAdmissionMetrics } from '../../test/helpers/no-metrics.js';
import { silentLog } from '../../test/helpers/silent-log.js';
import { costOfCall, costWhileConcurrent, type LayerCost, type RedisCpu } from './cost.js';

/** Buyers that take turns; a power of two, so that the next one costs no division. */
const BUYERS = 1 << 15;
const BUYERS_PER_ADDRESS = 8;
const AGENT = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';

const addressOf = (buyer: number): string => {
  const address = Math.floor(buyer / BUYERS_PER_ADDRESS);
  return `10.0.${address >> 8}.${address & 255}`;
};
const REQUESTS: readonly AdmissionRequest[] = Array.from({ length: BUYERS }, (_, buyer) => ({
  endpoint: 'purchase',
  address: addressOf(buyer),
  agent: AGENT,
}));
const USERS: readonly string[] = Array.from({ length: BUYERS }, (_, buyer) => `u${buyer}`);

/** One request through admission, as the purchase route sends it: first anonymous, then as a buyer. */
function requestsTo(layer: Layer): (place: number) => unknown {
  const repository = {
    get isAnyOn(): boolean {
      return layer.mode !== 'off';
    },
  };
  const admission = new Admission(repository, [layer], noAdmissionMetrics);
  return (place) => {
    if (!admission.isOn) return null;
    const buyer = place & (BUYERS - 1);
    const request = REQUESTS[buyer] as AdmissionRequest;
    const anonymous = admission.anonymous(request);
    if (anonymous instanceof Promise)
      return anonymous.then((said) => said ?? admission.buyer(request, USERS[buyer] as string));
    return anonymous ?? admission.buyer(request, USERS[buyer] as string);
  };
}

/** Full lists: 9,000 addresses, networks of three lengths, 20 user agents, 9,000 users. */
function longLists(changes: Partial<ListsRules['addresses']> = {}): ListsRules {
  const some = (count: number, name: (index: number) => string): string[] =>
    Array.from({ length: count }, (_, index) => name(index));
  const networks = ['203.0.113.0/24', '198.51.100.0/25', '192.0.2.0/26'];
  const deny = [...some(9000, (index) => `172.16.${index >> 8}.${index & 255}`), ...networks];
  return listsRules.parse({
    mode: 'on',
    addresses: { deny, ...changes },
    agents: { deny: some(20, (index) => `bad-agent-${index}`) },
    users: { deny: some(9000, (index) => `denied-${index}`) },
  });
}

/** Lists wait for nothing. */
export function listsCost(): LayerCost {
  const costOf = (rules: ListsRules): number => costOfCall(requestsTo(new Lists(() => rules)));
  return {
    name: 'lists',
    offUs: costOf(listsRules.parse({})),
    inUs: costOf(longLists()),
    refusedUs: costOf(longLists({ deny: ['10.0.0.0/8'] })),
    redisUs: null,
  };
}

/** Wide enough that no request is refused. */
const WIDE = { limit: 1_000_000, windowMs: 10_000 };
const RATE = { ratePerSecond: 1_000_000, burst: 1_000_000 };
/** One request is the limit; the counts end a minute after the last case. */
const EXHAUSTED = { limit: 1, windowMs: 60_000 };
/** A machine that is busy may pause; requests that this process counts by itself would spoil the figures. */
const REPLY_TIMEOUT_MS = 5000;

const LIMITS: readonly (readonly [name: string, wide: object, narrow: object])[] = [
  ['limit of the address', { ip: WIDE }, { ip: EXHAUSTED }],
  ['limit of the user', { user: WIDE }, { user: EXHAUSTED }],
  ['limit of all', { global: RATE }, { global: { ratePerSecond: 1, burst: 1 } }],
  ['all three limits', { ip: WIDE, user: WIDE, global: RATE }, { ip: EXHAUSTED, user: WIDE, global: RATE }],
];

export interface LimitCostParts {
  readonly store: LimitStore;
  readonly redisCpu: RedisCpu;
  readonly ms: number;
  /** Sets the counts of this run apart from all others. */
  readonly run: string;
}

/** Each limit alone, and all of them, counted in Redis. */
export async function limitCosts({ store, redisCpu, ms, run }: LimitCostParts): Promise<LayerCost[]> {
  const layer = (rules: LimitsRules, name: string): Limits =>
    new Limits({
      rules: () => rules,
      store: { take: (call) => store.take({ ...call, endpoint: `bench-${run}-${name}` }) },
      clock: systemClock,
      metrics: redisOnly,
      log: silentLog,
    });
  const rulesOf = (purchase: object): LimitsRules =>
    limitsRules.parse({ mode: 'on', replyTimeoutMs: REPLY_TIMEOUT_MS, purchase });
  const offUs = costOfCall(requestsTo(layer(limitsRules.parse({}), 'off')));
  const costs: LayerCost[] = [];
  for (const [index, [name, wide, narrow]] of LIMITS.entries()) {
    const ask = (purchase: object, kind: string) => {
      const caller = requestsTo(layer(rulesOf(purchase), `${index}-${kind}`));
      return costWhileConcurrent(async (place) => await caller(place), { ms, redisCpu });
    };
    const [within, beyond] = [await ask(wide, 'wide'), await ask(narrow, 'narrow')];
    costs.push({ name, offUs, inUs: within.ownUs, refusedUs: beyond.ownUs, redisUs: within.redisUs });
  }
  return costs;
}

const redisOnly: AdmissionMetrics = {
  ...noAdmissionMetrics,
  requestsCounted: (by) => {
    if (by === 'local') throw new Error(`Redis did not answer within ${REPLY_TIMEOUT_MS} ms`);
  },
};

/** Purchases per second of the stream in which every request waits for its turn. */
const STREAM_PER_SECOND = 20_000;

/** Reads the real clock, for its cost, and returns a millisecond more each time: calls here come closer than any stream. */
function slowedClock(): Clock {
  let nowMs = 0;
  return { ...systemClock, monotonicMs: () => (systemClock.monotonicMs() > 0 ? ++nowMs : nowMs) };
}

/** The even stream: no request waits, each waits, none may wait. */
export async function evenStreamCosts({ ms }: Pick<LimitCostParts, 'ms'>): Promise<LayerCost[]> {
  const unused: LimitStore = { take: () => Promise.reject(new Error('no limit is set')) };
  const stream = (leaky: object | null, clock: Clock = systemClock): Limits => {
    const rules = limitsRules.parse({ mode: leaky === null ? 'off' : 'on', leaky });
    return new Limits({ rules: () => rules, store: unused, clock, metrics: noAdmissionMetrics, log: silentLog });
  };
  const calls = (limits: Limits): number => costOfCall(() => limits.smooth());
  const offUs = calls(stream(null));
  const free = calls(stream({ ratePerSecond: 1000, waitMaxMs: 0 }, slowedClock()));
  const exhausted = stream({ ratePerSecond: 1, waitMaxMs: 0 });
  void exhausted.smooth(); // the first one does not wait
  const refusedUs = calls(exhausted);
  const waiting = stream({ ratePerSecond: STREAM_PER_SECOND, waitMaxMs: 5000 });
  const waited = await costWhileConcurrent(async () => await waiting.smooth(), { ms });
  return [
    { name: 'even stream, no wait', offUs, inUs: free, refusedUs, redisUs: null },
    { name: 'even stream, each waits', offUs, inUs: waited.ownUs, refusedUs: null, redisUs: null },
  ];
}
