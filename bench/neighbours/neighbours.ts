import { setTimeout as sleep } from 'node:timers/promises';
import { lowestOrderIdAt } from '../../src/core/order-id.js';
import type { Sale } from '../../src/core/sale.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { createRepairStore } from '../../src/redis/repair-store.js';
import type { ClientOutcome } from '../../test/invariants/check-sale.js';
import { found } from '../../test/chaos/harness/wait.js';
import { makeNumbers } from '../../test/helpers/numbers.js';
import { startRedisCluster } from '../../test/helpers/redis-cluster.js';
import { BenchError } from '../bench-error.js';
import { purchaseKeyAt, readRecords, type BuyerSlice } from '../load/buyers.js';
import { OUTCOME_CODE } from '../load/open-loop.js';
import { dueRateOf, secondsOf, type Context } from '../scenarios/context.js';
import { judgeSale, Stores } from '../session/stores.js';
import { runManySales, type ManySalesResult } from './many-sales-load.js';
import { phasesOf, type Case, type NeighboursFigures, type SoldSamples, type Stretch } from './phases.js';

/** Sales that sell all the time. */
const NEIGHBOURS = 20;
/** Orders of the sale that is rebuilt. */
const ORDERS = 200_000;
/** Of --seconds: one part before, as many as it takes during, one after. */
const PARTS = 4;
/** Programs that have just begun are slow: what they do in the first seconds is not counted as before. */
const WARM_SECONDS = 30;
/** What follows a fault is not counted as after it. */
const SETTLE_MS = 5_000;
/** How long one load lasts. @param part seconds of each part */
export const loadSeconds = (part: number): number => WARM_SECONDS + PARTS * part;
const REBUILT_TIMEOUT_MS = 180_000;
const POLL_MS = 100;
const SOLD_EVERY_MS = 250;
/** Requests of sales that hang keep their connections for so long, seconds. */
const HANGS_FOR = 4;

/** 20 sales sell at a steady rate while a large one is rebuilt, and while one of three Redis masters is frozen. */
export async function neighbours(context: Context): Promise<NeighboursFigures> {
  const rebuilt = await besideRebuild(context);
  const cases = [rebuilt];
  if (rebuilt.problems.length === 0) {
    await context.session.stores.empty();
    cases.push(await besideFrozenMaster(context));
  }
  return { kind: 'neighbours', scenario: 'neighbours', cases };
}

/** The large sale sells as well, but is not measured: its buyers hear 503 while it is rebuilt. */
async function besideRebuild(context: Context): Promise<Case> {
  const { session } = context;
  const { stores } = session;
  const sales = await openSales(context, stores, NEIGHBOURS + 1);
  const large = sales.at(-1) as Sale;
  session.progress(`neighbours: filling a sale with ${ORDERS} orders`);
  await fill(stores, large);
  await rebuild(stores, large, session.signal); // Redis has them from now on
  let rebuilds = 0;
  const during = async (untilMs: number): Promise<void> => {
    for (; Date.now() < untilMs; rebuilds++) await rebuild(stores, large, session.signal);
  };
  const { load, stretches, sold, buyers } = await sell(context, stores, sales, during);
  const seconds = stretches.map(({ fromMs, toMs }) => (toMs - fromMs) / 1000)[1] ?? 0;
  const title = 'one sale is rebuilt';
  const rate = dueRateOf(context, 'neighbours');
  return {
    title,
    about:
      `${NEIGHBOURS} sales, ${rate} requests/s due for them and for one of ${ORDERS} orders, which Redis lost and the keeper ` +
      `rebuilt ${rebuilds} times in ${seconds.toFixed(1)} s`,
    phases: phasesOf(load, { rate, sales: sales.length }, (sale) => sale < NEIGHBOURS, stretches, sold),
    problems: await problemsOf(stores, sales, { load, buyers }, (sale) => (sale === large ? ORDERS : 0)),
  };
}

