/** A program at one moment: its memory in bytes, and counts of its handles. */
export interface ProgramSample {
  /** Name and process id, such as `api 4711`. A restarted program counts as two programs. */
  readonly program: string;
  /** Since it was started. */
  readonly ageMs: number;
  readonly rssBytes: number;
  /** Used right after a garbage collection. Null if the program reports none. */
  readonly heapBytes: number | null;
  /** Open file descriptors, including sockets that the program opened, but without inbound connections. */
  readonly handles: number;
  readonly sockets: number;
  /** Connections from other processes. Their number depends on the number of waiting buyers. */
  readonly inbound: number;
}

/** Connections at the servers at one moment. */
export interface ServerSample {
  /** Since the run began. */
  readonly ageMs: number;
  readonly redisConnections: number;
  readonly mysqlConnections: number;
}

/** A value has grown if it exceeds both the ratio and the slack. */
interface Limit {
  readonly ratio: number;
  readonly slack: number;
}

export interface Verdict {
  readonly what: string;
  readonly unit: 'bytes' | 'count';
  /** Median of the first third, and of the last third. */
  readonly first: number;
  readonly last: number;
  readonly flat: boolean;
}

const MIB = 1024 * 1024;

/** Only programs of this age are judged, because a shorter life shows little more than the start. */
const LIFE_MIN_MS = 180_000;
/** The first minute is not compared, because code is compiled and pools and caches fill in it. */
const WARM_UP_MS = 60_000;
/** Minimum number of samples for a comparison of thirds. */
const SAMPLES_MIN = 9;
/**
 * The heap after a collection varies by 3 MiB. At fifty purchases a second, 8 MiB in ten minutes are a leak of 300
 * bytes per purchase.
 */
const HEAP_LIMIT: Limit = { ratio: 1.1, slack: 8 * MIB };
/** Leaves room for pages that the allocator keeps, and for buffers outside the heap. */
const MEMORY_LIMIT: Limit = { ratio: 1.25, slack: 32 * MIB };
/** Allows for pools that shrink. One lost handle per fault or minute exceeds the limit. */
const HANDLE_LIMIT: Limit = { ratio: 1.25, slack: 16 };
/** Allows for restarted programs, whose pools fill later. */
const CONNECTION_LIMIT: Limit = { ratio: 1.25, slack: 8 };
/** Compares the first third with the last. @returns null if there are too few values */
function compareThirds(
  values: readonly number[],
  { ratio, slack }: Limit,
): Pick<Verdict, 'first' | 'last' | 'flat'> | null {
  if (values.length < SAMPLES_MIN) return null;
  const third = Math.floor(values.length / 3);
  const first = median(values.slice(0, third));
  const last = median(values.slice(-third));
  return { first, last, flat: last <= first * ratio || last - first <= slack };
}

/** Judges memory and handles of every program that lived long enough, each process separately. */
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

/** Judges connections at the servers. */
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
  ];
}

/** Returns the middle value, or the upper of two middle values. NaN for an empty list. */
export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function verdict(what: string, unit: Verdict['unit'], values: readonly number[], limit: Limit): Verdict[] {
  const compared = compareThirds(values, limit);
  return compared === null ? [] : [{ what, unit, ...compared }];
}
