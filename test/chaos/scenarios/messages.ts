import { randomBytes } from 'node:crypto';
import { type Batch, newBatchId, sealBatch } from '../../../src/core/batch.js';
import type { OrderEvent } from '../../../src/core/order-event.js';
import { silentLog } from '../../../src/core/ports/log.js';
import { type Group, GROUPS } from '../../../src/core/topics.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import { createDeadlineChannel, createOrderEventChannel } from '../../../src/rocketmq/order-channels.js';
import { createRedriveChannel } from '../../../src/rocketmq/redrive-channel.js';
import type { Arena } from '../context.js';
import { type HeldBatch, holdBatch, statesOf } from '../harness/batches.js';
import { type Buyers, userIds } from '../harness/buyers.js';
import { runCommand } from '../harness/commands.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import { ask } from '../harness/http.js';
import { EventEar } from '../harness/listeners.js';
import { type Program, readMetric } from '../harness/programs.js';
import { found } from '../harness/wait.js';
import type { Row } from '../scenario.js';

// M: messages that no worker can turn into orders, or that come several times.

/** Six tries, which the broker spaces by 2 to 5 s whatever is asked, then its dead-letter topic. */
const DEAD_LETTER_MS = 90_000;

interface DeadLetter {
  readonly batch_id: string;
  readonly origin_topic: string;
  readonly reason: string;
  readonly state: string;
  readonly attempts: number;
  readonly body: string;
}

function batchOf(saleId: string, users: readonly string[]): Batch {
  return sealBatch({
    ...{ batchId: newBatchId(), saleId, bucket: 0, epoch: 1 },
    ...{ createdAtMs: Date.now(), trace: '' },
    purchases: users.map((userId) => ({ userId, requestId: 'k1', quantity: 1 })),
  });
}

/** Deducts a batch as an api does. */
async function deducted(arena: Arena, saleId: string, users: readonly string[]): Promise<Batch> {
  const batch = batchOf(saleId, users);
  const verdict = await createStockStore(arena.stack.redis, silentLog).deduct(batch);
  expectEqual(verdict.outcome, 'deducted', 'deduct');
  return batch;
}

async function publish(arena: Arena, batches: readonly Batch[]): Promise<void> {
  const channel = await createRedriveChannel({ endpoint: arena.stack.env.ROCKETMQ_ENDPOINT, log: silentLog });
  try {
    await Promise.all(batches.map((batch) => channel.publish(batch)));
  } finally {
    await channel.close();
  }
}

const deadLettersOf = ({ stack }: Arena, batchId: string): Promise<DeadLetter[]> =>
  stack.mysql.query<DeadLetter>(
    'SELECT batch_id, origin_topic, reason, state, attempts, body FROM dead_letters WHERE batch_id = ?',
    [batchId],
  );

