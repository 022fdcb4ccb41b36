import type { Histogram, Registry } from 'prom-client';
import type { AnswerClass, HttpRoute } from './metrics.js';

/** Upper bounds of the buckets, in seconds. */
const BOUNDS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;
const BOUNDS_MS = BOUNDS_S.map((bound) => bound * 1000);
const NAME = 'seckill_http_answer_seconds';

interface TimesLabels {
  readonly route: HttpRoute;
  readonly class: AnswerClass;
}

/** The answer times of one route and class. */
export class AnswerTimes {
  readonly labels: TimesLabels;
  /** Counts by bucket. The last bucket has no upper bound. */
  readonly counts = new Float64Array(BOUNDS_MS.length + 1);
  sumMs = 0;

  constructor(labels: TimesLabels) {
    this.labels = labels;
  }

  observe(tookMs: number): void {
    let bucket = 0;
    while (bucket < BOUNDS_MS.length && tookMs > (BOUNDS_MS[bucket] as number)) bucket++;
    this.counts[bucket] = (this.counts[bucket] as number) + 1;
    this.sumMs += tookMs;
  }
}

/**
 * Registers a histogram over these times. The map may grow later. The library's own histogram would look up its labels
 * for every value, which costs 0.4 µs, a fiftieth of a refusal.
 */
export function registerTimes(registry: Registry, times: ReadonlyMap<string, AnswerTimes>): void {
  const metric = {
    name: NAME,
    help: 'Time from a request to its answer, by route and class: ok, refused (4xx), failed (5xx). Includes the requested wait of long polls.',
    type: 'histogram',
    labelNames: ['route', 'class'] satisfies (keyof TimesLabels)[],
    aggregator: 'sum',
    get: () => Promise.resolve({ ...metric, values: [...times.values()].flatMap(seriesOf) }),
    reset: () => undefined,
  };
  registry.registerMetric(metric as unknown as Histogram); // a registry calls nothing but `get` of a metric
}

function seriesOf({ labels, counts, sumMs }: AnswerTimes) {
  let count = 0;
  const buckets = [...counts].map((inBucket, bucket) => {
    count += inBucket;
    return { metricName: `${NAME}_bucket`, labels: { ...labels, le: BOUNDS_S[bucket] ?? '+Inf' }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${NAME}_sum`, labels, value: sumMs / 1000 },
    { metricName: `${NAME}_count`, labels, value: count },
  ];
}
