import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Bounds for durations, s: a step of a purchase should take milliseconds and must not take seconds. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export function metricMakers(registry: Registry) {
  const registers = [registry];
  return {
    counter: <L extends string = never>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> =>
      new Counter({ name, help, labelNames, registers }),
    gauge: <L extends string = never>(name: string, help: string, labelNames: readonly L[] = []): Gauge<L> =>
      new Gauge({ name, help, labelNames, registers }),
    /** Makes a gauge whose value is read when the metrics are collected. */
    readGauge(name: string, help: string, read: () => number): void {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    },
    /** @param buckets upper bounds; by default of durations in seconds */
    histogram: <L extends string = never>(
      name: string,
      help: string,
      { buckets = DURATION_BUCKETS, labelNames = [] }: { buckets?: number[]; labelNames?: readonly L[] } = {},
    ): Histogram<L> => new Histogram({ name, help, labelNames, buckets, registers }),
  };
}
