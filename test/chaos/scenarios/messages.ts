import { randomBytes } from 'node:crypto';
import type { OrderEvent } from '../../../src/core/order-event.js';
import { brokerOf } from '../../helpers/broker.js';
import { signaturesOf } from '../../helpers/signatures.js';
import { silentLog } from '../../helpers/silent-log.js';
import { GROUPS, type Group } from '../../../src/core/topics.js';
import { createDeadlineChannel, createOrderEventChannel } from '../../../src/rocketmq/plain-channels.js';
import type { ProducerOptions } from '../../../src/rocketmq/signed-message.js';
import type { ScenarioContext } from '../context.js';
import { batchOf, deductBatch, holdBatch, publishBatches, type HeldBatch } from '../harness/batches.js';
import { userIds, type Buyers, isAccepted } from '../harness/buyers.js';
import { runCommand } from '../harness/commands.js';
import { expectAtLeast, expectEqual, expectFields, expectTrue } from '../harness/expect.js';
import { OrderEventListener } from '../harness/listeners.js';
import { NO_REDRIVE, readMetric, sumMetric, type Program } from '../harness/programs.js';
import { statesOf } from '../harness/sale-state.js';
import { found } from '../harness/wait.js';
import type { Scenario } from '../scenario.js';

// M5 to M8: messages that arrive early, several times or out of order, and messages that no worker can record.

interface DeadLetter {
  readonly batch_id: string;
  readonly origin_topic: string;
  readonly reason: string;
  readonly state: string;
  readonly attempts: number;
  readonly detail: string;
  readonly body: string;
}

const deadLettersOfBatch = ({ stack }: ScenarioContext, batchId: string): Promise<DeadLetter[]> =>
  stack.mysql.query<DeadLetter>(
    'SELECT batch_id, origin_topic, reason, state, attempts, detail, body FROM dead_letters WHERE batch_id = ?',
    [batchId],
  );

const UNREADABLE: Scenario = {
  name: 'M7',
  title: 'bad JSON, an unknown version and an unknown sale are parked with their origin; other batches go on',
  async run(context) {
    const { stack } = context;
    const [{ saleId }] = await Promise.all([context.openSale(), context.healthyPrograms()]);
    const good = await deductBatch(stack, saleId, userIds(3));
    const bad = {
      undecodable: { ...batchOf(saleId, ['eve']), body: '{"v":1,' },
      unknown_version: { ...batchOf(saleId, ['eve']), body: '{"v":99}' },
      unknown_sale: batchOf('999999999999999999', ['eve']),
    };
    await publishBatches(stack, context.random.shuffled([...Object.values(bad), good]));
    for (const [reason, { batchId, body }] of Object.entries(bad)) {
      const deadLetter = async (): Promise<DeadLetter | undefined> => (await deadLettersOfBatch(context, batchId))[0];
      await context.observed(`${reason} was parked`, async () => (await deadLetter()) !== undefined);
      const expected = { reason, body, state: 'parked', origin_topic: 'seckill-purchase-redrive' };
      expectFields((await deadLetter()) as DeadLetter, expected, `the dead letter ${reason}`);
    }
    context.faultEnded();
    await context.expectFigures(saleId, { rows: 3, sold: 3, unitsLeft: 7 }, 'the good batch');
  },
};

const COPIES = 5;

const COPIED: Scenario = {
  name: 'M5',
  title: 'one batch delivered five times at once, to two workers, is recorded once',
  fast: true,
  async run(context) {
    const { stack } = context;
    const [{ saleId }, { workers }] = await Promise.all([context.openSale({ stock: 50 }), context.healthyPrograms()]);
    const batch = await deductBatch(stack, saleId, userIds(40));
    const again = (): Promise<number> => sumMetric(workers, 'seckill_deliveries_total{verdict="already_recorded"}');
    const before = await again();
    await publishBatches(
      stack,
      Array.from({ length: COPIES }, () => batch),
    );
    context.faultEnded(); // the last copy is sent
    await context.observed('five copies arrived', async () => (await again()) >= before + COPIES - 1);
    await context.expectFigures(saleId, { rows: 40, sold: 40, unitsLeft: 10, duplicates: 0 }, 'recorded once');
    const sql = "SELECT id FROM outbox WHERE kind = 'batch_recorded' AND `key` = ?";
    expectEqual((await stack.mysql.query(sql, [batch.batchId])).length, 1, 'rows of the outbox');
  },
};

