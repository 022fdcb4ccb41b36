import { build, type Histogram } from 'hdr-histogram-js';
import type { Latency } from './load.js';

/** The longest latency that is stored, in µs. A longer latency counts as this. */
const HIGHEST_US = 120_000_000;

/** Stores latencies in ms with three significant digits. */
export class LatencyHistogram {
  readonly #histogram: Histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: HIGHEST_US,
    numberOfSignificantValueDigits: 3,
  });

  /** Records a request. Its latency includes the time between `fromMs`, when it was due, and its sending. */
  record(fromMs: number, answeredMs: number): void {
    this.#histogram.recordValue(Math.min(HIGHEST_US, Math.max(0, Math.round((answeredMs - fromMs) * 1000))));
  }

  get count(): number {
    return this.#histogram.totalCount;
  }

  summary(): Latency {
    const at = (percentile: number): number => this.#histogram.getValueAtPercentile(percentile) / 1000;
    return { p50: at(50), p99: at(99), p999: at(99.9), max: this.#histogram.maxValue / 1000 };
  }
}
