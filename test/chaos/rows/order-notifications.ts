import { randomBytes } from 'node:crypto';
import type { OrderEvent } from '../../../src/core/order-event.js';
import { GROUPS, type Group } from '../../../src/core/topics.js';
import { silentLog } from '../../../src/core/ports/log.js';
import { createDeadlineChannel, createOrderEventChannel } from '../../../src/rocketmq/order-channels.js';
import type { Arena } from '../arena.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { EventEar } from '../harness/event-ear.js';
import { expectEqual, expectFields } from '../harness/expect.js';
import { readMetric } from '../harness/metrics.js';
import type { Program } from '../harness/programs.js';
import { holdBatch, type HeldBatch } from '../harness/recorded-batch.js';
import { statesOf } from '../harness/unpaid-orders.js';
import type { Row } from '../row.js';

// M6: what is told of orders comes too early, twice, and in any order.

const STOCK = 20;
const PAYS = { PAYMENT_PROVIDER: 'simulator' };
/** Nobody but a message ends orders; what it says of messages that wait is read in its log. */
const KEEPER_ENV = {
  ...PAYS,
  ...{ EXPIRE_SWEEP_EVERY_MS: '600000', REDRIVE_AFTER_MS: '3600000' },
  ...{ KEEPER_EVERY_MS: '200', OUTBOX_EVERY_MS: '100', LOG_LEVEL: 'debug' },
};
/** Much longer than the row takes. */
const PAYMENT_WINDOW_MS = 900_000;
/** A message that must wait comes again after 1, 5, 15, 30 s, and some seconds of the broker. */
const AGAIN_WITHIN_MS = 60_000;

/** How often a message had to wait for these orders. */
const waitsIn = ({ log }: Program, count: number, why: string): number =>
  log.split(`${count} of ${count} orders are not ${why}, or not there`).length - 1;

const doneBy = (keeper: Program, group: Group): Promise<number> =>
  readMetric(keeper, `seckill_consumed_messages_total{group="${group}",verdict="done"}`);

/** Waits until a group has done with so many messages. */
async function untilDone(arena: Arena, keeper: Program, group: Group, messages: number): Promise<void> {
  const isDone = async (): Promise<boolean> => (await doneBy(keeper, group)) >= messages;
  await arena.until(`${group} has done with ${messages} messages`, isDone, AGAIN_WITHIN_MS);
}

/** A deadline by hand, as often as asked, whose time is over. */
async function publishDeadline({ stack }: Arena, saleId: string, batch: HeldBatch, times: number): Promise<void> {
  const channel = await createDeadlineChannel({ endpoint: stack.env.ROCKETMQ_ENDPOINT, log: silentLog });
  try {
    const { batchId, orderIds: orders } = batch;
    const deadline = { batchId, saleId, orders, deadlineAtMs: Date.now() - 2_000 };
    for (let time = 0; time < times; time++) await channel.publish(deadline);
  } finally {
    await channel.close();
  }
}

const EARLY_DEADLINE: Row = {
  ...{ id: 'M6', variant: 'deadline_first' },
  title: 'a payment deadline comes twice before its orders, before their time, and after it: it waits, then acts once',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [{ saleId }, api, keeper] = await Promise.all([
      arena.openSale({ stock: STOCK }),
      arena.start('api', { env: PAYS }),
      arena.start('keeper', { env: KEEPER_ENV }),
    ]);
    const count = random.whole(5, 12);
    const batch = await holdBatch(stack, saleId, count);
    const waits = (): number => waitsIn(keeper, count, 'due');
    await publishDeadline(arena, saleId, batch, 2);
    await arena.bite('both copies came before their orders', () => waits() >= 2, AGAIN_WITHIN_MS);

    await batch.record(PAYMENT_WINDOW_MS);
    const before = waits();
    await arena.bite('they came again before their time', () => waits() >= before + 2, AGAIN_WITHIN_MS);
    expectEqual(await statesOf(stack, saleId), { pending_payment: count }, 'states before their time');

    const buyers = arena.buyers(saleId, [api]);
    const paying = random.whole(0, count - 1);
    const [userId = '', orderId = ''] = [batch.userIds[paying], batch.orderIds[paying]];
    expectEqual((await buyers.move('pay', userId, orderId))?.status, 200, 'a payment in time');
    await stack.mysql.execute('UPDATE orders SET expires_at = UTC_TIMESTAMP(3) WHERE sale_id = ?', [saleId]);
    const isOver = async (): Promise<boolean> => (await statesOf(stack, saleId)).pending_payment === undefined;
    await arena.until('the message that waited ends the others', isOver, AGAIN_WITHIN_MS);
    await publishDeadline(arena, saleId, batch, 3);
    await untilDone(arena, keeper, GROUPS.expirer, 5);
    arena.faultEnded();
    expectEqual(await statesOf(stack, saleId), { paid: 1, expired: count - 1 }, 'states in the end');
    expectFields(await arena.rest(saleId), { sold: 1, unitsLeft: STOCK - 1, rows: count }, 'units back, once');
  },
};

/** Publishes each event as a message of its own. */
async function publishEvents({ stack }: Arena, events: readonly OrderEvent[]): Promise<void> {
  const channel = await createOrderEventChannel({ endpoint: stack.env.ROCKETMQ_ENDPOINT, log: silentLog });
  try {
    for (const event of events) await channel.publish([event]);
  } finally {
    await channel.close();
  }
}

/** Begins the id of every event that no keeper has told. */
const BY_HAND = 'by-hand-';