async function besideFrozenMaster(context: Context): Promise<Case> {
  const { session } = context;
  const durable = ['--appendonly', 'yes', '--appendfsync', 'everysec'];
  const cluster = await startRedisCluster([...durable, '--cluster-require-full-coverage', 'no']);
  let stores: Stores | null = null;
  try {
    const env = { ...session.env, REDIS_URL: cluster.url };
    stores = await Stores.open(env);
    await session.restart({ REDIS_URL: cluster.url });
    const sales = await openSales(context, stores, NEIGHBOURS);
    const owners = await Promise.all(
      sales.map(({ saleId }) => cluster.ownerOf(bucketKeys({ saleId, bucket: 0 }).stock)),
    );
    // where programs listen for notifications, unless it does not answer
    const frozen = cluster.servers[0];
    const others = owners.filter((owner) => owner !== 0).length;
    const during = async (untilMs: number): Promise<void> => {
      frozen?.signal('SIGSTOP');
      await sleep(untilMs - Date.now(), undefined, { signal: session.signal });
      frozen?.signal('SIGCONT');
    };
    const { load, stretches, sold, buyers } = await sell(
      context,
      stores,
      sales,
      during,
      sales.filter((_, index) => owners[index] !== 0),
    );
    const rate = dueRateOf(context, 'neighbours');
    return {
      title: 'one of three Redis masters is frozen',
      about: `${NEIGHBOURS} sales, ${rate} requests/s due for them; ${others} of them are on the other masters and are measured`,
      phases: phasesOf(load, { rate, sales: sales.length }, (sale) => owners[sale] !== 0, stretches, sold),
      problems: await problemsOf(stores, sales, { load, buyers }, () => 0),
    };
  } finally {
    for (const server of cluster.servers) server.signal('SIGCONT');
    // on the Redis of the stack nobody knows these sales, and the keeper would rebuild them all
    await session.stores.mysql.execute("UPDATE sales SET state = 'closed' WHERE state <> 'closed'");
    await session.restart({});
    await stores?.close();
    await cluster.stop();
  }
}

async function openSales(context: Context, stores: Stores, count: number): Promise<Sale[]> {
  const seconds = loadSeconds(secondsOf(context, 'neighbours'));
  const stock = ORDERS + Math.ceil((dueRateOf(context, 'neighbours') / count) * seconds);
  const sales: Sale[] = [];
  for (let index = 0; index < count; index++) sales.push(await stores.openSale(`neighbour-${index}`, stock + 1000));
  return sales;
}

interface Sold {
  readonly load: ManySalesResult;
  readonly stretches: readonly Stretch[];
  readonly sold: SoldSamples;
  readonly buyers: BuyerSlice;
}

/**
 * Sells in all sales at once, and lets something happen in the middle.
 * @param during is over when it resolves, at `untilMs` or a little later
 * @param watched sales whose orders are counted; absent: all but the last
 */
async function sell(
  context: Context,
  stores: Stores,
  sales: readonly Sale[],
  during: (untilMs: number) => Promise<void>,
  watched: readonly Sale[] = sales.slice(0, NEIGHBOURS),
): Promise<Sold> {
  const { session, options } = context;
  const rate = dueRateOf(context, 'neighbours');
  const partMs = secondsOf(context, 'neighbours') * 1000;
  const seconds = loadSeconds(partMs / 1000);
  const buyers = context.buyers.take(rate * seconds);
  const paths = sales.map(({ saleId }) => `/v1/sales/${saleId}/purchases`);
  const { port } = session.program('api');
  const connections = Math.max(options.connections, rate * HANGS_FOR);
  session.progress(`neighbours: ${rate} requests/s for ${seconds} s on ${sales.length} sales`);
  const counting = countSold(stores, watched);
  const startedMs = Date.now();
  const loading = runManySales({ port, paths, buyers, connections, seconds, rate }, session.signal);
  loading.catch(() => undefined); // it is awaited below
  try {
    await sleep(WARM_SECONDS * 1000 + partMs, undefined, { signal: session.signal });
    const fromMs = Date.now();
    session.progress('neighbours: it begins');
    await during(fromMs + partMs);
    const toMs = Date.now();
    session.progress(`neighbours: it is over after ${((toMs - fromMs) / 1000).toFixed(1)} s`);
    const load = await loading;
    const endMs = startedMs + seconds * 1000;
    if (endMs - toMs < SETTLE_MS + partMs / 2) throw new BenchError('it took so long that too little is left after it');
    session.assertAlive();
    await sleep(SOLD_EVERY_MS);
    return {
      load,
      buyers,
      stretches: [
        { name: 'before', fromMs: fromMs - partMs, toMs: fromMs },
        { name: 'during', fromMs, toMs },
        { name: 'after', fromMs: toMs + SETTLE_MS, toMs: endMs },
      ],
      sold: await counting.stop(),
    };
  } finally {
    await counting.stop();
  }
}

