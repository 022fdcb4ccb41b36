import type { HomeBucket } from '../core/bucket.js';
import type { Purchase } from '../core/purchase.js';
import type { HalfMessage } from '../core/ports/channels.js';
import type { Span, SpanFields, Tracing } from '../core/ports/tracing.js';
import { asStep, inSpan } from '../core/spans.js';
import type { BatchStep, BatchVerdict } from './metrics.js';
import { placeBatch, type Deliver, type PlaceBatchPorts } from './place-batch.js';

/**
 * Places a batch that contains recorded purchases. The span of the batch is a step of the first recorded purchase and
 * linked to all. The work of workers and keepers on its message joins the same trace.
 * @param spans of the recorded purchases, at least one
 */
export async function placeInSpan(
  bucket: HomeBucket,
  purchases: readonly Purchase[],
  spans: readonly Span[],
  deliver: Deliver,
  ports: PlaceBatchPorts,
  tracing: Tracing,
): Promise<BatchVerdict> {
  const links = spans.map(({ traceparent }) => traceparent);
  const { saleId } = bucket;
  const fields = { 'seckill.sale': saleId, 'seckill.bucket': bucket.bucket, 'seckill.purchases': purchases.length };
  const span = tracing.startWork(links[0], { name: 'place batch', kind: 'internal', fields, links });
  if (span === null) return placeBatch(bucket, purchases, '', deliver, ports);
  for (const other of spans.slice(1)) other.link(span.traceparent);
  return inSpan(span, async () => {
    const verdict = await placeBatch(bucket, purchases, span.traceparent, deliver, withStepSpans(ports, span, tracing));
    span.set({ 'seckill.verdict': verdict });
    return verdict;
  });
}

/** Records the steps in which a batch waits for other servers. */
function withStepSpans(ports: PlaceBatchPorts, batchSpan: Span, tracing: Tracing): PlaceBatchPorts {
  const { store, channel } = ports;
  const step = <T>(name: BatchStep, work: () => Promise<T>, says?: (result: T) => SpanFields): Promise<T> =>
    asStep([batchSpan], tracing, { name, kind: name === 'half' ? 'producer' : 'client' }, work, says);
  const halfWithSpans = (half: HalfMessage): HalfMessage => ({
    commit: () => step('commit', () => half.commit()),
    rollback: () =>
      step(
        'rollback',
        () => half.rollback(),
        (isConfirmed) => ({ 'seckill.confirmed': isConfirmed }),
      ),
  });
  return {
    ...ports,
    store: {
      precheck: (bucket, purchases) => step('precheck', () => store.precheck(bucket, purchases)),
      deduct: (batch) =>
        step(
          'deduct',
          () => store.deduct(batch),
          ({ outcome }) => ({ 'seckill.outcome': outcome }),
        ),
      resolve: (batch) => store.resolve(batch),
    },
    channel: {
      sendHalf: async (batch) => {
        batchSpan.set({ 'seckill.batch': batch.batchId });
        const half = await step(
          'half',
          () => channel.sendHalf(batch),
          (sent) => {
            return { 'seckill.outcome': typeof sent === 'string' ? sent : 'stored' };
          },
        );
        return typeof half === 'string' ? half : halfWithSpans(half);
      },
    },
  };
}
