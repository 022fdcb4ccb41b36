import { loadConfig } from '../../src/core/config/load.js';
import { pendingAnswer } from '../../src/http/routes/purchase.js';
import { startBareServer } from '../limits/bare-http.js';
import { deductLimit } from '../limits/deduct.js';
import { halfMessageLimit } from '../limits/half-message.js';
import { insertLimit } from '../limits/insert.js';
import type { ThroughputOptions } from '../limits/throughput.js';
import type { Limit, LimitFigures } from '../results.js';
import { BUYERS_PER_SECOND, secondsOf, type Context } from './context.js';

/** The defaults of the api. */
const { sizeMax: BATCH, inFlightMax } = loadConfig(['batch'], {}).batch;
/** As many as the api has under way by default, and as many as serve batches of one best. */
const IN_FLIGHT = { whole: inFlightMax, single: 64 } as const;
/** Loops of the worker, and batches it takes into one transaction. */
const WRITERS = 2;
const BATCHES_PER_TRANSACTION = 16;

/** Each part of the path alone, with nothing else to do for the machine: no sum of parts can be faster than these. */
export async function limits(context: Context): Promise<LimitFigures> {
  const { session } = context;
  const seconds = secondsOf(context, 'limits');
  const options = (inFlight: number): ThroughputOptions => ({ inFlight, seconds, signal: session.signal });
  const found: Limit[] = [];
  const add = async (name: string, unit: string, run: () => Promise<number>): Promise<void> => {
    session.say(`limits: ${name}`);
    const perSecond = await run();
    found.push({ name, unit, perSecond });
  };

  await add('node:http with wrk', 'requests/s', () => bareHttp(context, seconds));
  await add(`deduct, batches of ${BATCH}`, 'purchases/s', () => deductLimit(session, BATCH, options(IN_FLIGHT.whole)));
  await add('deduct, batches of 1', 'purchases/s', () => deductLimit(session, 1, options(IN_FLIGHT.single)));
  await add(`half + commit, batches of ${BATCH}`, 'messages/s', () =>
    halfMessageLimit(session, BATCH, options(IN_FLIGHT.whole)),
  );
  await add('half + commit, batches of 1', 'messages/s', () => halfMessageLimit(session, 1, options(IN_FLIGHT.single)));
  const many = { batches: BATCHES_PER_TRANSACTION, size: BATCH };
  await add(`insert, ${BATCHES_PER_TRANSACTION} × ${BATCH} rows`, 'rows/s', () =>
    insertLimit(session, many, options(WRITERS)),
  );
  await add(`insert, 1 × ${BATCH} rows`, 'rows/s', () =>
    insertLimit(session, { batches: 1, size: BATCH }, options(WRITERS)),
  );
  await add('insert, 1 row', 'rows/s', () => insertLimit(session, { batches: 1, size: 1 }, options(WRITERS)));
  return { kind: 'limits', scenario: 'limits', limits: found };
}

async function bareHttp({ session, options, buyers, generator }: Context, seconds: number): Promise<number> {
  const path = '/v1/sales/1/purchases';
  const bare = await startBareServer(pendingAnswer('1', '00000000-0000-0000-0000-000000000000', 'accepted'));
  try {
    const ask = (askSeconds: number) => {
      const slice = buyers.take(askSeconds * BUYERS_PER_SECOND.soldOut);
      const { connections } = options;
      return generator.run({ port: bare.port, path, buyers: slice, connections, seconds: askSeconds }, session.signal);
    };
    await ask(2);
    const { answered, startedAtMs, endedAtMs } = await ask(seconds);
    return answered / ((endedAtMs - startedAtMs) / 1000);
  } finally {
    await bare.stop();
  }
}
