export interface ServerMemory {
  /** `host:port`, for people. */
  readonly server: string;
  readonly usedBytes: number;
  /** Maximum memory of the server; without a limit, the memory of its machine. */
  readonly maxBytes: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Interval between two samples. The trend covers the last day. */
const SAMPLE_EVERY_MS = HOUR_MS / 4;
/** A rush fills in an hour as much memory as is freed in a day, so an earlier rate would mislead. */
const KNOWN_AFTER_MS = 6 * HOUR_MS;

/** Tracks how fast the memory of one server has grown over the last day. */
export class MemoryTrend {
  /** Samples, oldest first. Only the first may be more than a day old. */
  readonly #samples: { readonly atMs: number; readonly usedBytes: number }[] = [];

  /** Returns days until the memory is full; Infinity: never; null: not known yet. @param nowMs monotonic */
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
