import { setTimeout as sleep } from 'node:timers/promises';
import type { OrderState } from '../../../src/core/order.js';
import { createOrderStates } from '../../../src/mysql/order-repository.js';
import type { Arena } from '../context.js';
import { expectAllBack, recordBatch, soldToUnpaid, statesOf } from '../harness/batches.js';
import { REDELIVERED_WITHIN_MS, drainDeliveries } from '../harness/broker.js';
import { type Buyers, userIds } from '../harness/buyers.js';
import { expectAtLeast, expectBelow, expectEqual, expectFields, expectOneOf, expectTrue } from '../harness/expect.js';
import type { Answer } from '../harness/http.js';
import { EventEar } from '../harness/listeners.js';
import { cancelPlanted, plantOrder, undoneRows, workLeft } from '../harness/orders.js';
import type { StackHands } from '../harness/stack-controls.js';
import type { Row } from '../scenario.js';

// C: keeper, reconcile and compensation.

/** No worker runs here, so what is published again would wait for the next row. */
const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };
const ENV = { ...NO_REDRIVE, KEEPER_EVERY_MS: '200', OUTBOX_EVERY_MS: '100', OUTBOX_LEASE_MS: '4000' };
/** The lease of a row (4 s) or the invisible time of a message (30 s) of a keeper that died, and what comes after. */
const AGAIN_WITHIN_MS = 60_000;
const SIZE = 3;

const MANY_ORDERS = 10_000;
const BACK_WITHIN_MS = 30_000;
/** All are due when the keeper starts, so that it has them in its hands when it dies. */
const PAYMENT_WINDOW_MS = 1;

/** Lets a keeper run into the point. */
async function killKeeperAt(arena: Arena, point: string): Promise<void> {
  const keeper = await arena.start('keeper', { env: ENV, failPoint: point });
  await arena.diedAt(keeper, point, AGAIN_WITHIN_MS);
}

/** A keeper with a fail point would else die of the work that other rows have left. */
async function finishOthers(arena: Arena): Promise<void> {
  if ((await workLeft(arena.stack)) === 0) return;
  const keeper = await arena.start('keeper', { env: { ...ENV, EXPIRE_SWEEP_EVERY_MS: '200' } });
  await arena.until('what other rows left is done', async () => (await workLeft(arena.stack)) === 0, AGAIN_WITHIN_MS);
  await keeper.stop();
}

async function expired({ stack }: Arena, orderIds: readonly string[]): Promise<boolean> {
  const states: OrderState[] = [...(await createOrderStates(stack.mysql).statesOf(orderIds)).values()];
  return states.every((state) => state === 'expired');
}

/** A keeper that was killed may have published without marking: then it is told again, under the same id. */
async function expectOneEnd(arena: Arena, ear: EventEar, saleId: string, orderIds: readonly string[]): Promise<void> {
  const ended = (): readonly string[] => ear.ordersOf(saleId, 'order.expired');
  await arena.until('it is told', () => ended().length >= SIZE, AGAIN_WITHIN_MS);
  expectEqual([...new Set(ended())].sort(), [...orderIds].sort(), 'orders that were told as expired');
  const ids = ear.eventsOf(saleId).flatMap(({ type, eventId }) => (type === 'order.expired' ? [eventId] : []));
  expectEqual(new Set(ids).size, 1, 'ids of the event');
}

async function withEar(arena: Arena, work: (ear: EventEar) => Promise<void>): Promise<void> {
  const ear = await EventEar.open(arena.stack.env);
  try {
    await work(ear);
  } finally {
    await ear.close();
  }
}