/** While `work` runs, MySQL refuses every order of the sale. */
async function whileRefused<T>({ stack }: ScenarioContext, saleId: string, work: () => Promise<T>): Promise<T> {
  const trigger = `refuse_sale_${saleId}`;
  await stack.mysql.execute(
    `CREATE TRIGGER ${trigger} AFTER INSERT ON orders FOR EACH ROW
       IF NEW.sale_id = ${saleId} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by a chaos scenario'; END IF`,
  );
  try {
    return await work();
  } finally {
    await stack.mysql.execute(`DROP TRIGGER ${trigger}`);
  }
}

const ALWAYS_REFUSED: Scenario = {
  name: 'M8',
  title: 'a batch that MySQL always refuses is parked once, its unit stays held until a replay, other sales go on',
  fast: true,
  async run(context) {
    const { stack } = context;
    const { api, workers } = await context.healthyPrograms();
    const [refused, healthy] = [await context.openSale(), await context.openSale({ stock: 1000 })];
    const [unlucky, lucky] = [context.buyers(refused.saleId, [api]), context.buyers(healthy.saleId, [api])];
    const inRedis = () => stack.audit.store.snapshot({ saleId: refused.saleId, bucket: 0 });
    const deadLetter = await whileRefused(context, refused.saleId, async () => {
      const retries = (): Promise<number> => sumMetric(workers, 'seckill_deliveries_total{verdict="retry"}');
      const retriesBefore = await retries();
      const load = lucky.startLoad({ parallel: 2, pauseMs: 100 });
      expectTrue(isAccepted(await unlucky.buy('ann', { tries: 4 })), 'the purchase that will be refused');
      const [batchId = ''] = (await inRedis())?.pending ?? [];
      const parked = async () => (await deadLettersOfBatch(context, batchId))[0];
      const one = await found('the dead letter', parked);
      await load.stop();
      expectAtLeast((await retries()) - retriesBefore, 5, 'every try was made, and the last one parked it');
      return one;
    });
    const expected = { reason: 'retries_exhausted', state: 'parked', origin_topic: 'seckill-purchase' };
    expectFields(deadLetter, expected, 'the dead letter');
    expectEqual(deadLetter.detail, 'poison: ER_SIGNAL_EXCEPTION: refused by a chaos scenario', 'its error');
    const isParked = async (): Promise<boolean> => (await inRedis())?.pending.length === 0;
    await context.observed('the batch is parked and out of pending', isParked);
    expectEqual((await inRedis())?.unitsLeft, 9, 'units left while it is parked');
    expectEqual((await unlucky.status('ann')).json.status, 'pending', 'its status');
    expectAtLeast((await context.expectInvariants(healthy.saleId)).rows, 11, 'orders of other sales');

    context.faultEnded();
    const args = ['dlq', 'replay', '--all-matching', '--sale', refused.saleId, '--json'];
    const replay = await runCommand(args, context.env);
    expectEqual(replay.lines.length, 1, `lines of the replay (${replay.stderr})`);
    const [line = {}] = replay.lines as { readonly outcome?: unknown }[];
    const byUs = { outcome: 'replayed', note: 'recorded: 1 live, 0 ended' };
    const byKeeper = { outcome: 'already_closed', note: 'it is replayed' }; // it saw the order first
    expectFields(line, line.outcome === byUs.outcome ? byUs : byKeeper, 'the replay');
    expectEqual((await unlucky.status('ann')).json.status, 'ordered', 'its status then');
    await context.expectFigures(refused.saleId, { rows: 1, sold: 1, unitsLeft: 9 }, 'one order');
    expectEqual((await deadLettersOfBatch(context, deadLetter.batch_id)).length, 1, 'parked once');
  },
};

const STOCK = 20;
const PAYS = { PAYMENT_PROVIDER: 'simulator' };
/** Only messages end orders here; the keeper's log says how often a message had to wait. */
const KEEPER_ENV = {
  ...PAYS,
  ...NO_REDRIVE,
  EXPIRE_SWEEP_EVERY_MS: '600000',
  KEEPER_EVERY_MS: '200',
  OUTBOX_EVERY_MS: '100',
  LOG_LEVEL: 'debug',
};
/** Much longer than the scenario takes. */
const PAYMENT_WINDOW_MS = 900_000;