/** A counter with this verdict, over all workers. */
async function counted(workers: readonly Program[], name: string, verdict: string): Promise<number> {
  const counts = workers.map(async ({ probeUrl }) => {
    const { text } = await ask(`${probeUrl}/metrics`);
    return Number(new RegExp(`${name}\\{verdict="${verdict}"[^}]*\\} (\\d+)`).exec(text)?.[1] ?? 0);
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

const POISON: Row = {
  id: 'M7',
  title: 'bad JSON, an unknown version and an unknown sale are parked with their origin; others go on',
  ...{ fast: true, alone: false },
  async run(arena) {
    const [{ saleId }] = await Promise.all([arena.openSale(), arena.survivors()]);
    const good = await deducted(arena, saleId, userIds(3));
    const poison = {
      undecodable: { ...batchOf(saleId, ['eve']), body: '{"v":1,' },
      unknown_version: { ...batchOf(saleId, ['eve']), body: '{"v":99}' },
      unknown_sale: batchOf('999999999999999999', ['eve']),
    };
    await publish(arena, arena.random.shuffled([...Object.values(poison), good]));
    for (const [reason, { batchId, body }] of Object.entries(poison)) {
      const deadLetter = (): Promise<DeadLetter | undefined> => deadLettersOf(arena, batchId).then(([first]) => first);
      await arena.bite(`${reason} was parked`, async () => (await deadLetter()) !== undefined);
      const expected = { reason, body, state: 'parked', origin_topic: 'seckill-purchase-redrive' };
      expectFields((await deadLetter()) as DeadLetter, expected, `the letter ${reason}`);
    }
    arena.faultEnded();
    expectFields(await arena.rest(saleId), { rows: 3, sold: 3, unitsLeft: 7 }, 'the good batch');
  },
};

const COPIES = 5;
const TWICE: Row = {
  id: 'M5',
  title: 'one batch delivered five times at once, to two workers, is recorded once',
  ...{ fast: true, alone: false },
  async run(arena) {
    const [{ saleId }, { workers }] = await Promise.all([arena.openSale({ stock: 50 }), arena.survivors()]);
    const batch = await deducted(arena, saleId, userIds(40));
    const again = (): Promise<number> => counted(workers, 'seckill_deliveries_total', 'already_recorded');
    const before = await again();
    await publish(
      arena,
      Array.from({ length: COPIES }, () => batch),
    );
    arena.faultEnded(); // the last copy is sent
    await arena.bite('five copies arrived', async () => (await again()) >= before + COPIES - 1);
    const once = { rows: 40, sold: 40, unitsLeft: 10, duplicates: 0 };
    expectFields(await arena.rest(saleId), once, 'recorded once');
    const outbox = await arena.stack.mysql.query("SELECT id FROM outbox WHERE kind = 'batch_recorded' AND `key` = ?", [
      batch.batchId,
    ]);
    expectEqual(outbox.length, 1, 'rows of the outbox');
  },
};

const REFUSED: Row = {
  id: 'M8',
  title: 'a batch that MySQL always refuses is parked once, its unit stays held until a replay, other sales go on',
  ...{ fast: true, alone: false },
  async run(arena) {
    const { stack } = arena;
    const { api, workers } = await arena.survivors();
    const [refused, healthy] = [await arena.openSale(), await arena.openSale({ stock: 1000 })];
    const [unlucky, lucky] = [arena.buyers(refused.saleId, [api]), arena.buyers(healthy.saleId, [api])];
    const deadLetter = await parkedByTrigger(arena, refused.saleId, async () => {
      const retriesBefore = await counted(workers, 'seckill_deliveries_total', 'retry');
      const load = lucky.startLoad({ parallel: 2, pauseMs: 100 });
      expectEqual((await unlucky.buy('ann'))?.status, 202, 'the purchase that will be refused');
      const [batchId = ''] = (await stack.audit.store.snapshot({ saleId: refused.saleId, bucket: 0 }))?.pending ?? [];
      const one = await found('the dead letter', async () => (await deadLettersOf(arena, batchId))[0], DEAD_LETTER_MS);
      await load.stop();
      const tries = (await counted(workers, 'seckill_deliveries_total', 'retry')) - retriesBefore;
      expectAtLeast(tries, 6, 'every try was made');
      return one;
    });
    const expected = { reason: 'retries_exhausted', state: 'parked', origin_topic: 'seckill-purchase' };
    expectFields(deadLetter, expected, 'the letter');
    const store = () => stack.audit.store.snapshot({ saleId: refused.saleId, bucket: 0 });
    await arena.bite('the batch is parked and out of pending', async () => (await store())?.pending.length === 0);
    expectEqual((await store())?.unitsLeft, 9, 'units left while it is parked');
    expectEqual((await unlucky.status('ann')).json.status, 'pending', 'what its buyer sees');
    expectAtLeast((await arena.rest(healthy.saleId)).rows, 11, 'orders of other sales');

    arena.faultEnded();
    const replay = await runCommand(['dlq', 'replay', '--all-matching', '--sale', refused.saleId, '--json'], arena.env);
    expectEqual(replay.lines.length, 1, `lines of the replay (${replay.stderr})`);
    const done: object = { outcome: 'replayed', note: 'recorded: 1 live, 0 ended' };
    expectFields(replay.lines[0] as object, done, 'the replay');
    expectEqual((await unlucky.status('ann')).json.status, 'ordered', 'what its buyer sees then');
    expectFields(await arena.rest(refused.saleId), { rows: 1, sold: 1, unitsLeft: 9 }, 'one order');
    expectEqual((await deadLettersOf(arena, deadLetter.batch_id)).length, 1, 'parked once');
  },
};

/** While `work` runs, MySQL refuses every order of the sale. */
async function parkedByTrigger(arena: Arena, saleId: string, work: () => Promise<DeadLetter>): Promise<DeadLetter> {
  const { mysql } = arena.stack;
  const trigger = `refuse_sale_${saleId}`;
  await mysql.execute(
    `CREATE TRIGGER ${trigger} AFTER INSERT ON orders FOR EACH ROW
       IF NEW.sale_id = ${saleId} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by a chaos row'; END IF`,
  );
  try {
    return await work();
  } finally {
    await mysql.execute(`DROP TRIGGER ${trigger}`);
  }
}

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

export const MESSAGES_SCENARIOS: readonly Row[] = [TWICE, POISON, REFUSED, EARLY_DEADLINE, ANY_ORDER];