const AFTER_PUBLISH: Row = {
  ...{ id: 'C3', variant: 'outbox_after_publish' },
  title: 'the keeper dies between publish and mark: published again under one id, with one effect',
  ...{ fast: true, alone: true },
  run: (arena) =>
    withEar(arena, async (ear) => {
      const { stack } = arena;
      await finishOthers(arena);
      const { saleId } = await arena.openSale();
      const { orderIds } = await recordBatch(stack, saleId, SIZE, 1_000);
      await killKeeperAt(arena, 'outbox_after_publish');
      expectEqual(await undoneRows(stack, 'batch_recorded', saleId), 1, 'rows that are not marked');
      const told = (): number => ear.ordersOf(saleId, 'order.created').length;
      await arena.until('it was published', () => told() === SIZE, AGAIN_WITHIN_MS);

      await arena.start('keeper', { env: ENV });
      arena.faultEnded();
      const done = async (): Promise<boolean> => (await undoneRows(stack, 'batch_recorded', saleId)) === 0;
      await arena.until('it is done', done, AGAIN_WITHIN_MS);
      const created = () => ear.eventsOf(saleId).filter(({ type }) => type === 'order.created');
      await arena.until('it was published again', () => created().length === 2, AGAIN_WITHIN_MS);
      expectEqual(new Set(created().map(({ eventId }) => eventId)).size, 1, 'ids of the event');

      await arena.until('the orders end', () => expired(arena, orderIds), AGAIN_WITHIN_MS);
      expectFields(await arena.rest(saleId), { rows: SIZE, sold: 0, unitsLeft: 10 }, 'one effect');
      await expectOneEnd(arena, ear, saleId, orderIds); // of two deadlines
    }),
};