/** Returns how often a message had to wait for these orders. */
const waitsIn = ({ log }: Program, count: number, why: string): number =>
  log.split(`${count} of ${count} orders are not ${why}, or not there`).length - 1;

const doneBy = (keeper: Program, group: Group): Promise<number> =>
  readMetric(keeper, `seckill_consumed_messages_total{group="${group}",verdict="done"}`);

async function untilDone(context: ScenarioContext, keeper: Program, group: Group, messages: number): Promise<void> {
  const isDone = async (): Promise<boolean> => (await doneBy(keeper, group)) >= messages;
  await context.until(`${group} is done with ${messages} messages`, isDone);
}

const producerOf = ({ env }: ScenarioContext['stack']): ProducerOptions => ({
  ...brokerOf(env),
  signatures: signaturesOf(env),
  log: silentLog,
});

/** Publishes the payment deadline of a batch by hand, `times` times, as already due. */
async function publishDeadline(
  { stack }: ScenarioContext,
  saleId: string,
  { batchId, orderIds }: HeldBatch,
  times: number,
): Promise<void> {
  const channel = await createDeadlineChannel(producerOf(stack));
  try {
    const deadline = { batchId, saleId, orders: orderIds, deadlineAtMs: Date.now() - 2_000 };
    for (let time = 0; time < times; time++) await channel.publish(deadline);
  } finally {
    await channel.close();
  }
}

const EARLY_DEADLINE: Scenario = {
  name: 'M6/deadline_first',
  title: 'a payment deadline arrives twice before its orders, before its time, and after it: it waits, then acts once',
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const [{ saleId }, api, keeper] = await Promise.all([
      context.openSale({ stock: STOCK }),
      context.start('api', { env: PAYS }),
      context.start('keeper', { env: KEEPER_ENV }),
    ]);
    const count = random.whole(5, 12);
    const batch = await holdBatch(stack, saleId, count);
    const waits = (): number => waitsIn(keeper, count, 'due');
    await publishDeadline(context, saleId, batch, 2);
    await context.observed('both copies came before their orders', () => waits() >= 2);

    await batch.record(PAYMENT_WINDOW_MS);
    const before = waits();
    await context.observed('they came again before their time', () => waits() >= before + 2);
    expectEqual(await statesOf(stack, saleId), { pending_payment: count }, 'states before their time');

    const buyers = context.buyers(saleId, [api]);
    const paying = random.whole(0, count - 1);
    const [userId = '', orderId = ''] = [batch.userIds[paying], batch.orderIds[paying]];
    expectEqual((await buyers.move('pay', userId, orderId))?.status, 200, 'a payment in time');
    await stack.mysql.execute('UPDATE orders SET expires_at = UTC_TIMESTAMP(3) WHERE sale_id = ?', [saleId]);
    const areOver = async (): Promise<boolean> => (await statesOf(stack, saleId)).pending_payment === undefined;
    await context.until('the message that waited ends the others', areOver);
    await publishDeadline(context, saleId, batch, 3);
    await untilDone(context, keeper, GROUPS.expirer, 5);
    context.faultEnded();
    expectEqual(await statesOf(stack, saleId), { paid: 1, expired: count - 1 }, 'states in the end');
    await context.expectFigures(saleId, { sold: 1, unitsLeft: STOCK - 1, rows: count }, 'units back, once');
  },
};

/** Publishes each event as a message of its own. */
async function publishEvents({ stack }: ScenarioContext, events: readonly OrderEvent[]): Promise<void> {
  const channel = await createOrderEventChannel(producerOf(stack));
  try {
    for (const event of events) await channel.publish([event]);
  } finally {
    await channel.close();
  }
}

/** Start of the id of every event that no keeper has published. */
const BY_HAND = 'by-hand-';

const eventOf = (type: OrderEvent['type'], saleId: string, orderId: string): OrderEvent => ({
  eventId: `${BY_HAND}${randomBytes(6).toString('hex')}`,
  type,
  saleId,
  orders: [orderId],
  atMs: Date.now(),
});

