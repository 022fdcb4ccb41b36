import { runOpenLoop } from '../load/open-loop.js';
import { measure } from '../measure.js';
import { loadFigures, type LoadFigures } from '../results.js';
import { checkSaleOf, flashRateOf, opLogOf, secondsOf, type Context } from './context.js';

const STOCK = 5000;

/**
 * The opening of a sale: buyers come at a fixed rate, however long answers take, and there is far too little stock.
 * Each latency counts from when its request was due.
 */
export async function flash(context: Context): Promise<LoadFigures> {
  const { session, options } = context;
  const seconds = secondsOf(context, 'flash');
  const { connections } = options;
  const rate = flashRateOf(context);
  const buyers = context.buyers.take(rate * seconds);
  const sale = await session.stores.openSale('flash', STOCK);
  session.progress(`flash: ${rate} requests/s for ${seconds} s against ${STOCK} units`);
  const { port } = session.program('api');
  const measured = await measure(session, sale.saleId, (path) =>
    runOpenLoop({ port, path, buyers, connections, seconds, rate }, session.signal),
  );
  const { load } = measured;
  const verdict = await checkSaleOf(context, sale, [load], opLogOf(buyers, load.outcomes));
  const about = `${rate} requests/s due for ${seconds} s, ${STOCK} units, ${connections} connections`;
  return loadFigures(
    'flash',
    about,
    { measured, verdict, per: 'answered' },
    {
      'p50 of winners, ms': load.acceptedLatency.p50,
      'p99 of winners, ms': load.acceptedLatency.p99,
      'p99 of the client itself, ms': load.sendDelay.p99,
    },
  );
}