/** One cheap query now and then. */
function countSold(stores: Stores, sales: readonly Sale[]): { stop(): Promise<SoldSamples> } {
  const samples: { atMs: number; sold: number }[] = [];
  const stopping = new AbortController();
  const ids = sales.map(({ saleId }) => saleId);
  const count = async (): Promise<void> => {
    const sql = 'SELECT CAST(SUM(sold) AS UNSIGNED) AS sold FROM sales WHERE id IN (?)';
    const [row] = await stores.mysql.query<{ sold: string }>(sql, [ids]);
    samples.push({ atMs: Date.now(), sold: Number(row?.sold ?? 0) });
  };
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await count();
      await sleep(SOLD_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const done = loop();
  done.catch(() => undefined); // `stop` throws it
  return {
    stop: async () => {
      stopping.abort();
      await done;
      return samples;
    },
  };
}

/** Orders as workers would have written them, before the sale sells anything else. */
async function fill({ mysql }: Stores, { saleId }: Sale): Promise<void> {
  const base = BigInt(lowestOrderIdAt(Date.now() - 3_600_000));
  const perMs = 10;
  const perTransaction = 300;
  const step = (1n << 22n) / BigInt(perMs);
  await mysql.transaction(async (tx) => {
    await makeNumbers(tx, ORDERS, 'TEMPORARY TABLE');
    await tx.execute(
      `INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer)
       SELECT ${base} + (seq - 1) * ${step}, ${saleId}, CONCAT('filled-', seq), 'k1',
         CONCAT('filled-${saleId}-', (seq - 1) DIV ${perTransaction}), 1, 1999, 1 FROM numbers`,
    );
    await tx.execute('DROP TEMPORARY TABLE numbers');
  });
  await mysql.execute(
    `INSERT INTO order_ranges (sale_id, first_id, last_id, orders)
     SELECT sale_id, MIN(id), MAX(id), COUNT(*) FROM orders WHERE sale_id = ${saleId}
     GROUP BY (id - ${base}) DIV ${BigInt(perTransaction) * step}`,
  );
  await mysql.execute(`UPDATE sales SET sold = ${ORDERS}, opens_at = opens_at - INTERVAL 1 DAY WHERE id = ${saleId}`);
}

/** Redis loses the sale; resolves when the keeper has rebuilt it. @throws BenchError when that takes too long */
async function rebuild({ redis }: Stores, { saleId }: Sale, signal: AbortSignal): Promise<void> {
  const ref = { saleId, bucket: 0 };
  const store = createRepairStore(redis);
  const { tx: _markers, ...keys } = bucketKeys(ref);
  await redis.redis.unlink(...Object.values(keys));
  const deadlineMs = Date.now() + REBUILT_TIMEOUT_MS;
  while (Date.now() < deadlineMs) {
    await sleep(POLL_MS, undefined, { signal });
    const [status] = await store.statusOf([ref]);
    if (status?.state === 'open') return;
  }
  throw new BenchError(`sale ${saleId} was not rebuilt within ${REBUILT_TIMEOUT_MS / 1000} s`);
}

/** Checks every sale when it is at rest. @param alreadyThere orders that were there before the load */
async function problemsOf(
  stores: Stores,
  sales: readonly Sale[],
  { load, buyers }: Pick<Sold, 'load' | 'buyers'>,
  alreadyThere: (sale: Sale) => number,
): Promise<string[]> {
  const outcomes = Buffer.from(load.outcomes, 'base64');
  const records = readRecords(buyers);
  const problems: string[] = [];
  for (const [index, sale] of sales.entries()) {
    const opLog = new Map<string, ClientOutcome>();
    let [accepted, unanswered] = [alreadyThere(sale), 0];
    for (let place = index; place < load.sent; place += sales.length) {
      const code = outcomes[place];
      if (code === OUTCOME_CODE.ok) accepted++;
      if (code === OUTCOME_CODE.unknown) unanswered++;
      const word = code === OUTCOME_CODE.ok ? 'ok' : code === OUTCOME_CODE.fail ? 'fail' : 'unknown';
      opLog.set(purchaseKeyAt(records, buyers, place), word);
    }
    // the first question after a freeze may find that the driver has closed its connection
    const check = await found(`the orders of sale ${sale.saleId} are compared`, () =>
      stores.check(sale.saleId, alreadyThere(sale) === 0 ? opLog : undefined),
    );
    const verdict = judgeSale({ accepted, unanswered }, check);
    problems.push(...verdict.problems.map((problem) => `sale ${sale.saleId}: ${problem}`));
  }
  return problems;
}
