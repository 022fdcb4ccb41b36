import type { HomeBucket } from '../core/bucket.js';
import type { HalfMessage } from '../core/ports/channels.js';
import type { Clock } from '../core/ports/clock.js';
import type { Span, SpanFields, Tracing } from '../core/ports/tracing.js';
import type { Purchase } from '../core/purchase.js';
import { asStep, inSpan } from '../core/spans.js';
import type { BatchStep, BatchVerdict } from './metrics.js';
import { placeBatch, type Deliver, type PlaceBatchPorts } from './place-batch.js';

type Servers = Pick<PlaceBatchPorts, 'store' | 'channel'>;
type DoStep = <T>(step: BatchStep, work: () => Promise<T>, says?: (result: T) => SpanFields) => Promise<T>;

/** Wraps Redis and the broker. Each step in which a batch waits for a server runs through `step`. */
function instrumented({ store, channel }: Servers, step: DoStep): Servers {
  const instrumentedHalf = (half: HalfMessage): HalfMessage => ({
    commit: () => step('commit', () => half.commit()),
    rollback: () =>
      step(
        'rollback',
        () => half.rollback(),
        (isConfirmed) => ({ 'seckill.confirmed': isConfirmed }),
      ),
  });
  return {
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
      async sendHalf(batch) {
        const half = await step(
          'half',
          () => channel.sendHalf(batch),
          (sent) => ({ 'seckill.outcome': typeof sent === 'string' ? sent : 'stored' }),
        );
        return typeof half === 'string' ? half : instrumentedHalf(half);
      },
    },
  };
}

/** Measures how long a batch waits for other servers, once per batch and step. Omits steps that throw. */
export const withStepTimes = (
  servers: Servers,
  clock: Clock,
  stepTook: (step: BatchStep, tookMs: number) => void,
): Servers =>
  instrumented(servers, async (step, work) => {
    const startedMs = clock.monotonicMs();
    const result = await work();
    stepTook(step, clock.monotonicMs() - startedMs);
    return result;
  });

/**
 * Places a batch that contains traced purchases. The span of the batch is a child of the first traced purchase and
 * links to the others. Workers and keepers continue the same trace.
 * @param spans of the traced purchases, at least one
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
  const inSteps = instrumented(ports, (step, work, says) => {
    const kind = step === 'half' ? 'producer' : 'client';
    return asStep([span], tracing, { name: step, kind }, work, says);
  });
  const sendHalf: Servers['channel']['sendHalf'] = (batch) => {
    span.set({ 'seckill.batch': batch.batchId });
    return inSteps.channel.sendHalf(batch);
  };
  return inSpan(span, async () => {
    const tracedPorts = { ...ports, store: inSteps.store, channel: { sendHalf } };
    const verdict = await placeBatch(bucket, purchases, span.traceparent, deliver, tracedPorts);
    span.set({ 'seckill.verdict': verdict });
    return verdict;
  });
}