const RELEASE: Row = {
  ...{ id: 'C3', variant: 'release' },
  title: 'keepers die after an expiry and before a release is marked: each order ends once and is released once',
  ...{ fast: true, alone: true },
  run: (arena) =>
    withEar(arena, async (ear) => {
      const { stack } = arena;
      await finishOthers(arena);
      const { saleId } = await arena.openSale();
      const { orderIds } = await recordBatch(stack, saleId, SIZE, 1_000);
      await killKeeperAt(arena, 'expire_after_commit');
      expectTrue(await expired(arena, orderIds), 'the orders ended, and the message was not acked');
      await killKeeperAt(arena, 'release_before_done');
      expectEqual(await undoneRows(stack, 'release', saleId), 1, 'releases given back and not marked');
      expectEqual((await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.unitsLeft, 10, 'units left');

      await arena.start('keeper', { env: ENV });
      arena.faultEnded();
      const done = async (): Promise<boolean> => (await undoneRows(stack, 'release', saleId)) === 0;
      await arena.until('it is done', done, AGAIN_WITHIN_MS);
      expectFields(await arena.rest(saleId), { rows: SIZE, sold: 0, unitsLeft: 10 }, 'released once');
      await expectOneEnd(arena, ear, saleId, orderIds);
    }),
};

const MANY: Row = {
  ...{ id: 'C3', variant: 'many' },
  title: `the keeper dies in the middle of expiring ${MANY_ORDERS} orders: the next one goes on, each is released once`,
  ...{ fast: true, alone: true },
  async run(arena) {
    const { stack, programs, random } = arena;
    const { sale } = await soldToUnpaid(stack, { count: MANY_ORDERS, paymentWindowMs: PAYMENT_WINDOW_MS });
    const { saleId } = sale;
    arena.adopt(sale);
    const ended = async (): Promise<number> => (await statesOf(stack, saleId)).expired ?? 0;
    const env = { ...NO_REDRIVE, KEEPER_EVERY_MS: '50', EXPIRE_SWEEP_EVERY_MS: '50' };
    const victim = arena.start('keeper', { env });
    victim.catch(() => undefined); // it is killed, perhaps before it says that it is ready
    const before = random.whole(0, 1000);
    await arena.until('some orders have ended', async () => (await ended()) > before, 60_000, 5);
    for (const program of programs.running) await program.crash();
    await victim.catch(() => undefined);
    const [some, promised] = [await ended(), await stack.audit.repository.undoneReleases(saleId)];
    expectAtLeast(some, 1, 'orders that had ended');
    await arena.bite('a keeper was killed and left work', () => some < MANY_ORDERS || promised > 0);

    const restartedMs = Date.now();
    await arena.start('keeper', { env });
    arena.faultEnded();
    await arena.until('every order has ended', async () => (await ended()) === MANY_ORDERS, BACK_WITHIN_MS);
    const all = { sold: 0, liveRows: 0, unitsLeft: MANY_ORDERS, rows: MANY_ORDERS };
    expectFields(await arena.rest(saleId), all, 'all units back');
    expectBelow(Date.now() - restartedMs, BACK_WITHIN_MS, 'ms until then');
    await expectAllBack(stack, saleId, MANY_ORDERS);
  },
};

/** Releases are sent all the same; but what a dead worker left is found as it left it. */
const SETTLES_NOTHING = { ...NO_REDRIVE, KEEPER_EVERY_MS: '600000' };

const PAIRS = 500;
const LONG_WINDOW_MS = 900_000;
/** Longer than it takes to sell so many on a busy machine. */
const SHORT_WINDOW_MS = 15_000;
/** Payments come evenly around the deadline, the first so long before it: a busy machine pays a few hundred a second. */
const EARLY_MS = 2000;
const EVERY_MS = (2 * EARLY_MS) / PAIRS;
const PARALLEL = 16;
const TRIES_MAX = 20;

interface OrderRow {
  readonly id: string;
  readonly user_id: string;
  readonly batch_id: string;
}

async function ordersOf({ mysql }: StackHands, saleId: string): Promise<OrderRow[]> {
  return mysql.query('SELECT id, user_id, batch_id FROM orders WHERE sale_id = ?', [saleId]);
}

/** Asks again while the answer is that nobody knows, or that the row is locked for too long. */
async function settled(ask: () => Promise<Answer | null>): Promise<number | undefined> {
  for (let tries = 1; ; tries++) {
    const answer = await ask();
    if (tries === TRIES_MAX || (answer !== null && answer.status < 500)) return answer?.status;
  }
}

/** Every buyer pays and cancels in one moment; one of the two is told no, with 409. */
async function payAndCancel(arena: Arena, buyers: Buyers, saleId: string): Promise<void> {
  const orders = await ordersOf(arena.stack, saleId);
  const hand = async (): Promise<void> => {
    for (let order = orders.pop(); order !== undefined; order = orders.pop()) {
      const { id, user_id: userId } = order;
      const leadMs = arena.random.whole(-5, 5);
      const [paid, cancelled] = await Promise.all([
        sleep(Math.max(0, -leadMs)).then(() => settled(() => buyers.move('pay', userId, id))),
        sleep(Math.max(0, leadMs)).then(() => settled(() => buyers.move('cancel', userId, id))),
      ]);
      expectEqual([paid, cancelled].sort(), [200, 409], `pay and cancel of ${id}`);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, hand));
}

/** Payments around the deadline, while keepers sweep. */
async function payAtDeadline(arena: Arena, buyers: Buyers, saleId: string, dueMs: number): Promise<void> {
  const orders = arena.random.shuffled(await ordersOf(arena.stack, saleId));
  await Promise.all(
    orders.map(async ({ id, user_id: userId }, nth) => {
      await sleep(Math.max(0, dueMs - EARLY_MS + nth * EVERY_MS - Date.now()));
      const status = await settled(() => buyers.move('pay', userId, id));
      expectOneOf(status, [200, 409], `the payment of ${id}`);
    }),
  );
}

/** Every payment is an order that is paid, or goes back. */
async function expectMoneyConserved({ mysql }: StackHands, saleId: string, paid: number): Promise<void> {
  const [row] = await mysql.query<{ payments: string; refunds: string }>(
    'SELECT COUNT(*) AS payments, COUNT(r.payment_id) AS refunds FROM payments p JOIN orders o ON o.id = p.order_id' +
      ' LEFT JOIN refunds r USING (payment_id) WHERE o.sale_id = ?',
    [saleId],
  );
  expectEqual(Number(row?.payments) - Number(row?.refunds), paid, 'payments that are not owed back');
}

const ONE_END: Row = {
  id: 'C4',
  title: `${2 * PAIRS} orders are paid in the moment of their cancellation or deadline: one wins, the other hears 409`,
  ...{ fast: false, alone: false },
  async run(arena) {
    const { stack } = arena;
    const sweep = { ...NO_REDRIVE, EXPIRE_SWEEP_EVERY_MS: '50', KEEPER_EVERY_MS: '200', PAYMENT_PROVIDER: 'simulator' };
    const [api] = await Promise.all([
      arena.start('api', { env: { PAYMENT_PROVIDER: 'simulator' } }),
      arena.start('keeper', { env: sweep }),
    ]);
    const buyersOf = (saleId: string): Buyers => arena.buyers(saleId, [api]);
    const cancelling = (await soldToUnpaid(stack, { count: PAIRS, paymentWindowMs: LONG_WINDOW_MS })).sale;
    arena.adopt(cancelling);
    await payAndCancel(arena, buyersOf(cancelling.saleId), cancelling.saleId);
    const { sale: expiring, dueMs } = await soldToUnpaid(stack, { count: PAIRS, paymentWindowMs: SHORT_WINDOW_MS });
    arena.adopt(expiring);
    await payAtDeadline(arena, buyersOf(expiring.saleId), expiring.saleId, dueMs);
    arena.faultEnded();
    const ends = [
      [cancelling.saleId, 'cancelled'],
      [expiring.saleId, 'expired'],
    ] as const;
    for (const [saleId, other] of ends) {
      await arena.until('no order is open', async () => (await statesOf(stack, saleId)).pending_payment === undefined);
      const { paid = 0, [other]: ended = 0 } = await statesOf(stack, saleId);
      await arena.bite(`${paid} paid, ${ended} ${other}`, () => paid > 0 && ended > 0 && paid + ended === PAIRS);
      const figures = { sold: paid, liveRows: paid, unitsLeft: PAIRS - paid };
      expectFields(await arena.rest(saleId), figures, 'units back, once');
      await expectMoneyConserved(stack, saleId, paid);
    }
  },
};

/** Workers that die: the first one may have had only a batch of somebody else. */
const DEATHS_MAX = 4;

/** Kills workers behind a COMMIT, until one has left orders of these buyers that Redis still holds. */
async function killAfterCommit(arena: Arena, saleId: string, users: readonly string[]): Promise<OrderRow[]> {
  const { stack } = arena;
  const point = 'worker_after_commit';
  for (let deaths = 0; deaths < DEATHS_MAX; deaths++) {
    await arena.diedAt(await arena.start('worker', { failPoint: point }), point, REDELIVERED_WITHIN_MS);
    const requests = (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.requests;
    const committed = (await ordersOf(stack, saleId)).filter(({ user_id: userId }) => users.includes(userId));
    const unsettled = committed.filter(({ user_id: userId }) => requests?.get(`${userId}/k1`)?.state === 'held');
    if (unsettled.length > 0) return unsettled;
  }
  return [];
}

const ENDED_BEFORE: Row = {
  id: 'C6',
  title: 'a worker dies before it settles, an order is cancelled and released, then its batch comes again: it stays so',
  ...{ fast: false, alone: true, timeoutMs: 400_000 },
  mayFail: ['limit_reached'],
  async run(arena) {
    const { stack, random } = arena;
    const [api] = await Promise.all([arena.start('api'), arena.start('keeper', { env: SETTLES_NOTHING })]);
    await drainDeliveries(arena);
    const { saleId } = await arena.openSale({ stock: 20 });
    const buyers = arena.buyers(saleId, [api]);
    const users = userIds(random.whole(4, 8));
    const [refused = '', ...others] = random.shuffled(users);
    await plantOrder(stack, saleId, refused);
    await buyers.rush(users, users.length, { tries: 20 });
    const committed = await killAfterCommit(arena, saleId, others);
    expectAtLeast(committed.length, 1, 'orders that are committed and not settled');
    const { id, user_id: cancelled, batch_id: batchId } = random.pick(committed);
    expectEqual((await buyers.move('cancel', cancelled, id))?.status, 200, 'the cancellation');
    const books = () => stack.audit.store.snapshot({ saleId, bucket: 0 });
    const stateOf = async (userId: string) => (await books())?.requests.get(`${userId}/k1`)?.state;
    const isPending = async () => (await books())?.pending.includes(batchId);
    await arena.bite('it is released', async () => (await stateOf(cancelled)) === 'released');

    expectEqual(await isPending(), true, 'its batch is not settled');
    await arena.start('worker');
    // nobody but a worker that has it in its hands settles it here
    await arena.bite('the batch came again', async () => (await isPending()) === false, REDELIVERED_WITHIN_MS);
    // he may have come in another batch, for which he must not be free too early
    await arena.until(
      'the refused one is refused',
      async () => (await stateOf(refused)) === 'released',
      REDELIVERED_WITHIN_MS,
    );
    await cancelPlanted(stack, saleId);
    arena.faultEnded();
    const live = users.length - 2;
    expectFields(await arena.rest(saleId), { liveRows: live, failedRows: 1, unitsLeft: 20 - live }, 'as before');
    expectEqual([await stateOf(cancelled), await stateOf(refused)], ['released', 'released'], 'what had ended');
  },
};

export const KEEPER_SCENARIOS: readonly Row[] = [AFTER_PUBLISH, RELEASE, MANY, ONE_END, ENDED_BEFORE];
