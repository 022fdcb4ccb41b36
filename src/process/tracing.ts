import type { Registry } from 'prom-client';
import { metricMakers } from '../core/metric-makers.js';
import type { Section } from '../core/config/schema.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import { NO_TRACING, type Tracing } from '../core/ports/tracing.js';

export interface OpenTracing extends Tracing {
  /** Sends the spans that are still waiting, within a time limit. Never rejects. */
  close(): Promise<void>;
}

/**
 * Number of purchases per second that an api traces at the request of callers. Limited, because any client can send a
 * `traceparent`. Random sampling may trace as many again.
 */
const TRACES_PER_SECOND_MAX = 100;

/** Sends spans to `OTEL_EXPORTER_OTLP_ENDPOINT`. If that is not set, does not even load OpenTelemetry. */
export async function openTracing(
  config: Section<'tracing'>,
  program: 'api' | 'worker' | 'keeper',
  {
    perSecondMax = TRACES_PER_SECOND_MAX,
    registry,
    clock,
    log,
  }: { readonly perSecondMax?: number; readonly registry: Registry; readonly clock: Clock; readonly log: Log },
): Promise<OpenTracing> {
  if (config.endpoint === '') return { ...NO_TRACING, close: () => Promise.resolve() };
  const { OtelTracing } = await import('./otel-tracing.js');
  const { origin } = new URL(config.endpoint); // the path and the query may contain a key
  log.info({ endpoint: origin, sampledShare: config.sampledShare }, 'spans are recorded');
  return new OtelTracing(config, program, { perSecondMax, metrics: createTracingMetrics(registry), clock, log });
}

export type TracingMetrics = ReturnType<typeof createTracingMetrics>;

export function createTracingMetrics(registry: Registry) {
  const { counter } = metricMakers(registry);
  const spans = counter(
    'seckill_trace_spans_total',
    'Spans by result: sent, failed (the collector refused them), dropped (too many waited).',
    ['result'],
  );
  const limited = counter(
    'seckill_trace_requests_limited_total',
    'Requests that were selected for a trace but not recorded, because a second had more than 100.',
  );
  for (const result of ['sent', 'failed', 'dropped'] as const) spans.labels(result).inc(0);
  return {
    spans: (result: 'sent' | 'failed' | 'dropped', count: number): void => spans.labels(result).inc(count),
    limited: (): void => limited.inc(),
  };
}
