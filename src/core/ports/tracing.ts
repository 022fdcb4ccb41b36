import type { TraceParent } from '../trace-context.js';

/** Fields of a span: ids of sales, batches and messages, but never the id of a buyer. */
export type SpanFields = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  /** A name from a small set, without ids. */
  readonly name: string;
  readonly kind: 'server' | 'client' | 'producer' | 'consumer' | 'internal';
  readonly fields?: SpanFields;
  /** `traceparent` of other spans for which this work is done. */
  readonly links?: readonly string[];
}

/** A span that is being recorded. None of its methods throws or waits. */
export interface Span {
  readonly traceId: string;
  /** Identifies the span to code that continues the work, here or in the receiver of a message (W3C Trace Context). */
  readonly traceparent: string;
  set(fields: SpanFields): void;
  /** @param traceparent of a span that continues this work in its own trace */
  link(traceparent: string): void;
  /** Ends the span. A second call changes nothing. @param error why the work failed, in a few words */
  end(error?: string): void;
}

/** Records spans of some traces. Usually returns null: the trace is not recorded, and there is nothing to do. */
export interface Tracing {
  /** Starts the span of a request if its caller records and a limit allows, or at random without a caller's trace. */
  startRequest(parent: TraceParent | null, start: SpanStart): Span | null;
  /** @param traceparent of the span to which the work belongs; '' or undefined without one */
  startWork(traceparent: string | undefined, start: SpanStart): Span | null;
}

export const NO_TRACING: Tracing = { startRequest: () => null, startWork: () => null };
