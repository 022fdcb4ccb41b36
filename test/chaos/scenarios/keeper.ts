import { setTimeout as sleep } from 'node:timers/promises';
import { brokenBooks } from '../../helpers/coupon-books.js';
import { inLanes } from '../../helpers/lanes.js';
import type { ScenarioContext } from '../context.js';
import { recordBatch, soldToUnpaid } from '../harness/batches.js';
import { drainDeliveries } from '../harness/broker.js';
import { finalAnswer, userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectOneOf, expectTrue } from '../harness/expect.js';
import type { Answer } from '../harness/http.js';
import { OrderEventListener } from '../harness/listeners.js';
import { NO_REDRIVE } from '../harness/programs.js';
import {
  cancelPlanted,
  keeperWorkLeft,
  pendingOutboxRows,
  plantOrder,
  requestStateOf,
  statesOf,
  unitsLeftOf,
} from '../harness/sale-state.js';
import type { StackControls } from '../harness/stack-controls.js';
import type { Scenario } from '../scenario.js';

// C3, C4, C6: a keeper dies before it marks its work, or an order ends while it is paid or redelivered.

const ENV = { ...NO_REDRIVE, KEEPER_EVERY_MS: '200', OUTBOX_EVERY_MS: '100', OUTBOX_LEASE_MS: '4000' };
const SIZE = 3;

async function killKeeperAt(context: ScenarioContext, point: string): Promise<void> {
  const keeper = await context.start('keeper', { env: ENV, failPoint: point });
  await context.diedAt(keeper, point);
}

/** Otherwise a keeper with a fail point would die of work that other scenarios have left. */
async function finishOthers(context: ScenarioContext): Promise<void> {
  if ((await keeperWorkLeft(context.stack)) === 0) return;
  const keeper = await context.start('keeper', { env: { ...ENV, EXPIRE_SWEEP_EVERY_MS: '200' } });
  const isDone = async (): Promise<boolean> => (await keeperWorkLeft(context.stack)) === 0;
  await context.until('what other scenarios left is done', isDone);
  await keeper.stop();
}

interface Recorded {
  readonly listener: OrderEventListener;
  readonly saleId: string;
  readonly orderIds: readonly string[];
}

/** A sale with one recorded batch that is due in a second, and a listener for its events. */
async function withRecordedBatch(context: ScenarioContext, work: (recorded: Recorded) => Promise<void>): Promise<void> {
  const listener = await OrderEventListener.open(context.stack.env);
  try {
    await finishOthers(context);
    const { saleId } = await context.openSale();
    const { orderIds } = await recordBatch(context.stack, saleId, SIZE, 1_000);
    await work({ listener, saleId, orderIds });
  } finally {
    await listener.close();
  }
}

const areExpired = async ({ stack }: ScenarioContext, saleId: string): Promise<boolean> =>
  (await statesOf(stack, saleId)).expired === SIZE;

/** A killed keeper may have published an event without marking it, so that the event is published again. */
async function expectExpiredOnce(context: ScenarioContext, { listener, saleId, orderIds }: Recorded): Promise<void> {
  const ended = (): readonly string[] => listener.ordersOf(saleId, 'order.expired');
  await context.until('it is published', () => ended().length >= SIZE);
  expectEqual([...new Set(ended())].sort(), [...orderIds].sort(), 'orders published as expired');
  const ids = listener.eventsOf(saleId).flatMap(({ type, eventId }) => (type === 'order.expired' ? [eventId] : []));
  expectEqual(new Set(ids).size, 1, 'ids of the event');
}

const AFTER_PUBLISH: Scenario = {
  name: 'C3/outbox_after_publish',
  title: 'the keeper dies between publish and mark: the event is published again under one id, with one effect',
  fast: true,
  alone: true,
  run: (context) =>
    withRecordedBatch(context, async (recorded) => {
      const { stack } = context;
      const { listener, saleId } = recorded;
      await killKeeperAt(context, 'outbox_after_publish');
      expectEqual(await pendingOutboxRows(stack, 'batch_recorded', saleId), 1, 'rows that are not marked');
      const created = () => listener.eventsOf(saleId).filter(({ type }) => type === 'order.created');
      const orders = (): number => created().flatMap((event) => event.orders).length;
      await context.until('it was published', () => orders() >= SIZE);

      await context.start('keeper', { env: ENV });
      context.faultEnded();
      const isDone = async (): Promise<boolean> => (await pendingOutboxRows(stack, 'batch_recorded', saleId)) === 0;
      await context.until('it is done', isDone);
      await context.until('it was published again', () => created().length >= 2);
      expectEqual(new Set(created().map(({ eventId }) => eventId)).size, 1, 'ids of the event');

      await context.until('the orders end', () => areExpired(context, saleId));
      await context.expectFigures(saleId, { rows: SIZE, sold: 0, unitsLeft: 10 }, 'one effect');
      await expectExpiredOnce(context, recorded); // although there were two deadlines
    }),
};

