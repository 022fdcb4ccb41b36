import type { Clock } from '../core/ports/clock.js';
import type { HalfMessage } from '../core/ports/channels.js';
import type { BatchStep } from './metrics.js';
import type { PlaceBatchPorts } from './place-batch.js';

type Timed = Pick<PlaceBatchPorts, 'store' | 'channel'>;

/** Measures how long a batch waits for other servers, once per batch and step. A step that throws is not measured. */
export function withStepTimes(
  { store, channel }: Timed,
  clock: Clock,
  stepTook: (step: BatchStep, tookMs: number) => void,
): Timed {
  const timed = async <T>(step: BatchStep, work: () => Promise<T>): Promise<T> => {
    const startedMs = clock.monotonicMs();
    const result = await work();
    stepTook(step, clock.monotonicMs() - startedMs);
    return result;
  };
  const timedHalf = (half: HalfMessage): HalfMessage => ({
    commit: () => timed('commit', () => half.commit()),
    rollback: () => timed('rollback', () => half.rollback()),
  });
  return {
    store: {
      precheck: (bucket, purchases) => timed('precheck', () => store.precheck(bucket, purchases)),
      deduct: (batch) => timed('deduct', () => store.deduct(batch)),
      resolve: (batch) => store.resolve(batch),
    },
    channel: {
      sendHalf: async (batch) => {
        const half = await timed('half', () => channel.sendHalf(batch));
        return typeof half === 'string' ? half : timedHalf(half);
      },
    },
  };
}
