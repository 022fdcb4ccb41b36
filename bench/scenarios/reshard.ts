import { splitIntoBuckets } from '../../src/operate/sales/services.js';
import { loadConfig } from '../../src/core/config/load.js';
import type { Sale } from '../../src/core/sale.js';
import { withConnections } from '../../src/process/connections.js';
import { createLog } from '../../src/process/telemetry.js';
import type { RepairStep } from '../../src/recovery/repair/repair-sale.js';
import { BenchError } from '../bench-error.js';
import { runOpenLoop, type OpenLoopResult } from '../load/open-loop.js';
import { measure } from '../measure.js';
import { loadFigures, type LoadFigures } from '../results.js';
import type { Session } from '../session/session.js';
import { checkSaleOf, dueRateOf, opLogOf, secondsOf, type Context } from './context.js';

/** Seconds of sales before the split, until the rate is steady. */
const SOLD_SECONDS = 1;

/** Every buyer wins one unit, at a fixed rate, while the sale is split into more buckets. Buyers do not retry. */
export async function reshard(context: Context): Promise<LoadFigures> {
  const { session, options } = context;
  const { connections, buckets } = options;
  const seconds = secondsOf(context, 'reshard');
  const rate = dueRateOf(context, 'reshard');
  const buyers = context.buyers.take(rate * seconds);
  const sale = await session.stores.openSale('reshard', buyers.count);
  session.progress(
    `reshard: ${rate} requests/s for ${seconds} s, ${buckets} buckets after ${rate * SOLD_SECONDS} orders`,
  );
  const { port } = session.program('api');
  let split: Split = { lockedMs: 0, steps: [] };
  const measured = await measure(session, sale.saleId, async (path) => {
    const plan = { port, path, buyers, connections, seconds, rate };
    const load = runOpenLoop(plan, session.signal);
    split = await splitSale(session, sale, { buckets, afterOrders: rate * SOLD_SECONDS });
    return load;
  });
  const { load } = measured;
  const { count, firstMs, lastMs } = load.unavailable;
  // A batch that was under way when the sale was locked may have become orders although its buyers got 503.
  const verdict = await checkSaleOf(context, sale, [withoutUnknown(load)], opLogOf(buyers, load.outcomes));
  const about = `${rate} requests/s due for ${seconds} s, 1 bucket into ${buckets}, ${connections} connections`;
  const per = 'accepted' as const;
  const { lockedMs, steps } = split;
  session.progress(`reshard: locked for ${Math.round(lockedMs)} ms (${steps.join(', ')})`);
  return loadFigures(
    'reshard',
    about,
    { measured, verdict, per },
    {
      'first 503 to last 503, ms': count === 0 ? 0 : lastMs - firstMs,
      'answers 503': count,
      'locked, ms': lockedMs,
      'steps, ms since the start of the reshard': steps.join(', '),
    },
  );
}

const withoutUnknown = (load: OpenLoopResult): OpenLoopResult => ({
  ...load,
  answered: load.answered - load.unavailable.count,
});

interface Split {
  readonly lockedMs: number;
  readonly steps: readonly string[];
}

/** Splits the sale as the command does, but on connections that are already open, like those of a keeper. */
async function splitSale(
  { env, stores, signal }: Session,
  { saleId }: Sale,
  { buckets, afterOrders }: { readonly buckets: number; readonly afterOrders: number },
): Promise<Split> {
  const config = loadConfig(['mysql', 'redis', 'repair', 'brokerAccess'], env);
  const parts = { redis: stores.redis, mysql: stores.mysql };
  const steps: string[] = [];
  return withConnections(
    config,
    createLog('bench', 'error'),
    async (connections) => {
      await stores.waitUntilLanded(saleId, afterOrders, signal);
      const startedMs = performance.now();
      const onStep = ({ step }: RepairStep): void =>
        void steps.push(`${step} ${Math.round(performance.now() - startedMs)}`);
      const end = await splitIntoBuckets(connections, saleId, { actor: 'bench', buckets, onStep });
      if (end.outcome !== 'resharded') throw new BenchError(`the sale was not split: ${end.outcome}`);
      steps.push(`done ${Math.round(performance.now() - startedMs)}`);
      return { lockedMs: end.lockedMs, steps };
    },
    parts,
  );
}