const RELEASE: Scenario = {
  name: 'C3/release',
  title: 'keepers die after an expiry and before a release is marked: each order ends and is released once',
  fast: true,
  alone: true,
  run: (context) =>
    withRecordedBatch(context, async (recorded) => {
      const { stack } = context;
      const { saleId } = recorded;
      await killKeeperAt(context, 'expire_after_commit');
      expectTrue(await areExpired(context, saleId), 'the orders ended, and the message was not acked');
      await killKeeperAt(context, 'release_before_done');
      expectEqual(await pendingOutboxRows(stack, 'release', saleId), 1, 'releases done and not marked');
      expectEqual(await unitsLeftOf(stack, saleId), 10, 'units left');

      await context.start('keeper', { env: ENV });
      context.faultEnded();
      const isDone = async (): Promise<boolean> => (await pendingOutboxRows(stack, 'release', saleId)) === 0;
      await context.until('it is done', isDone);
      await context.expectFigures(saleId, { rows: SIZE, sold: 0, unitsLeft: 10 }, 'released once');
      await expectExpiredOnce(context, recorded);
    }),
};

const PAIRS = 500;
const LONG_WINDOW_MS = 900_000;
/** Longer than a busy machine takes to sell these units. */
const SHORT_WINDOW_MS = 15_000;
/** Payments begin this long before the deadline, because a busy machine makes a few hundred a second. */
const EARLY_MS = 2000;
const EVERY_MS = (2 * EARLY_MS) / PAIRS;
const PARALLEL = 16;

interface OrderRow {
  readonly id: string;
  readonly user_id: string;
  readonly batch_id: string;
}

const ordersOf = ({ mysql }: StackControls, saleId: string): Promise<OrderRow[]> =>
  mysql.query('SELECT id, user_id, batch_id FROM orders WHERE sale_id = ?', [saleId]);

const statusOf = async (move: () => Promise<Answer | null>): Promise<number | undefined> =>
  (await finalAnswer(move))?.status;

/** Every buyer pays and cancels at the same moment. One of the two requests must get 409. */
async function payAndCancel(context: ScenarioContext, buyers: Buyers): Promise<void> {
  const orders = await ordersOf(context.stack, buyers.saleId);
  await inLanes(PARALLEL, orders, async ({ id, user_id: userId }) => {
    const leadMs = context.random.whole(-5, 5);
    const [paid, cancelled] = await Promise.all([
      sleep(Math.max(0, -leadMs)).then(() => statusOf(() => buyers.move('pay', userId, id))),
      sleep(Math.max(0, leadMs)).then(() => statusOf(() => buyers.move('cancel', userId, id))),
    ]);
    expectEqual([paid, cancelled].sort(), [200, 409], `pay and cancel of ${id}`);
  });
}

/** Pays around the deadline, while keepers sweep. */
async function payAtDeadline(context: ScenarioContext, buyers: Buyers, dueMs: number): Promise<void> {
  const orders = context.random.shuffled(await ordersOf(context.stack, buyers.saleId));
  await Promise.all(
    orders.map(async ({ id, user_id: userId }, nth) => {
      await sleep(Math.max(0, dueMs - EARLY_MS + nth * EVERY_MS - Date.now()));
      const status = await statusOf(() => buyers.move('pay', userId, id));
      expectOneOf(status, [200, 409], `the payment of ${id}`);
    }),
  );
}

