/** Memory of one server of a store. */
export interface ServerMemory {
  /** For people: `host:port`. */
  readonly server: string;
  readonly usedBytes: number;
  /** What it may use; where it has no limit, what its machine has. */
  readonly maxBytes: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The rate of the last day counts; between two samples of it lies so much. */
const SAMPLE_EVERY_MS = HOUR_MS / 4;
/** A rush fills in an hour what a day has to get rid of: no rate is known before. */
const KNOWN_AFTER_MS = 6 * HOUR_MS;

/** How fast the memory of one server grows, over the last day. */
export class MemoryTrend {
  /** Oldest first; at most a day old, but for the first one. */
  readonly #samples: { readonly atMs: number; readonly usedBytes: number }[] = [];

  /**
   * @param nowMs monotonic
   * @returns days until the memory is full at today's rate, Infinity where it does not grow; null: not known yet
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
