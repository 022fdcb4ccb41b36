import { newTraceId, readTraceparent, traceparentOf, type TraceParent } from '../../../src/core/trace-context.js';
import type { Span, SpanFields, SpanStart, Tracing } from '../../../src/core/ports/tracing.js';

/** A span for tests. */
export interface MemorySpan {
  readonly name: string;
  readonly kind: SpanStart['kind'];
  readonly traceId: string;
  readonly spanId: string;
  /** Null for the first span of a trace. */
  readonly parentId: string | null;
  readonly fields: Record<string, string | number | boolean>;
  /** Ids of the linked spans. */
  readonly links: string[];
  ended: boolean;
  /** Null if it did not fail. */
  error: string | null;
}

/** Keeps every span. If no caller has decided, a span is recorded while `records` is true. */
export class MemoryTracing implements Tracing {
  readonly spans: MemorySpan[] = [];
  records = true;

  startRequest(parent: TraceParent | null, start: SpanStart): Span | null {
    return (parent?.isSampled ?? this.records) ? this.#start(parent, start) : null;
  }

  startWork(traceparent: string | undefined, start: SpanStart): Span | null {
    const parent = readTraceparent(traceparent ?? '');
    return parent?.isSampled ? this.#start(parent, start) : null;
  }

  named(name: string): MemorySpan[] {
    return this.spans.filter((span) => span.name === name);
  }

  /** Formats each span below its parent as `parent > child`. A span without a recorded parent appears alone. */
  tree(): string[] {
    const names = new Map(this.spans.map(({ spanId, name }) => [spanId, name]));
    return this.spans.map(({ parentId, name }) => {
      const above = parentId === null ? undefined : names.get(parentId);
      return above === undefined ? name : `${above} > ${name}`;
    });
  }

  #start(parent: TraceParent | null, { name, kind, fields = {}, links = [] }: SpanStart): Span {
    const ids = { traceId: parent?.traceId ?? newTraceId(), spanId: newTraceId().slice(16) };
    const span: MemorySpan = {
      ...ids,
      name,
      kind,
      parentId: parent?.spanId ?? null,
      fields: { ...fields },
      links: links.map(spanIdIn),
      ended: false,
      error: null,
    };
    this.spans.push(span);
    return {
      traceId: ids.traceId,
      traceparent: traceparentOf(ids),
      set: (more: SpanFields) => void Object.assign(span.fields, more),
      link: (traceparent) => void span.links.push(spanIdIn(traceparent)),
      end: (error) => {
        if (span.ended) return;
        span.ended = true;
        span.error = error ?? null;
      },
    };
  }
}

function spanIdIn(traceparent: string): string {
  const read = readTraceparent(traceparent);
  if (read === null) throw new Error(`no traceparent: ${traceparent}`);
  return read.spanId;
}
