import { silentLog } from '../../helpers/silent-log.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import type { ScenarioContext } from '../context.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectEqual } from '../harness/expect.js';
import { expectRowPerAccepted, startSystem } from '../harness/load.js';
import { SHORT_TIMES } from '../harness/programs.js';
import {
  bucketStatusOf,
  endOfAof,
  loseWritesAfter,
  observeLostWrites,
  promote,
  replicate,
  startSpareRedis,
  untilRebuilt,
} from '../harness/redis.js';
import { batchesWithRows, markersOf, rowsOf, unitsLeftOf } from '../harness/sale-state.js';
import { ACTOR } from '../harness/sales.js';
import { TcpProxy } from '../harness/tcp-proxy.js';
import type { Scenario } from '../scenario.js';

// R2 to R5, R7: Redis comes back without its last writes, or without anything.

/** Shortens the wait of a repair for workers, because they do not run or have no work. */
const FAST_REPAIR = { REPAIR_QUIET_MS: '300' };

async function expectAllAccepted(buyers: Buyers, users: readonly string[]): Promise<void> {
  const answers = await buyers.rush(users, 4, { tries: 30 });
  expectEqual(new Set(answers.map((answer) => answer?.status)), new Set([202]), `answers of ${users[0]} and others`);
}

const TAIL: Scenario = {
  name: 'R2',
  title: 'Redis loses the tail of its log: the sale is locked and rebuilt, and sells out to the unit',
  alone: true,
  mayFail: ['units_lost'],
  async run(context) {
    const { stack, random } = context;
    const stock = 1500;
    const { saleId, buyers } = await startSystem(context, { stock }, { all: SHORT_TIMES });
    const { opLog } = buyers;
    const polling = buyers.pollStatus(['load-0', 'load-1', 'load-2']);
    const options = { parallel: 24, pauseMs: random.whole(10, 30), tries: 3 };
    const load = await buyers.startLoadUntil(options, random.whole(200, 500));
    const end = await endOfAof(stack);
    await buyers.untilAccepted(200, 'more is sold');
    const recorded = await batchesWithRows(stack, saleId);

    const lostBytes = await loseWritesAfter(stack, end + random.whole(0, 400)); // somewhere inside a script
    const what = `${lostBytes} bytes of the log are gone, and markers of recorded batches with them`;
    await context.observed(what, async () => {
      const markers = await markersOf(stack, saleId);
      return recorded.some((batchId) => !markers.has(batchId));
    });
    const unserved = (): number => opLog.count('fail') + opLog.count('unknown');
    const before = unserved();
    await context.observed('buyers were refused', () => unserved() > before + 20);
    context.faultEnded();
    await untilRebuilt(stack, saleId);

    await context.until('it sells out', async () => (await unitsLeftOf(stack, saleId)) === 0);
    await Promise.all([load.stop(), polling.stop()]);
    await buyers.retryUnknown();
    await context.expectFigures(saleId, { liveRows: stock, unitsLeft: 0, oversold: 0 }, 'sold to the unit');
  },
};

const LATE_BATCHES: Scenario = {
  name: 'R3',
  title: 'Redis loses purchases that no worker has seen: their late batches claim free units or fail with a reason',
  alone: true,
  mayFail: ['units_lost'],
  async run(context) {
    const { stack, random } = context;
    const [api] = await Promise.all([context.start('api'), context.start('keeper', { env: FAST_REPAIR })]);
    const { saleId } = await context.openSale({ stock: 20 });
    const buyers = context.buyers(saleId, [api]);
    const early = userIds(random.whole(8, 14), 'early-');
    const end = await endOfAof(stack);
    await expectAllAccepted(buyers, early);
    expectEqual(await unitsLeftOf(stack, saleId), 20 - early.length, 'units left before');

    const areFree = async (): Promise<boolean> => (await unitsLeftOf(stack, saleId)) === 20;
    await observeLostWrites(context, end, 'the units of accepted purchases are free again', areFree);
    context.faultEnded();
    await untilRebuilt(stack, saleId);
    await expectAllAccepted(buyers, early.slice(0, 2)); // a retry with the same key gets no second order
    await expectAllAccepted(buyers, userIds(14, 'late-'));
    await context.start('worker');
    const rows = early.length + 14;
    await context.until('each has a row', async () => (await rowsOf(stack, saleId)) === rows);
    const lost = early.length - 6; // 14 late buyers and two buyers who retried hold units in the new epoch
    await context.expectFigures(
      saleId,
      { liveRows: 20, unitsLeft: 0, failedRows: lost },
      'a unit for each other purchase',
    );
  },
};