async function couponsOf({ stack }: ScenarioContext, saleId: string): Promise<string[]> {
  const sql = 'SELECT order_id AS id FROM coupons WHERE sale_id = ?';
  return (await stack.mysql.query<{ id: string }>(sql, [saleId])).map(({ id }) => id);
}

interface Bought {
  readonly userId: string;
  readonly orderId: string;
}

/** Makes each buyer buy and wait for the order. */
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

const ANY_ORDER: Scenario = {
  name: 'M6/events',
  title: 'order events arrive early, twice and out of order: the row decides, one coupon, no state goes back',
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const [listener, { saleId }, api, keeper] = await Promise.all([
      OrderEventListener.open(stack.env),
      context.openSale({ stock: STOCK }),
      context.start('api', { env: PAYS }),
      context.start('keeper', { env: KEEPER_ENV }),
      context.start('worker'),
    ]);
    try {
      const buyers = context.buyers(saleId, [api]);
      const users = random.shuffled(userIds(random.whole(4, 8)));
      const [paid, cancelled] = (await buyAll(buyers, users)) as [Bought, Bought];
      const polling = buyers.pollStatus(users);
      const doneBefore = {
        coupon: await doneBy(keeper, GROUPS.coupon),
        notifier: await doneBy(keeper, GROUPS.notifier),
      };

      // a payment, an expiry and a cancellation that have not happened, each twice
      const untrue = [
        eventOf('order.paid', saleId, paid.orderId),
        eventOf('order.expired', saleId, paid.orderId),
        eventOf('order.cancelled', saleId, cancelled.orderId),
      ];
      const waits = (): number => waitsIn(keeper, 1, 'paid');
      const waitsBefore = waits();
      await publishEvents(context, random.shuffled([...untrue, ...untrue]));
      const haveWaited = (): boolean => waits() >= waitsBefore + 2;
      await context.observed('two events of a payment came too early', haveWaited);
      expectEqual(await couponsOf(context, saleId), [], 'coupons before any payment');
      expectEqual(await statesOf(stack, saleId), { pending_payment: users.length }, 'states before any move');

      // two orders move, then every event so far is published again, twice, in any order
      expectEqual((await buyers.move('pay', paid.userId, paid.orderId))?.status, 200, 'the payment');
      const cancellation = await buyers.move('cancel', cancelled.userId, cancelled.orderId);
      expectEqual(cancellation?.status, 200, 'the cancellation');
      const isPublished = (type: OrderEvent['type']): boolean =>
        listener.eventsOf(saleId).some((event) => event.type === type && !event.eventId.startsWith(BY_HAND));
      const arePublished = (): boolean => isPublished('order.paid') && isPublished('order.cancelled');
      await context.until('both are published', arePublished);
      const events = [...new Map(listener.eventsOf(saleId).map((event) => [event.eventId, event])).values()];
      await publishEvents(context, random.shuffled([...events, ...events]));
      const copies = (id: string): number => listener.eventsOf(saleId).filter(({ eventId }) => eventId === id).length;
      const cameThrice = (): boolean => events.every(({ eventId }) => copies(eventId) >= 3);
      const what = `${events.length} events came three times, in any order`;
      await context.observed(what, cameThrice);
      context.faultEnded();

      const published = 2 * untrue.length + 2 * events.length;
      await untilDone(context, keeper, GROUPS.coupon, doneBefore.coupon + published);
      await untilDone(context, keeper, GROUPS.notifier, doneBefore.notifier + published);
      const isGiven = async (): Promise<boolean> => (await couponsOf(context, saleId)).length > 0;
      await context.until('the coupon is there', isGiven);
      await polling.stop();
      expectEqual(await couponsOf(context, saleId), [paid.orderId], 'coupons');
      const states = { paid: 1, cancelled: 1, pending_payment: users.length - 2 };
      expectEqual(await statesOf(stack, saleId), states, 'states in the end');
      const figures = { rows: users.length, sold: users.length - 1, failedRows: 0 };
      await context.expectFigures(saleId, figures, 'units back, once');
    } finally {
      await listener.close();
    }
  },
};

export const MESSAGES_SCENARIOS: readonly Scenario[] = [COPIED, EARLY_DEADLINE, ANY_ORDER, UNREADABLE, ALWAYS_REFUSED];
