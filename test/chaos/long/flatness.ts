/** One program at one moment; bytes, and counts of what it has open. */
export interface ProgramSample {
  /** `api 4711`: two lives of a program are two programs. */
  readonly program: string;
  /** Since it was started. */
  readonly ageMs: number;
  readonly rssBytes: number;
  /** In use right after a collection; null when the program did not report it. */
  readonly heapBytes: number | null;
  /** Open file descriptors without inbound connections; with the sockets that it opened itself. */
  readonly handles: number;
  readonly sockets: number;
  /** Connections that others opened to it: as many as buyers wait for an answer. */
  readonly inbound: number;
}

/** The servers at one moment. */
export interface ServerSample {
  /** Since the soak started. */
  readonly ageMs: number;
  readonly redisConnections: number;
  readonly redisBytes: number;
  readonly redisKeys: number;
  readonly mysqlConnections: number;
  /** Rows in MySQL, in any state. */
  readonly orders: number;
}

/** Grown means: beyond the ratio and by more than the slack, both. */
export interface Limit {
  readonly ratio: number;
  readonly slack: number;
}

export interface Verdict {
  readonly what: string;
  readonly unit: 'bytes' | 'count' | 'bytes per order' | 'keys per order';
  /** Median of the first third; 0 for what is judged per order. */
  readonly first: number;
  /** Median of the last third; for what is judged per order, its growth over the whole time. */
  readonly last: number;
  readonly flat: boolean;
}

const MIB = 1024 * 1024;

/** A program is judged if it ran so long: a shorter time shows its start and little else. */
export const LIFE_MIN_MS = 180_000;
/** Code is compiled, pools and caches fill: the first minute is not compared. */
const WARM_UP_MS = 60_000;
/** Fewer samples have no thirds worth comparing. */
const SAMPLES_MIN = 9;
/**
 * What is in use after a collection moves by 3 MiB. At fifty purchases a second 8 MiB in ten minutes are a leak of 300
 * bytes per purchase.
 */
const HEAP_LIMIT: Limit = { ratio: 1.1, slack: 8 * MIB };
/** Pages that the allocator keeps, and buffers outside the heap. */
export const MEMORY_LIMIT: Limit = { ratio: 1.25, slack: 32 * MIB };
/** Pools that shrink move it by some; one handle lost per fault or per minute is beyond it. */
const HANDLE_LIMIT: Limit = { ratio: 1.25, slack: 16 };
/** A program that starts again has other connections than the one that was killed, and pools that fill later. */
const CONNECTION_LIMIT: Limit = { ratio: 1.25, slack: 8 };
/**
 * Redis keeps of a purchase its entry, its buyer and, for a batch of one, its marker: some 400 bytes in all, and one
 * key. Room for batches that were refused, whose markers last a day.
 */
const REDIS_BYTES_PER_ORDER_MAX = 1024;
const REDIS_KEYS_PER_ORDER_MAX = 1.5;
/** Not of orders: buffers of connections, and tables that double. Sale snapshots, and markers of refused batches. */
const REDIS_BYTES_SLACK = 4 * MIB;
const REDIS_KEYS_SLACK = 200;

/** @returns null when there are too few values to say anything */
export function compareThirds(
  values: readonly number[],
  { ratio, slack }: Limit,
): Pick<Verdict, 'first' | 'last' | 'flat'> | null {
  if (values.length < SAMPLES_MIN) return null;
  const third = Math.floor(values.length / 3);
  const first = median(values.slice(0, third));
  const last = median(values.slice(-third));
  return { first, last, flat: last <= first * ratio || last - first <= slack };
}

/** Memory and handles of every program that lived long enough, each life by itself. */
export function judgePrograms(samples: readonly ProgramSample[]): Verdict[] {
  const lives = new Map<string, ProgramSample[]>();
  for (const sample of samples) lives.set(sample.program, [...(lives.get(sample.program) ?? []), sample]);
  return [...lives].flatMap(([program, life]) => {
    if ((life.at(-1)?.ageMs ?? 0) < LIFE_MIN_MS) return [];
    const warm = life.filter(({ ageMs }) => ageMs >= WARM_UP_MS);
    const heap = warm.flatMap(({ heapBytes }) => (heapBytes === null ? [] : [heapBytes]));
    return [
      ...verdict(
        `${program} memory`,
        'bytes',
        warm.map(({ rssBytes }) => rssBytes),
        MEMORY_LIMIT,
      ),
      ...verdict(`${program} heap`, 'bytes', heap, HEAP_LIMIT),
      ...verdict(
        `${program} handles`,
        'count',
        warm.map(({ handles }) => handles),
        HANDLE_LIMIT,
      ),
      ...verdict(
        `${program} sockets`,
        'count',
        warm.map(({ sockets }) => sockets),
        HANDLE_LIMIT,
      ),
    ];
  });
}

/** Connections at the servers, and what an order costs Redis. */
export function judgeServers(samples: readonly ServerSample[]): Verdict[] {
  if ((samples.at(-1)?.ageMs ?? 0) < LIFE_MIN_MS) return [];
  const warm = samples.filter(({ ageMs }) => ageMs >= WARM_UP_MS);
  return [
    ...verdict(
      'Redis connections',
      'count',
      warm.map(({ redisConnections }) => redisConnections),
      CONNECTION_LIMIT,
    ),
    ...verdict(
      'MySQL connections',
      'count',
      warm.map(({ mysqlConnections }) => mysqlConnections),
      CONNECTION_LIMIT,
    ),
    ...perOrder('Redis memory', 'bytes per order', warm, ({ redisBytes }) => redisBytes, {
      perOrderMax: REDIS_BYTES_PER_ORDER_MAX,
      slack: REDIS_BYTES_SLACK,
    }),
    ...perOrder('Redis keys', 'keys per order', warm, ({ redisKeys }) => redisKeys, {
      perOrderMax: REDIS_KEYS_PER_ORDER_MAX,
      slack: REDIS_KEYS_SLACK,
    }),
  ];
}

/** The middle value; of an even number the upper of the two. NaN for none. */
export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function verdict(what: string, unit: Verdict['unit'], values: readonly number[], limit: Limit): Verdict[] {
  const compared = compareThirds(values, limit);
  return compared === null ? [] : [{ what, unit, ...compared }];
}

/** What grows with the orders may; it is its growth per order that is limited. */
function perOrder(
  what: string,
  unit: Verdict['unit'],
  samples: readonly ServerSample[],
  valueOf: (sample: ServerSample) => number,
  { perOrderMax, slack }: { readonly perOrderMax: number; readonly slack: number },
): Verdict[] {
  const value = compareThirds(samples.map(valueOf), MEMORY_LIMIT);
  const orders = compareThirds(
    samples.map((sample) => sample.orders),
    MEMORY_LIMIT,
  );
  if (value === null || orders === null || orders.last <= orders.first) return [];
  const [growth, made] = [value.last - value.first, orders.last - orders.first];
  const last = Math.round((100 * growth) / made) / 100;
  return [{ what, unit, first: 0, last, flat: growth <= perOrderMax * made + slack }];
}