const eventOf = (type: OrderEvent['type'], saleId: string, orderId: string): OrderEvent => ({
  ...{ eventId: `${BY_HAND}${randomBytes(6).toString('hex')}`, type, saleId },
  ...{ orders: [orderId], atMs: Date.now() },
});

const couponsOf = async ({ stack }: Arena, saleId: string): Promise<string[]> =>
  (await stack.mysql.query<{ id: string }>('SELECT order_id AS id FROM coupons WHERE sale_id = ?', [saleId])).map(
    ({ id }) => id,
  );

interface Bought {
  readonly userId: string;
  readonly orderId: string;
}

/** Everybody buys, and waits for his order. */
async function buyAll(buyers: Buyers, users: readonly string[]): Promise<Bought[]> {
  await buyers.rush(users, users.length, { tries: 20 });
  const bought: Bought[] = [];
  for (const userId of users) {
    const { json } = await buyers.status(userId, 'k1', 20);
    expectEqual(json.status, 'ordered', `the purchase of ${userId}`);
    bought.push({ userId, orderId: String(json.orderId) });
  }
  return bought;
}

/** Whose orders will be paid and cancelled. */
interface Movers {
  readonly paid: Bought;
  readonly cancelled: Bought;
}

/** A payment, an expiry and a cancellation that have not happened are told, each twice. @returns the messages */
async function tellTooEarly(arena: Arena, keeper: Program, saleId: string, movers: Movers): Promise<number> {
  const { paid, cancelled } = movers;
  const events = [
    eventOf('order.paid', saleId, paid.orderId),
    eventOf('order.expired', saleId, paid.orderId),
    eventOf('order.cancelled', saleId, cancelled.orderId),
  ];
  const messages = arena.random.shuffled([...events, ...events]);
  const waits = (): number => waitsIn(keeper, 1, 'paid');
  const before = waits();
  await publishEvents(arena, messages);
  await arena.bite('two payments were told too early', () => waits() >= before + 2, AGAIN_WITHIN_MS);
  return messages.length;
}

/** Two orders move, and all that was ever told of the sale is told again, twice, in any order. @returns the messages */
async function moveAndTellAgain(
  arena: Arena,
  ear: EventEar,
  buyers: Buyers,
  { paid, cancelled }: Movers,
): Promise<number> {
  const { saleId } = buyers;
  expectEqual((await buyers.move('pay', paid.userId, paid.orderId))?.status, 200, 'the payment');
  expectEqual((await buyers.move('cancel', cancelled.userId, cancelled.orderId))?.status, 200, 'the cancellation');
  const isTold = (type: OrderEvent['type']): boolean =>
    ear.eventsOf(saleId).some((event) => event.type === type && !event.eventId.startsWith(BY_HAND));
  await arena.until('both are told', () => isTold('order.paid') && isTold('order.cancelled'), AGAIN_WITHIN_MS);
  const events = [...new Map(ear.eventsOf(saleId).map((event) => [event.eventId, event])).values()];
  const messages = arena.random.shuffled([...events, ...events]);
  await publishEvents(arena, messages);
  const copies = (eventId: string): number => ear.eventsOf(saleId).filter((one) => one.eventId === eventId).length;
  const isTold3Times = (): boolean => events.every(({ eventId }) => copies(eventId) >= 3);
  await arena.bite(`${events.length} events came three times, in any order`, isTold3Times, AGAIN_WITHIN_MS);
  return messages.length;
}

const ANY_ORDER: Row = {
  ...{ id: 'M6', variant: 'events' },
  title: 'events come before their time, doubled and in any order: the row decides, one coupon, no state turns back',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [ear, { saleId }, api, keeper] = await Promise.all([
      EventEar.open(stack.env),
      arena.openSale({ stock: STOCK }),
      arena.start('api', { env: PAYS }),
      arena.start('keeper', { env: KEEPER_ENV }),
      arena.start('worker'),
    ]);
    try {
      const buyers = arena.buyers(saleId, [api]);
      const users = random.shuffled(userIds(random.whole(4, 8)));
      const [paid, cancelled] = (await buyAll(buyers, users)) as [Bought, Bought];
      const watched = buyers.watch(users);
      const [coupons, news] = [await doneBy(keeper, GROUPS.coupon), await doneBy(keeper, GROUPS.notifier)];
      const early = await tellTooEarly(arena, keeper, saleId, { paid, cancelled });
      expectEqual(await couponsOf(arena, saleId), [], 'coupons before anybody has paid');
      expectEqual(await statesOf(stack, saleId), { pending_payment: users.length }, 'states before any move');

      const again = await moveAndTellAgain(arena, ear, buyers, { paid, cancelled });
      arena.faultEnded();
      await untilDone(arena, keeper, GROUPS.coupon, coupons + early + again);
      await untilDone(arena, keeper, GROUPS.notifier, news + early + again);
      const isGiven = async (): Promise<boolean> => (await couponsOf(arena, saleId)).length > 0;
      await arena.until('the coupon is there', isGiven, AGAIN_WITHIN_MS);
      await watched.stop();
      expectEqual(await couponsOf(arena, saleId), [paid.orderId], 'coupons');
      const states = { paid: 1, cancelled: 1, pending_payment: users.length - 2 };
      expectEqual(await statesOf(stack, saleId), states, 'states in the end');
      const figures = { rows: users.length, sold: users.length - 1, failedRows: 0 };
      expectFields(await arena.rest(saleId), figures, 'units back, once');
    } finally {
      await ear.close();
    }
  },
};

export const ORDER_NOTIFICATIONS_ROWS: readonly Row[] = [EARLY_DEADLINE, ANY_ORDER];
