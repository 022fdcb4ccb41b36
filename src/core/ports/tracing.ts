import type { TraceParent } from '../trace-context.js';

/** What a span says about its work. Ids of sales, batches and messages; never one of a buyer. */
export type SpanFields = Readonly<Record<string, string | number | boolean>>;

/** How a span begins. */
export interface SpanStart {
  /** One of a few, without ids. */
  readonly name: string;
  readonly kind: 'server' | 'client' | 'producer' | 'consumer' | 'internal';
  readonly fields?: SpanFields;
  /** `traceparent` of other spans that this work is for. */
  readonly links?: readonly string[];
}

/** A piece of work that is recorded. None of its calls throws or waits. */
export interface Span {
  readonly traceId: string;
  /** Names the span to whoever goes on with the work, in this process or behind a message (W3C Trace Context). */
  readonly traceparent: string;
  set(fields: SpanFields): void;
  /** Notes that another span goes on with this work in a trace of its own. @param traceparent of that span */
  link(traceparent: string): void;
  /** A second end changes nothing. @param error why the work failed, in a few words */
  end(error?: string): void;
}

/** Records spans of some traces. Null is the usual answer: the trace is not recorded, and nothing is to be done. */
export interface Tracing {
  /**
   * A request from outside. What its caller decided holds, within a limit; a request without a caller's trace is recorded by
   * chance.
   */
  startRequest(parent: TraceParent | null, start: SpanStart): Span | null;
  /** Work that belongs to a span. @param traceparent of that span; '' or undefined: it belongs to none that is recorded */
  startWork(traceparent: string | undefined, start: SpanStart): Span | null;
}

/** Records nothing. */
export const NO_TRACING: Tracing = { startRequest: () => null, startWork: () => null };