/** Sells the last unit with a 202, loses its commit, and then everything that Redis knew about it. */
async function loseAnswered(context: ScenarioContext): Promise<{ readonly saleId: string; readonly buyers: Buyers }> {
  const { stack } = context;
  const [api] = await Promise.all([
    context.start('api', { failPoint: 'drop_commit' }),
    context.start('worker'),
    context.start('keeper', { env: FAST_REPAIR }),
  ]);
  const { saleId } = await context.openSale({ stock: 1 });
  const buyers = context.buyers(saleId, [api]);
  const end = await endOfAof(stack);
  await expectAllAccepted(buyers, ['ann']);
  await context.reached(api, 'drop_commit');
  expectEqual((await markersOf(stack, saleId)).size, 1, 'markers before');
  const isGone = async (): Promise<boolean> => (await markersOf(stack, saleId)).size === 0;
  await observeLostWrites(context, end, 'Redis has forgotten the batch', isGone);
  context.faultEnded();
  await untilRebuilt(stack, saleId);
  return { saleId, buyers };
}

const ANSWERED_RECORDED: Scenario = {
  name: 'R4/recorded',
  title: 'the commit and the marker of a 202 are lost: the check-back commits, and the worker claims the unit',
  alone: true,
  async run(context) {
    const { stack } = context;
    const { saleId } = await loseAnswered(context);
    await context.until('the order comes', async () => (await rowsOf(stack, saleId)) === 1);
    await context.expectFigures(saleId, { liveRows: 1, unitsLeft: 0, failedRows: 0 }, 'recorded');
    expectEqual([...(await markersOf(stack, saleId)).values()], ['claimed'], 'its marker');
  },
};

const ANSWERED_LOST: Scenario = {
  name: 'R4/units_lost',
  title:
    'the commit and the marker of a 202 are lost and another buyer takes the unit: the purchase fails with units_lost',
  alone: true,
  mayFail: ['units_lost'],
  async run(context) {
    const { stack } = context;
    const { saleId, buyers } = await loseAnswered(context);
    await expectAllAccepted(buyers, ['bob']);
    await context.until('both have a row', async () => (await rowsOf(stack, saleId)) === 2);
    await context.expectFigures(saleId, { liveRows: 1, unitsLeft: 0, failedRows: 1 }, 'sold once');
    const sql = "SELECT user_id AS user, reason FROM orders WHERE sale_id = ? AND state = 'failed'";
    expectEqual(
      (await stack.mysql.query<{ user: string; reason: string }>(sql, [saleId])).map((row) => ({ ...row })),
      [{ user: 'ann', reason: 'units_lost' }],
      'who failed, and why',
    );
    const { status, json } = await buyers.status('ann');
    expectEqual([status, json.status, json.reason], [200, 'failed', 'units_lost'], 'the answer to ann');
  },
};

/** Returns a scenario in which Redis loses everything of a sale under load, by `lose`. */
function emptied(
  variant: string,
  what: string,
  lose: (context: ScenarioContext, saleId: string) => Promise<unknown>,
): Scenario {
  return {
    name: `R5/${variant}`,
    title: `${what} under load: buyers get 503 until the sale is rebuilt from MySQL`,
    alone: true,
    async run(context) {
      const { stack, random } = context;
      const { saleId, buyers } = await startSystem(context, { stock: 100_000 }, { all: SHORT_TIMES });
      const { opLog } = buyers;
      const polling = buyers.pollStatus(['load-0', 'load-1', 'load-2']);
      const options = { parallel: 24, pauseMs: random.whole(10, 30), tries: 1 };
      const load = await buyers.startLoadUntil(options, random.whole(200, 600));

      await lose(context, saleId);
      const { state } = await bucketStatusOf(stack, saleId);
      await context.observed('nothing of the sale is in Redis', () => state === null || state === 'repair');
      const refusedBefore = opLog.count('fail');
      const { resolve } = createStockStore(stack.redis, silentLog);
      const resolved = await resolve({ saleId, bucket: 0, epoch: 1, batchId: 'unheard-of' });
      expectEqual(resolved, 'no_answer', 'resolve, of an unknown batch');
      expectEqual((await stack.admin.warm(saleId, ACTOR)).outcome, 'wrong_state', 'warm, of an open sale');
      await context.observed('buyers were refused', () => opLog.count('fail') > refusedBefore + 20);
      context.faultEnded();
      await untilRebuilt(stack, saleId);

      await buyers.untilAccepted(200, 'the same programs sell again');
      await Promise.all([load.stop(), polling.stop()]);
      await expectRowPerAccepted(context, buyers, { failedRows: 0 });
    },
  };
}

