import { setTimeout as sleep } from 'node:timers/promises';
import type { Arena } from '../arena.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { AGAIN_WITHIN_MS, drainDeliveries } from '../harness/drain-deliveries.js';
import { expectAtLeast, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import type { Answer } from '../harness/http-client.js';
import { cancelPlanted, plantOrder } from '../harness/planted-order.js';
import type { StackHands } from '../harness/stack-hands.js';
import { soldToUnpaid, statesOf } from '../harness/unpaid-orders.js';
import type { Row } from '../row.js';

// C4 and C6: an order ends while somebody pays it, or before its batch comes again.

const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };
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
    await arena.diedAt(await arena.start('worker', { failPoint: point }), point, AGAIN_WITHIN_MS);
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
    await arena.bite('the batch came again', async () => (await isPending()) === false, AGAIN_WITHIN_MS);
    // he may have come in another batch, for which he must not be free too early
    await arena.until(
      'the refused one is refused',
      async () => (await stateOf(refused)) === 'released',
      AGAIN_WITHIN_MS,
    );
    await cancelPlanted(stack, saleId);
    arena.faultEnded();
    const live = users.length - 2;
    expectFields(await arena.rest(saleId), { liveRows: live, failedRows: 1, unitsLeft: 20 - live }, 'as before');
    expectEqual([await stateOf(cancelled), await stateOf(refused)], ['released', 'released'], 'what had ended');
  },
};

export const ORDER_END_ROWS: readonly Row[] = [ONE_END, ENDED_BEFORE];
