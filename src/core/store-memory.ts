/** Memory of one server of a store. */
export interface ServerMemory {
  /** For people: `host:port`. */
  readonly server: string;
  readonly usedBytes: number;
  /** Maximum memory of the server; without a limit, the memory of its machine. */
  readonly maxBytes: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Interval between two samples. The rate of the last day counts. */
const SAMPLE_EVERY_MS = HOUR_MS / 4;
/**
 * Minimum span of the samples. A rush fills in an hour the memory that takes a day to free, so no rate is known before.
 */
const KNOWN_AFTER_MS = 6 * HOUR_MS;

/** Tracks how fast the memory of one server has grown over the last day. */
export class MemoryTrend {
  /** Samples, oldest first. All but the first are at most a day old. */
  readonly #samples: { readonly atMs: number; readonly usedBytes: number }[] = [];

  /**
   * @param nowMs monotonic
   * @returns days until the memory is full at the present rate, Infinity without growth; null: not known yet
   */
  daysLeft({ usedBytes, maxBytes }: ServerMemory, nowMs: number): number | null {
    const samples = this.#samples;
    const last = samples.at(-1);
    if (last === undefined || nowMs - last.atMs >= SAMPLE_EVERY_MS) samples.push({ atMs: nowMs, usedBytes });
    while (samples.length > 1 && nowMs - (samples[1]?.atMs ?? nowMs) >= DAY_MS) samples.shift();
    const [first] = samples;
    if (first === undefined || nowMs - first.atMs < KNOWN_AFTER_MS) return null;
    const bytesPerDay = ((usedBytes - first.usedBytes) / (nowMs - first.atMs)) * DAY_MS;
    return bytesPerDay <= 0 ? Infinity : Math.max(0, maxBytes - usedBytes) / bytesPerDay;
  }
}
