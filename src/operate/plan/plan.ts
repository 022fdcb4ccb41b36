import { loadConfig } from '../../core/config/load.js';
import { SCHEMA } from '../../core/config/schema.js';
import { BUCKETS_MAX } from '../../core/bucket.js';
import { OPEN_POLL_MS } from '../../sales/poll-after.js';
import type { UnitCosts } from './unit-costs.js';

export interface Load {
  /** Purchase attempts per second at the peak. */
  readonly tries: number;
  /** Attempts that get a unit, all within the first second. */
  readonly winners: number;
  /** Number of open sale pages. */
  readonly readers: number;
}

interface PlanLine {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly rule: string;
  /** The source of the figures in the rule. */
  readonly source: string;
}

/** A limit that more machines alone do not raise. */
export interface PlanLimit {
  readonly what: string;
  /** The fraction of the limit that the load uses. If above 1, the load does not fit. */
  readonly share: number;
  readonly rule: string;
  readonly source: string;
  /** How to get past the limit. */
  readonly todo: string;
}

export interface Plan {
  readonly load: Load;
  readonly lines: readonly PlanLine[];
  /** Sorted, so that the limit that will be reached first comes first. */
  readonly limits: readonly PlanLimit[];
}

const POOL_MAX = SCHEMA.mysql.poolMax.fallback as number;
/** CPU, memory of Redis and connections of MySQL are planned to be used at half of their capacity. */
const HEADROOM = 2;
/** Objective: 99.9 % of the accepted purchases are orders within this time, in seconds. */
const LAND_WITHIN_S = 5;
/** Seconds between two reads of an open page. A cache answers most of these reads. */
const READ_EVERY_S = OPEN_POLL_MS / 1000;
/** Number of rounds, enough for the figures to settle. */
const ROUNDS = 100;
const BROKER_CORES = 4;
const REFUSAL_BYTES = 400;
const READ_BYTES = 700;
const PROGRAM_MB = 300;
const REDIS_PURCHASE_BYTES = 181;
const ROOM_PLACE_BYTES = 206;
const MYSQL_ORDER_BYTES = 530;
const BROKER_ORDER_BYTES = 550;

const ASSUMED = 'assumed';
const BENCH = 'bench/README.md';
const SIZING = 'docs/deployment.md';

