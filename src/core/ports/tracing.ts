import type { TraceParent } from '../trace-context.js';

/** Fields of a span: ids of sales, batches and messages, but never the id of a buyer. */
export type SpanFields = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  /** A name from a small set, without ids. */
  readonly name: string;
  readonly kind: 'server' | 'client' | 'producer' | 'consumer' | 'internal';
  readonly fields?: SpanFields;
  /** `traceparent` of other spans that this work is for. */
  readonly links?: readonly string[];
}

/** A recorded piece of work. None of its calls throws or waits. */
export interface Span {
  readonly traceId: string;
  /**
   * Identifies the span to the code that continues the work, in this process or behind a message (W3C Trace Context).
   */
  readonly traceparent: string;
  set(fields: SpanFields): void;
  /** Links another span that continues this work in a trace of its own. @param traceparent of that span */
  link(traceparent: string): void;
  /** Ends the span. A second call changes nothing. @param error why the work failed, in a few words */
  end(error?: string): void;
}

/** Records spans of some traces. Null is the usual answer: the trace is not recorded, and there is nothing to do. */
export interface Tracing {
  /**
   * Starts the span of a request from outside. Follows the decision of the caller, within a limit. A request without a
   * trace of its caller is sampled at random.
   */
  startRequest(parent: TraceParent | null, start: SpanStart): Span | null;
  /**
   * Starts the span of work that belongs to another span.
   * @param traceparent of that span; '' or undefined: there is no such span
   */
  startWork(traceparent: string | undefined, start: SpanStart): Span | null;
}

/** Records nothing. */
export const NO_TRACING: Tracing = { startRequest: () => null, startWork: () => null };
