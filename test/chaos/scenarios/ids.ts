import { hash32 } from '../../../src/core/bucket.js';
import { composeOrderId } from '../../../src/core/order-id.js';
import { explainOrderId } from '../../helpers/explain-order-id.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import type { ScenarioContext } from '../context.js';
import { outcomeOf, userIds } from '../harness/buyers.js';
import { expectAtLeast, expectEqual } from '../harness/expect.js';
import { expectRowPerAccepted, startSystem } from '../harness/load.js';
import { clockStep, NO_REDRIVE, readMetric, SAME_IDENTITY, type Program } from '../harness/programs.js';
import { markersOf } from '../harness/sale-state.js';
import { draftSale } from '../harness/sales.js';
import type { StackControls } from '../harness/stack-controls.js';
import { atScriptCall, messageIdsOn, MysqlWire, withoutMac } from '../harness/traffic.js';
import type { Scenario } from '../scenario.js';

// M13, D7, D8: ids of messages and orders when processes, clocks, leases or the ids themselves are wrong.

/** Purchases in the bodies of deducted markers, as `userId/requestId`, before a worker has shortened the markers. */
async function deductedPurchases({ stack }: ScenarioContext, saleId: string): Promise<string[]> {
  const { tx } = bucketKeys({ saleId, bucket: 0 });
  const deducted: string[] = [];
  for (const [batchId, word] of await markersOf(stack, saleId)) {
    if (word !== 'deducted') continue;
    const body = ((await stack.redis.redis.get(tx + batchId)) ?? '').slice(word.length);
    const batch = JSON.parse(body) as { batchId: string; purchases: [string, string, number][] };
    expectEqual(batch.batchId, batchId, 'the batch in the body of its marker');
    deducted.push(...batch.purchases.map(([userId, requestId]) => `${userId}/${requestId}`));
  }
  return deducted.sort();
}

const SAME_PROCESS: Scenario = {
  name: 'M13',
  title: 'two apis have equal pid and MAC, one commits while the other rolls back: each ends its own message',
  alone: true,
  async run(context) {
    const [{ saleId }, lateBroker, earlyBroker, redis] = await Promise.all([
      context.openSale({ stock: 100 }),
      context.proxy('broker'),
      context.proxy('broker'),
      context.proxy('redis'),
    ]);
    const [lateIds, earlyIds] = [messageIdsOn(lateBroker.proxy), messageIdsOn(earlyBroker.proxy)];
    const preload = [SAME_IDENTITY];
    const lateEnv = { ...lateBroker.env, ...redis.env, REDIS_REPLY_TIMEOUT_MS: '10000' };
    const [lateApi, earlyApi] = await Promise.all([
      context.start('api', { preload, env: lateEnv }),
      context.start('api', { preload, env: earlyBroker.env }),
    ]);
    const identityOf = ({ log }: Program): string => /^identity: .*$/m.exec(log)?.[0] ?? 'none';
    const identity = identityOf(lateApi);
    const isSame = identity === identityOf(earlyApi) && /pid \d+, mac [\da-f:]{17}/.test(identity);
    await context.observed(`both have the ${identity}`, () => isSame);

    // each buyer sends two purchases: the second takes the only unit that the buyer may have while the half message of
    // the first is open, so one api commits while the other rolls back
    const [late, early] = [context.buyers(saleId, [lateApi]), context.buyers(saleId, [earlyApi])];
    const users = userIds(context.random.whole(15, 40));
    for (const userId of users) {
      let won = 'nothing';
      atScriptCall(redis.proxy, 'deduct', async () => {
        won = outcomeOf(await early.buy(userId, { requestId: 'early' }));
      });
      const lost = outcomeOf(await late.buy(userId, { requestId: 'late' }));
      expectEqual([won, lost], ['accepted', 'limit_reached'], `the answers to ${userId}`);
    }

    const known = new Set([...lateIds].map(withoutMac));
    const pairs = [...earlyIds].filter((messageId) => known.has(withoutMac(messageId)));
    await context.observed(`${pairs.length} pairs of message ids differ by chance only`, () => pairs.length > 0);
    context.faultEnded();
    const shared = [...earlyIds].filter((messageId) => lateIds.has(messageId));
    expectEqual(shared, [], 'message ids of both');
    const accepted = users.map((userId) => `${userId}/early`).sort();
    expectEqual(await deductedPurchases(context, saleId), accepted, 'purchases in the bodies of deducted markers');

    await Promise.all([context.start('worker'), context.start('keeper', { env: NO_REDRIVE })]);
    const figures = { rows: users.length, sold: users.length, failedRows: 0 };
    await context.expectFigures(saleId, figures, 'an order for each accepted purchase');
  },
};