export function planFor(load: Load, costs: UnitCosts): Plan {
  const { tries, winners, readers } = load;
  const { batch, notifications } = loadConfig(['batch', 'notifications'], {});
  const { sizeMax, gatherMs } = batch;
  const reads = readers / READ_EVERY_S;
  const landed = winners / LAND_WITHIN_S;
  const cores = (perSecond: number, micros: number): number => (HEADROOM * perSecond * micros) / 1e6;
  const atLeast = (least: number, needed: number): number => Math.max(least, Math.ceil(needed));

  type Part = 'api' | 'worker' | 'keeper' | 'redis' | 'mysql' | 'broker';
  let [apis, buckets, batchSize] = [2, 1, 1];
  const perOrder = (part: Part): number => costs[part].full + (costs[part].single - costs[part].full) / batchSize;
  // More apis and buckets make batches smaller, and smaller batches need more apis and buckets.
  for (let round = 0; round < ROUNDS; round++) {
    batchSize = Math.max(1, Math.min(sizeMax, (winners * gatherMs) / (1000 * apis * buckets)));
    const others = cores(tries - winners, costs.refusal) + cores(reads, costs.read);
    apis = atLeast(2, cores(winners, perOrder('api')) + others);
    buckets = atLeast(1, Math.max((HEADROOM * winners) / costs.deductsPerSecond, cores(winners, perOrder('redis'))));
  }
  const workers = atLeast(2, cores(landed, perOrder('worker')));
  const keepers = atLeast(2, cores(landed, perOrder('keeper')));
  const mysqlCores = atLeast(1, cores(landed, perOrder('mysql')));
  const brokers = atLeast(1, cores(winners, perOrder('broker')) / BROKER_CORES);
  const programs = apis + workers + keepers;
  const { source } = costs;
  const micros = (part: Part): string => `${Math.round(perOrder(part))} µs`;
  const inAll = `${HEADROOM} × winners × `;
  const landing = `${HEADROOM} × winners in ${LAND_WITHIN_S} s × `;
  const apiRule = `${inAll}${micros('api')} + ${HEADROOM} × refusals × ${costs.refusal} µs + ${HEADROOM} × readers / ${READ_EVERY_S} s × ${costs.read} µs`;
  const bucketRule = `${inAll}${micros('redis')}, or ${inAll}1 s / ${costs.deductsPerSecond} deducts if that is more`;
  const sentBytes = tries * REFUSAL_BYTES + reads * READ_BYTES;
  const keptBytes = winners * REDIS_PURCHASE_BYTES + readers * ROOM_PLACE_BYTES;
  const lines = (
    [
      ['apis', apis, 'processes of one core', `${apiRule}; 2 at least`, source],
      ['workers', workers, 'processes of one core', `${landing}${micros('worker')}; 2 at least`, source],
      ['keepers', keepers, 'processes of one core', `${landing}${micros('keeper')}; 2 at least`, source],
      [
        'batch',
        batchSize,
        'purchases',
        `winners × ${gatherMs} ms / apis / buckets; 1 to ${sizeMax}`,
        'src/core/config',
      ],
      ['buckets', buckets, '', bucketRule, source],
      ['Redis', 2 * buckets, 'servers of one core', 'a master per bucket, and a replica of each', source],
      [
        'RocketMQ',
        2 * brokers,
        `servers of ${BROKER_CORES} cores`,
        `${inAll}${micros('broker')}; a slave of each`,
        source,
      ],
      [
        'MySQL',
        3,
        `servers of ${mysqlCores === 1 ? 'one core' : `${mysqlCores} cores`}`,
        `${landing}${micros('mysql')}; two semi-synchronous replicas`,
        source,
      ],
      ['connections of buyers', tries + readers, 'at the proxies', 'one per attempt and page', ASSUMED],
      [
        'connections of MySQL',
        HEADROOM * programs * POOL_MAX,
        '',
        `${HEADROOM} × MYSQL_POOL_MAX (${POOL_MAX}) × programs`,
        SIZING,
      ],
      [
        'bandwidth to buyers',
        (sentBytes * 8) / 1e9,
        'Gbit/s',
        `${REFUSAL_BYTES} bytes per refusal, ${READ_BYTES} per reader and ${READ_EVERY_S} s`,
        ASSUMED,
      ],
      ['memory of programs', (programs * PROGRAM_MB) / 1000, 'GB', `${PROGRAM_MB} MB each`, SIZING],
      [
        'memory of Redis',
        (HEADROOM * keptBytes) / 1e9,
        'GB',
        `${HEADROOM} × (winners × ${REDIS_PURCHASE_BYTES} + readers in a waiting room × ${ROOM_PLACE_BYTES} bytes)`,
        `${SIZING}, docs/admission-queue.md`,
      ],
      ['disk of MySQL', (winners * MYSQL_ORDER_BYTES) / 1e9, 'GB', `winners × ${MYSQL_ORDER_BYTES} bytes`, SIZING],
      ['disk of RocketMQ', (winners * BROKER_ORDER_BYTES) / 1e9, 'GB', `winners × ${BROKER_ORDER_BYTES} bytes`, SIZING],
    ] as const
  ).map(([what, value, unit, rule, from]) => ({ what, value, unit, rule, source: from }));
  const slotPerSecond = 1e6 / costs.limitsInRedis;
  const limits: PlanLimit[] = [
    {
      what: 'limits per address and user, in one Redis slot',
      share: (tries * HEADROOM) / slotPerSecond,
      rule: `${HEADROOM} × tries × ${costs.limitsInRedis} µs on one core`,
      source: BENCH,
      todo: 'leave `limits` off for this sale, and hold the crowd back in a waiting room and at the proxies',
    },
    {
      what: 'rows per second of one MySQL',
      share: (landed * HEADROOM) / costs.rowsPerSecond,
      rule: `${HEADROOM} × winners in ${LAND_WITHIN_S} s / ${costs.rowsPerSecond} rows per second`,
      source,
      todo: 'orders land later than 5 s; accepted purchases wait in RocketMQ',
    },
    {
      what: 'streams of buyers who wait for their order',
      share: winners / (apis * notifications.streamsMax),
      rule: `winners / (apis × EVENTS_STREAMS_MAX, ${notifications.streamsMax})`,
      source: 'docs/configuration.md',
      todo: 'more apis, or a higher EVENTS_STREAMS_MAX; further buyers poll',
    },
    {
      what: 'buckets of one sale',
      share: buckets / BUCKETS_MAX,
      rule: `buckets / ${BUCKETS_MAX}`,
      source: 'src/core/bucket.ts',
      todo: 'split the stock into several sales',
    },
  ];
  return { load, lines, limits: limits.toSorted((one, other) => other.share - one.share) };
}
