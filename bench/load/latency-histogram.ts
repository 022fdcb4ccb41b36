import { build, type Histogram } from 'hdr-histogram-js';
import type { Latency } from './load.js';

/** In µs; a longer latency counts as this. */
const HIGHEST_US = 120_000_000;

/** Latencies in ms, kept with three digits. */
export class LatencyHistogram {
  readonly #histogram: Histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: HIGHEST_US,
    numberOfSignificantValueDigits: 3,
  });

  /** A request that was due at `dueMs` and answered at `answeredMs`: what it waited before it was sent counts. */
  record(dueMs: number, answeredMs: number): void {
    this.#histogram.recordValue(Math.min(HIGHEST_US, Math.max(0, Math.round((answeredMs - dueMs) * 1000))));
  }

  get count(): number {
    return this.#histogram.totalCount;
  }

  summary(): Latency {
    const at = (percentile: number): number => this.#histogram.getValueAtPercentile(percentile) / 1000;
    return { p50: at(50), p99: at(99), p999: at(99.9), max: this.#histogram.maxValue / 1000 };
  }
}