const INSERT_ORDERS = 'INSERT INTO orders';
const DUPLICATE = 1062;

async function orderIdsOf({ mysql }: StackControls, saleId: string): Promise<string[]> {
  const rows = await mysql.query<{ id: string }>('SELECT id FROM orders WHERE sale_id = ? ORDER BY id', [saleId]);
  return rows.map(({ id }) => id);
}

/** Returns whether a worker received batches but had no ids for their orders. */
const lacksIds = async (worker: Program): Promise<boolean> =>
  (await readMetric(worker, 'seckill_record_retries_total{reason="no_order_ids"}')) > 0;

/** Every second millisecond of this time is taken. */
const TAKEN_MS = 20_000;
const ROWS_PER_INSERT = 2_000;

/** Plants rows of another sale with the ids that a worker is about to give to buyers with one hash. */
async function takeIds(stack: StackControls, slot: number, buyer: string): Promise<void> {
  const { saleId } = await draftSale(stack);
  const fromMs = Math.floor(Date.now() / 2) * 2;
  const rows = Array.from({ length: TAKEN_MS / 2 }, (_, nth) => {
    const id = composeOrderId(fromMs + 2 * nth, slot, buyer, 0);
    return `(${id}, ${saleId}, 'taken-${nth}', 'k1', 'taken', 1, 1, 0, 'failed', 'discarded')`;
  });
  for (let from = 0; from < rows.length; from += ROWS_PER_INSERT) {
    await stack.mysql.execute(
      'INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer, state,' +
        ` reason) VALUES ${rows.slice(from, from + ROWS_PER_INSERT).join()}`,
    );
  }
}

const EQUAL_IDS: Scenario = {
  name: 'D7/equal_id',
  title: 'an order id is taken, as by a second worker with the same slot: another id is used, each has its row',
  alone: true,
  async run(context) {
    const { stack } = context;
    const { proxy, env } = await context.proxy('mysql');
    const wire = new MysqlWire(proxy);
    const { saleId, buyers } = await startSystem(context, { stock: 100 }, { worker: env });
    const hash = context.random.whole(0, 63);
    const users = userIds(4_000)
      .filter((userId) => (hash32(userId) & 63) === hash)
      .slice(0, 30);
    const [first = '', ...others] = users;
    await buyers.buy(first, { tries: 20 });
    await context.expectInvariants(saleId);
    const [orderId = ''] = await orderIdsOf(stack, saleId);
    await takeIds(stack, explainOrderId(orderId).slot, first);
    // one by one: takes the first id of a millisecond
    for (const userId of others) await buyers.buy(userId, { tries: 5 });
    await context.observed('an id was taken (1062)', () => wire.count(DUPLICATE, 'PRIMARY') > 0);
    context.faultEnded();
    const count = users.length;
    await context.expectFigures(saleId, { rows: count, liveRows: count, failedRows: 0 }, 'one order each');
  },
};

/** Longer than ids may run ahead of the clock, but over within seconds. */
const STEP_MS = -6_000;

