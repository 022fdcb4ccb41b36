import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import {
  ROOT_CONTEXT,
  type Context,
  type Link,
  type Span as OtelSpan,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Section } from '../core/config/schema.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { Span, SpanFields, SpanStart } from '../core/ports/tracing.js';
import { SecondBudget } from '../core/second-budget.js';
import { readTraceparent, traceparentOf, type TraceParent } from '../core/trace-context.js';
import type { OpenTracing, TracingMetrics } from './tracing.js';

// Loaded only when spans are recorded: see tracing.ts.

const KINDS: Readonly<Record<SpanStart['kind'], SpanKind>> = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
};

/** If the collector takes longer, the spans are lost. */
const SEND_TIMEOUT_MS = 5_000;
const SPANS_PER_SEND = 256;
/** Number of concurrent requests to the collector. A slow collector gets no more. */
const SENDS_AT_ONCE = 2;
const CLOSE_MAX_MS = 2_000;
const SAY_EVERY_MS = 60_000;
const ERROR_SHOWN = 200;

interface OtelParts {
  /** Purchases traced per second: this many at the request of callers, and as many by random sampling. */
  readonly perSecondMax: number;
  readonly metrics: TracingMetrics;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Creates spans with OpenTelemetry, without automatic instrumentation. Decides whether to record a request before it
 * creates anything.
 */
export class OtelTracing implements OpenTracing {
  readonly #config: Section<'tracing'>;
  readonly #parts: OtelParts;
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  readonly #asked: SecondBudget;
  readonly #byChance: SecondBudget;

  constructor(config: Section<'tracing'>, program: string, parts: OtelParts) {
    this.#config = config;
    this.#parts = parts;
    this.#asked = new SecondBudget(parts.perSecondMax, parts.clock);
    this.#byChance = new SecondBudget(parts.perSecondMax, parts.clock);
    const exporter = exporterTo(config.endpoint);
    this.#provider = new TracerProvider({
      sampler: new AlwaysOnSampler(),
      spanProcessors: [new BoundedSpans(exporter, config, parts)],
      resource: resourceFromAttributes({
        'service.name': `seckill-${program}`,
        'service.namespace': 'seckill',
        'service.instance.id': randomUUID(),
        'host.name': hostname(),
        'process.pid': process.pid,
      }),
    });
    this.#tracer = this.#provider.getTracer('seckill');
  }

  startRequest(parent: TraceParent | null, start: SpanStart): Span | null {
    const isWanted = parent === null ? Math.random() < this.#config.sampledShare : parent.isSampled;
    if (!isWanted) return null;
    // Any client can send a `traceparent` that asks for a trace, so random samples have a separate budget.
    if (!(parent === null ? this.#byChance : this.#asked).take()) {
      this.#parts.metrics.limited();
      return null;
    }
    return this.#start(parent === null ? ROOT_CONTEXT : childOf(parent), start);
  }

  startWork(traceparent: string | undefined, start: SpanStart): Span | null {
    const parent = traceparent ? readTraceparent(traceparent) : null;
    return parent?.isSampled ? this.#start(childOf(parent), start) : null;
  }

  async close(): Promise<void> {
    const waiting = new AbortController();
    const closed = this.#provider.shutdown().catch(() => undefined);
    await Promise.race([closed, this.#parts.clock.sleep(CLOSE_MAX_MS, waiting.signal)]);
    waiting.abort();
  }

  #start(context: Context, { name, kind, fields, links = [] }: SpanStart): Span {
    const options = { kind: KINDS[kind], links: links.flatMap(linkTo), ...(fields && { attributes: fields }) };
    return new RecordedSpan(this.#tracer.startSpan(name, options, context));
  }
}

class RecordedSpan implements Span {
  readonly #span: OtelSpan;

  constructor(span: OtelSpan) {
    this.#span = span;
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  get traceparent(): string {
    return traceparentOf(this.#span.spanContext());
  }

  set(fields: SpanFields): void {
    this.#span.setAttributes(fields);
  }

  link(traceparent: string): void {
    this.#span.addLinks(linkTo(traceparent));
  }

  end(error?: string): void {
    if (!this.#span.isRecording()) return;
    if (error !== undefined) {
      this.#span.setStatus({ code: SpanStatusCode.ERROR, message: error.slice(0, ERROR_SHOWN) });
    }
    this.#span.end();
  }
}

const contextOf = ({ traceId, spanId }: TraceParent): SpanContext => ({
  traceId,
  spanId,
  traceFlags: TraceFlags.SAMPLED,
  isRemote: true,
});

const childOf = (parent: TraceParent): Context => trace.setSpanContext(ROOT_CONTEXT, contextOf(parent));

function linkTo(traceparent: string): Link[] {
  const parent = readTraceparent(traceparent);
  return parent === null ? [] : [{ context: contextOf(parent) }];
}

const exporterTo = (endpoint: string): SpanExporter =>
  new OTLPTraceExporter({
    url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
    timeoutMillis: SEND_TIMEOUT_MS,
    concurrencyLimit: SENDS_AT_ONCE,
  });

/**
 * Holds a bounded number of spans for the collector. Counts spans that the collector does not accept, and logs the loss
 * at most once a minute.
 */
class BoundedSpans implements SpanProcessor {
  readonly #batches: BatchSpanProcessor;
  readonly #max: number;
  readonly #parts: OtelParts;
  #waiting = 0;
  /** Number of spans lost since the last log line. */
  #lost = 0;
  #sayAfterMs = -Infinity;

  constructor(exporter: SpanExporter, { queueMax, sendEveryMs }: Section<'tracing'>, parts: OtelParts) {
    this.#max = queueMax;
    this.#parts = parts;
    this.#batches = new BatchSpanProcessor({
      exporter: {
        export: (spans, done) =>
          exporter.export(spans, (result) => {
            this.#waiting -= spans.length;
            if (result.error === undefined) parts.metrics.spans('sent', spans.length);
            else this.#lose('failed', spans.length, result.error);
            done(result);
          }),
        shutdown: () => exporter.shutdown(),
      },
      maxQueueSize: queueMax,
      maxExportBatchSize: Math.min(SPANS_PER_SEND, queueMax),
      scheduledDelayMillis: sendEveryMs,
      exportTimeoutMillis: SEND_TIMEOUT_MS * 2,
    });
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#waiting >= this.#max) return this.#lose('dropped', 1);
    this.#waiting++;
    this.#batches.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#batches.shutdown();
  }

  #lose(how: 'failed' | 'dropped', spans: number, error?: Error): void {
    const { metrics, clock, log } = this.#parts;
    metrics.spans(how, spans);
    this.#lost += spans;
    const nowMs = clock.monotonicMs();
    if (nowMs < this.#sayAfterMs) return;
    log.warn(
      { lost: this.#lost, error: error?.message ?? 'too many wait' },
      'spans are lost; nothing else is affected',
    );
    this.#lost = 0;
    this.#sayAfterMs = nowMs + SAY_EVERY_MS;
  }
}