/** Every key of a bucket, including its markers. */
async function deleteKeys({ stack }: ScenarioContext, saleId: string): Promise<void> {
  const { stock, sale, buyers, requests, pending, tx } = bucketKeys({ saleId, bucket: 0 });
  const markers = [...(await markersOf(stack, saleId)).keys()].map((batchId) => tx + batchId);
  await stack.redis.redis.del(stock, sale, buyers, requests, pending, ...markers);
}

const FAILOVER: Scenario = {
  name: 'R7',
  title: 'a replica that fell behind is promoted: the sale is rebuilt before any deduct',
  alone: true,
  mayFail: ['units_lost'],
  async run(context) {
    const { stack, random } = context;
    const stock = 1200;
    const [{ proxy, env }, spare] = [await context.proxy('redis'), await startSpareRedis(stack)];
    const atSpare = { ...stack, redis: spare.redis };
    const link = await TcpProxy.open(`${proxy.target.host}:${proxy.target.port}`);
    try {
      const [linkHost = '', linkPort] = link.address.split(':');
      await replicate(spare.redis, linkHost, Number(linkPort));
      const { saleId, buyers } = await startSystem(context, { stock }, { all: { ...SHORT_TIMES, ...env } });
      const polling = buyers.pollStatus(['load-0', 'load-1', 'load-2']);
      const loadOptions = { parallel: 16, pauseMs: random.whole(10, 30), tries: 1 };
      const load = await buyers.startLoadUntil(loadOptions, random.whole(100, 300));
      link.stall();
      await buyers.untilAccepted(200, 'more is sold');
      const recorded = await batchesWithRows(stack, saleId);

      const primary = stack.servers.server('redis');
      await primary.stop({ signal: 'SIGKILL' });
      await link.close();
      await promote(spare.redis);
      proxy.target = spare;
      await context.observed('the new primary misses markers of recorded batches', async () => {
        const markers = await markersOf(atSpare, saleId);
        return recorded.some((batchId) => !markers.has(batchId));
      });
      context.faultEnded(atSpare);
      await untilRebuilt(atSpare, saleId);
      const soldOut = async (): Promise<boolean> => (await spare.redis.redis.get(`sk:{${saleId}:0}:stock`)) === '0';
      await context.until('the same programs sell it out', soldOut);

      await primary.start(); // a replica, so that the invariant checker finds the data there
      await primary.waitReady();
      await context.until('it is connected', () => stack.redis.redis.status === 'ready');
      await endOfAof(stack);
      await replicate(stack.redis, spare.host, spare.port);
      await Promise.all([load.stop(), polling.stop()]);
      await buyers.retryUnknown();
      await context.expectFigures(saleId, { sold: stock, unitsLeft: 0, oversold: 0 }, 'sold to the unit');
      await context.programs.close(); // writers end before the spare Redis does
    } finally {
      await promote(stack.redis).catch(() => undefined); // the runner starts a server that does not run
      await link.close();
      await spare.stop();
    }
  },
};

export const REDIS_LOSS_SCENARIOS: readonly Scenario[] = [
  TAIL,
  LATE_BATCHES,
  ANSWERED_RECORDED,
  ANSWERED_LOST,
  emptied('keys_deleted', 'the keys of one sale are deleted', deleteKeys),
  emptied('flushall', 'FLUSHALL', ({ stack }) => stack.redis.redis.flushall()),
  emptied('empty_restart', 'Redis is killed and comes back empty', ({ stack }) => loseWritesAfter(stack, 0)),
  FAILOVER,
];