const CLOCK_STEPS_BACK: Scenario = {
  name: 'D8/clock',
  title: 'the clock of the worker steps back: no order id until it has caught up, and none with an earlier time',
  alone: true,
  async run(context) {
    const { stack } = context;
    const [api, worker] = await Promise.all([
      context.start('api'),
      context.start('worker', { preload: [clockStep(STEP_MS)] }),
      context.start('keeper'),
    ]);
    const { saleId } = await context.openSale({ stock: 100_000 });
    const buyers = context.buyers(saleId, [api]);
    const load = buyers.startLoad({ parallel: 4, pauseMs: 50, tries: 3 });
    const orders = async (): Promise<number> => (await orderIdsOf(stack, saleId)).length;
    const before = context.random.whole(30, 100);
    await context.until('the load is recorded', async () => (await orders()) > before);

    worker.signal('SIGUSR2');
    const steppedMs = performance.now();
    await context.observed('no order id is created', () => lacksIds(worker));
    const known = await orderIdsOf(stack, saleId);
    await buyers.untilAccepted(10, 'purchases are accepted meanwhile');
    expectEqual(await orders(), known.length, 'orders while the clock is behind');
    await context.until('orders are written again', async () => (await orders()) > known.length);
    context.faultEnded();
    const hasCaughtUp = (): boolean => performance.now() - steppedMs > -STEP_MS - 500;
    await context.observed('that was after the clock had caught up', hasCaughtUp);
    await load.stop();
    await expectRowPerAccepted(context, buyers, { failedRows: 0 });
    const later = (await orderIdsOf(stack, saleId)).filter((id) => !known.includes(id));
    const timeOf = (id: string | undefined): number => explainOrderId(id ?? '0').atMs;
    expectAtLeast(timeOf(later[0]), timeOf(known.at(-1)), 'time in the smallest of the new ids');
  },
};

/** Marks slots that the scenario takes, so that only one is left. */
const PLANTED = 'planted-';

/** Takes every slot except this one. */
async function takeOtherSlots({ mysql }: StackControls, slot: number): Promise<void> {
  await mysql.execute(
    'UPDATE worker_slots SET owner = CONCAT(?, slot), leased_until = UTC_TIMESTAMP(3) + INTERVAL 50 MINUTE WHERE slot <> ?',
    [PLANTED, slot],
  );
}

async function freeOtherSlots({ mysql }: StackControls): Promise<void> {
  const sql = "UPDATE worker_slots SET owner = NULL, leased_until = '2000-01-01' WHERE owner LIKE ?";
  await mysql.execute(sql, [`${PLANTED}%`]);
}

const LEASE_LOST: Scenario = {
  name: 'D8/lease',
  title: 'a worker is stopped until another has its slot for ids: after that it creates no id before it has a slot',
  alone: true,
  async run(context) {
    const { stack } = context;
    const lease = { ORDER_SLOT_LEASE_MS: '5000', WORKER_RETRY_FIRST_MS: '10' };
    const { proxy, env } = await context.proxy('mysql');
    const wire = new MysqlWire(proxy, [INSERT_ORDERS]);
    const {
      worker: stopped,
      saleId,
      buyers,
    } = await startSystem(context, { stock: 100_000 }, { worker: { ...lease, ...env } });
    await buyers.rush(userIds(context.random.whole(3, 10), 'early'), 4, { tries: 20 });
    await context.expectInvariants(saleId);
    const { slot } = explainOrderId((await orderIdsOf(stack, saleId))[0] as string);
    try {
      await takeOtherSlots(stack, slot);
      stopped.signal('SIGSTOP');
      // a slot is given away only some seconds after its lease has ended
      const free = 'SELECT slot FROM worker_slots WHERE leased_until < UTC_TIMESTAMP(3) - INTERVAL 5 SECOND';
      const hasEnded = async (): Promise<boolean> => (await stack.mysql.query(free)).length > 0;
      await context.until('the lease of the stopped worker has ended', hasEnded);
      const other = await context.start('worker', { env: lease });
      stopped.signal('SIGCONT');
      const insertsBefore = wire.sent(INSERT_ORDERS);
      const load = buyers.startLoad({ parallel: 8, pauseMs: 30, tries: 3 });
      const knows = (): boolean => stopped.log.includes('slots are taken');
      await context.observed('another worker has the slot, and the old owner knows', knows);
      await context.observed('it received batches and has no ids for them', () => lacksIds(stopped));
      expectEqual(wire.sent(INSERT_ORDERS), insertsBefore, 'INSERTs of a worker without a slot');
      expectEqual(other.running, true, 'the other worker runs');
      await freeOtherSlots(stack);
      context.faultEnded();
      await context.until('it writes again', () => wire.sent(INSERT_ORDERS) > insertsBefore);
      await load.stop();
    } finally {
      await freeOtherSlots(stack);
    }
    await expectRowPerAccepted(context, buyers, { failedRows: 0 });
  },
};

export const IDS_SCENARIOS: readonly Scenario[] = [SAME_PROCESS, EQUAL_IDS, CLOCK_STEPS_BACK, LEASE_LOST];
