import type { Span, SpanFields, SpanStart, Tracing } from './ports/tracing.js';

export const messageFields = (message: {
  readonly topic: string;
  readonly messageId: string;
  readonly group: string;
  readonly attempt: number;
}): SpanFields => ({
  'messaging.system': 'rocketmq',
  'messaging.destination.name': message.topic,
  'messaging.message.id': message.messageId,
  'messaging.consumer.group.name': message.group,
  'seckill.attempt': message.attempt,
});

/** Does work within a span, if there is one. The span ends with the work; if the work fails, it says why. */
export async function inSpan<T>(span: Span | null, work: () => Promise<T>): Promise<T> {
  if (span === null) return work();
  try {
    const result = await work();
    span.end();
    return result;
  } catch (error) {
    span.end(String(error));
    throw error;
  }
}

/** Does work as a step of each of these spans. @param says returns fields for the steps */
export async function asStep<T>(
  spans: readonly Span[],
  tracing: Tracing,
  start: SpanStart,
  work: () => Promise<T>,
  says?: (result: T) => SpanFields,
): Promise<T> {
  if (spans.length === 0) return work();
  const steps = spans.map(({ traceparent }) => tracing.startWork(traceparent, start));
  let error: string | undefined;
  try {
    const result = await work();
    if (says !== undefined) for (const step of steps) step?.set(says(result));
    return result;
  } catch (cause) {
    error = String(cause);
    throw cause;
  } finally {
    for (const step of steps) step?.end(error);
  }
}