const ONE_END: Scenario = {
  name: 'C4',
  title: '1,000 orders are paid at the moment of their cancellation or deadline: one wins, the other gets 409',
  async run(context) {
    const { stack } = context;
    const pays = { PAYMENT_PROVIDER: 'simulator' };
    const sweep = { ...NO_REDRIVE, ...pays, EXPIRE_SWEEP_EVERY_MS: '50', KEEPER_EVERY_MS: '200' };
    const [api] = await Promise.all([context.start('api', { env: pays }), context.start('keeper', { env: sweep })]);
    const cancelling = (await soldToUnpaid(stack, userIds(PAIRS), LONG_WINDOW_MS)).sale;
    context.addSale(cancelling);
    await payAndCancel(context, context.buyers(cancelling.saleId, [api]));
    const { sale: expiring, dueMs } = await soldToUnpaid(stack, userIds(PAIRS), SHORT_WINDOW_MS);
    context.addSale(expiring);
    await payAtDeadline(context, context.buyers(expiring.saleId, [api]), dueMs);
    context.faultEnded();
    const ends = [
      [cancelling.saleId, 'cancelled'],
      [expiring.saleId, 'expired'],
    ] as const;
    for (const [saleId, other] of ends) {
      const areOver = async (): Promise<boolean> => (await statesOf(stack, saleId)).pending_payment === undefined;
      await context.until('no order is open', areOver);
      const { paid = 0, [other]: ended = 0 } = await statesOf(stack, saleId);
      await context.observed(`${paid} paid, ${ended} ${other}`, () => paid > 0 && ended > 0 && paid + ended === PAIRS);
      await context.expectFigures(saleId, { sold: paid, liveRows: paid, unitsLeft: PAIRS - paid }, 'units back, once');
      expectEqual(await brokenBooks(stack.mysql, `o.sale_id = ${saleId}`), [], 'orders with wrong money');
    }
  },
};

/** Lets the keeper send releases, but leave batches of a dead worker alone. */
const RECORDS_NOTHING = { ...NO_REDRIVE, KEEPER_EVERY_MS: '600000' };
/** Maximum number of killed workers, because the first may have had a batch of another scenario. */
const DEATHS_MAX = 4;

/** Kills workers after a COMMIT until a worker leaves orders of these buyers whose units Redis still holds. */
async function killAfterCommit(
  context: ScenarioContext,
  saleId: string,
  users: readonly string[],
): Promise<OrderRow[]> {
  const { stack } = context;
  const point = 'worker_after_commit';
  for (let deaths = 0; deaths < DEATHS_MAX; deaths++) {
    await context.diedAt(await context.start('worker', { failPoint: point }), point);
    const requests = (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.requests;
    const committed = (await ordersOf(stack, saleId)).filter(({ user_id: userId }) => users.includes(userId));
    const held = committed.filter(({ user_id: userId }) => requests?.get(`${userId}/k1`)?.state === 'held');
    if (held.length > 0) return held;
  }
  return [];
}

const ENDED_BEFORE: Scenario = {
  name: 'C6',
  title: 'a batch returns after its worker has died and an order was cancelled: the order stays released',
  alone: true,
  timeoutMs: 400_000,
  mayFail: ['limit_reached'],
  async run(context) {
    const { stack, random } = context;
    const [api] = await Promise.all([context.start('api'), context.start('keeper', { env: RECORDS_NOTHING })]);
    await drainDeliveries(context);
    const { saleId } = await context.openSale({ stock: 20 });
    const buyers = context.buyers(saleId, [api]);
    const users = userIds(random.whole(4, 8));
    const [refused = '', ...others] = random.shuffled(users);
    await plantOrder(stack, saleId, refused);
    await buyers.rush(users, users.length, { tries: 20 });
    const committed = await killAfterCommit(context, saleId, others);
    expectAtLeast(committed.length, 1, 'orders that are committed and not recorded in Redis');
    const { id, user_id: cancelled, batch_id: batchId } = random.pick(committed);
    expectEqual((await buyers.move('cancel', cancelled, id))?.status, 200, 'the cancellation');
    const isReleased = async (userId: string): Promise<boolean> =>
      (await requestStateOf(stack, saleId, userId)) === 'released';
    const isPending = async (): Promise<boolean | undefined> =>
      (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.pending.includes(batchId);
    await context.observed('it is released', () => isReleased(cancelled));

    expectEqual(await isPending(), true, 'its batch is pending');
    await context.start('worker');
    // ends only when a worker has received the batch
    await context.observed('the batch came again', async () => (await isPending()) === false);
    // the planted order must stay until then, because the refused purchase may be in another batch
    await context.until('the refused one is released', () => isReleased(refused));
    await cancelPlanted(stack, saleId);
    context.faultEnded();
    const live = users.length - 2;
    await context.expectFigures(saleId, { liveRows: live, failedRows: 1, unitsLeft: 20 - live }, 'as before');
    expectEqual([await isReleased(cancelled), await isReleased(refused)], [true, true], 'both stay released');
  },
};

export const KEEPER_SCENARIOS: readonly Scenario[] = [AFTER_PUBLISH, RELEASE, ONE_END, ENDED_BEFORE];
