import type { Arena } from '../arena.js';
import { readMetric } from './metrics.js';

/** Longer than a delivery stays hidden that a dead worker took along. */
const HIDDEN_MS = 12_000;
/** On a busy machine the dead worker may have held it for a minute, because its transaction took seconds. */
export const AGAIN_WITHIN_MS = 90_000;

/**
 * What workers of other rows died with, or a broker that was killed has forgotten the acks of, comes again: until none has
 * come for longer than it stays hidden. For rows whose worker is to die of a message of their own.
 */
export async function drainDeliveries(arena: Arena): Promise<void> {
  const worker = await arena.start('worker');
  let [seen, sinceMs] = [0, Date.now()];
  const nothingComes = async (): Promise<boolean> => {
    const now = await readMetric(worker, 'seckill_batches_total');
    if (now !== seen) [seen, sinceMs] = [now, Date.now()];
    return Date.now() - sinceMs > HIDDEN_MS;
  };
  await arena.until('deliveries of other rows have come to their end', nothingComes, AGAIN_WITHIN_MS, 500);
  await worker.stop();
}
