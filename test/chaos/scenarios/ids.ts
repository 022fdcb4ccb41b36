import { composeOrderId, explainOrderId } from '../../../src/core/order-id.js';
import { hash32 } from '../../../src/core/sale.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import type { Arena } from '../context.js';
import { type Buyers, userIds, wordOf } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import { ask } from '../harness/http.js';
import { clockStep, type Program, SAME_IDENTITY } from '../harness/programs.js';
import { draftSale } from '../harness/sales.js';
import { markersOf, type StackHands } from '../harness/stack-controls.js';
import type { TcpProxy } from '../harness/tcp-proxy.js';
import { atScriptCall, messageIdsOn, MysqlWire, withoutMac } from '../harness/traffic.js';
import type { Row } from '../scenario.js';

// M13: two api processes that the client of the broker cannot tell apart, as in containers.

const STOCK = 100;

/** Two programs that believe to have one pid and one network card. */
async function expectSameIdentity(arena: Arena, programs: readonly Program[]): Promise<void> {
  const told = programs.map(({ log }) => /^identity: .*$/m.exec(log)?.[0] ?? 'none');
  const isSame = told.every((one) => one === told[0] && /pid \d+, mac [\da-f:]{17}/.test(one));
  await arena.bite(`both have the ${told[0]}`, () => isSame, 1_000);
}

interface Round {
  /** Buyers of the api that refuses, and the proxy between it and Redis. */
  readonly late: Buyers;
  readonly proxy: TcpProxy;
  readonly early: Buyers;
  readonly userId: string;
}

/**
 * One buyer presses at both: the second purchase takes the only unit that he may have while the half message of the
 * first is open, so one api commits in the moment in which the other rolls back.
 */
async function commitWhileOtherRollsBack({ late, proxy, early, userId }: Round): Promise<void> {
  let won = 'nothing';
  atScriptCall(proxy, 'deduct', async () => {
    won = wordOf(await early.buy(userId, { requestId: 'early' }));
  });
  const lost = wordOf(await late.buy(userId, { requestId: 'late' }));
  expectEqual([won, lost], ['yes', 'limit_reached'], `what ${userId} heard`);
}

/** Marker by marker: the purchases that its body says were deducted; no worker has cut it down yet. */
async function deductedBodies({ stack }: Arena, saleId: string): Promise<string[]> {
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

const TWINS: Row = {
  id: 'M13',
  title: 'two api processes with equal pid and MAC, one commits while the other rolls back: each ends its own message',
  ...{ fast: false, alone: true },
  async run(arena) {
    const [{ saleId }, wireOfLate, wireOfEarly, redis] = await Promise.all([
      arena.openSale({ stock: STOCK }),
      arena.proxy('broker'),
      arena.proxy('broker'),
      arena.proxy('redis'),
    ]);
    const [idsOfLate, idsOfEarly] = [messageIdsOn(wireOfLate.proxy), messageIdsOn(wireOfEarly.proxy)];
    const preload = [SAME_IDENTITY];
    const [lateApi, earlyApi] = await Promise.all([
      arena.start('api', { preload, env: { ...wireOfLate.env, ...redis.env, REDIS_REPLY_TIMEOUT_MS: '10000' } }),
      arena.start('api', { preload, env: wireOfEarly.env }),
    ]);
    await expectSameIdentity(arena, [lateApi, earlyApi]);
    const [late, early] = [arena.buyers(saleId, [lateApi]), arena.buyers(saleId, [earlyApi])];
    const users = userIds(arena.random.whole(15, 40));
    for (const userId of users) await commitWhileOtherRollsBack({ late, proxy: redis.proxy, early, userId });

    const known = new Set([...idsOfLate].map(withoutMac));
    const twins = [...idsOfEarly].filter((messageId) => known.has(withoutMac(messageId)));
    await arena.bite(`${twins.length} pairs of message ids differ by chance only`, () => twins.length > 0, 1_000);
    arena.faultEnded();
    expectEqual(
      [...idsOfEarly].filter((messageId) => idsOfLate.has(messageId)),
      [],
      'message ids of both',
    );
    const accepted = users.map((userId) => `${userId}/early`).sort();
    expectEqual(await deductedBodies(arena, saleId), accepted, 'purchases in the bodies of deducted markers');

    await Promise.all([arena.start('worker'), arena.start('keeper', { env: { REDRIVE_AFTER_MS: '3600000' } })]);
    const figures = { rows: users.length, sold: users.length, failedRows: 0 };
    expectFields(await arena.rest(saleId), figures, 'an order for each that was accepted');
  },
};

// D7 and D8: ids of orders, when their clock, their lease or the ids themselves are not what they should be.

const INSERT_ORDERS = 'INSERT INTO orders';
const DUPLICATE = 1062;
/** In the metrics of a worker that could not mint. */
const NO_ORDER_IDS = /seckill_record_retries_total\{[^}]*reason="no_order_ids"[^}]*\} [1-9]/;

async function idsOf({ mysql }: StackHands, saleId: string): Promise<string[]> {
  const rows = await mysql.query<{ id: string }>('SELECT id FROM orders WHERE sale_id = ? ORDER BY id', [saleId]);
  return rows.map(({ id }) => id);
}

/** For so long every second millisecond is taken. */
const TAKEN_MS = 20_000;
const ROWS_PER_INSERT = 2_000;

/** Rows of another sale that have the ids which a worker is about to give to buyers of one hash. */
async function takeIds(stack: StackHands, slot: number, buyer: string): Promise<void> {
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

const EQUAL_IDS: Row = {
  ...{ id: 'D7', variant: 'equal_id' },
  title: 'an order id is taken, as by a second worker with one slot: another one is given, each purchase has its row',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack } = arena;
    const { proxy, env } = await arena.proxy('mysql');
    const wire = new MysqlWire(proxy);
    const [api] = await Promise.all([arena.start('api'), arena.start('keeper'), arena.start('worker', { env })]);
    const { saleId } = await arena.openSale({ stock: 100 });
    const buyers = arena.buyers(saleId, [api]);
    const hash = arena.random.whole(0, 63);
    const users = userIds(4_000)
      .filter((userId) => (hash32(userId) & 63) === hash)
      .slice(0, 30);
    const [first = '', ...others] = users;
    await buyers.buy(first, { tries: 20 });
    await arena.rest(saleId);
    const [orderId = ''] = await idsOf(stack, saleId);
    await takeIds(stack, explainOrderId(orderId).slot, first);
    for (const userId of others) await buyers.buy(userId, { tries: 5 }); // one by one: the first id of a millisecond
    await arena.bite('an id was taken (1062)', () => wire.count(DUPLICATE, 'PRIMARY') > 0);
    arena.faultEnded();
    const count = users.length;
    expectFields(await arena.rest(saleId), { rows: count, liveRows: count, failedRows: 0 }, 'one order each');
  },
};

/** More than the minter may run ahead of its clock, and over within seconds. */
const STEP_MS = -6_000;

const CLOCK: Row = {
  ...{ id: 'D8', variant: 'clock' },
  title:
    'the clock of the worker steps back: no order id until it has caught up, none is of an earlier time than those before',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack } = arena;
    const [api, worker] = await Promise.all([
      arena.start('api'),
      arena.start('worker', { preload: [clockStep(STEP_MS)] }),
      arena.start('keeper'),
    ]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    const load = buyers.startLoad({ parallel: 4, pauseMs: 50, tries: 3 });
    const before = arena.random.whole(30, 100);
    await arena.until('the load is recorded', async () => (await idsOf(stack, saleId)).length > before, 30_000);

    worker.signal('SIGUSR2');
    const steppedMs = performance.now();
    await arena.bite('no id is minted', async () => {
      const { text } = await ask(`${worker.probeUrl}/metrics`);
      return NO_ORDER_IDS.test(text);
    });
    const known = await idsOf(stack, saleId);
    const okBefore = buyers.opLog.count('ok');
    await arena.until('purchases are accepted meanwhile', () => buyers.opLog.count('ok') > okBefore + 10);
    expectEqual((await idsOf(stack, saleId)).length, known.length, 'orders while the clock is behind');
    await arena.until(
      'orders are written again',
      async () => (await idsOf(stack, saleId)).length > known.length,
      30_000,
    );
    arena.faultEnded();
    await arena.bite('that was after the step was caught up', () => performance.now() - steppedMs > -STEP_MS - 500);
    await load.stop();
    await buyers.askAgain();
    const figures = await arena.rest(saleId);
    expectFields(figures, { rows: buyers.opLog.count('ok'), failedRows: 0 }, 'rows of those who heard yes');
    const later = (await idsOf(stack, saleId)).filter((id) => !known.includes(id));
    const timeOf = (id: string | undefined): number => explainOrderId(id ?? '0').atMs;
    expectAtLeast(timeOf(later[0]), timeOf(known.at(-1)), 'time in the smallest of the new ids');
  },
};

const LEASE_MS = 5_000;
/** Of the slots that this row takes away, so that there is only one. */
const PLANTED = 'planted-';

/** Who waits for a slot gets none but `slot`. */
async function takeOtherSlots({ mysql }: StackHands, slot: number): Promise<void> {
  await mysql.execute("UPDATE worker_slots SET owner = CONCAT(?, slot), leased_until = '2099-01-01' WHERE slot <> ?", [
    PLANTED,
    slot,
  ]);
}

async function freeOtherSlots({ mysql }: StackHands): Promise<void> {
  const sql = "UPDATE worker_slots SET owner = NULL, leased_until = '2000-01-01' WHERE owner LIKE ?";
  await mysql.execute(sql, [`${PLANTED}%`]);
}

const LEASE: Row = {
  ...{ id: 'D8', variant: 'lease' },
  title: 'a worker is stopped until another has its slot for ids: awake again it mints none before it has one',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack } = arena;
    const lease = { ORDER_SLOT_LEASE_MS: String(LEASE_MS), WORKER_RETRY_FIRST_MS: '10' };
    const { proxy, env } = await arena.proxy('mysql');
    const wire = new MysqlWire(proxy, [INSERT_ORDERS]);
    const [api, stopped] = await Promise.all([
      arena.start('api'),
      arena.start('worker', { env: { ...lease, ...env } }),
      arena.start('keeper'),
    ]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(userIds(arena.random.whole(3, 10), 'early'), 4, { tries: 20 });
    await arena.rest(saleId);
    const { slot } = explainOrderId((await idsOf(stack, saleId))[0] as string);
    try {
      await takeOtherSlots(stack, slot);
      stopped.signal('SIGSTOP');
      const other = await startWhenFree();
      stopped.signal('SIGCONT');
      const insertsBefore = wire.sent(INSERT_ORDERS);
      const load = buyers.startLoad({ parallel: 8, pauseMs: 30, tries: 3 });
      await arena.bite('the slot is another’s, and the old owner knows', () => stopped.log.includes('slots are taken'));
      const delivered = async (): Promise<boolean> => {
        const { text } = await ask(`${stopped.probeUrl}/metrics`);
        return NO_ORDER_IDS.test(text);
      };
      await arena.bite('it received batches that it may give no ids to', delivered);
      expectEqual(wire.sent(INSERT_ORDERS), insertsBefore, 'INSERTs of a worker without a slot');
      expectEqual(other.running, true, 'the other worker runs');
      await freeOtherSlots(stack);
      arena.faultEnded();
      await arena.until('it writes again', () => wire.sent(INSERT_ORDERS) > insertsBefore, 30_000);
      await load.stop();
    } finally {
      await freeOtherSlots(stack);
    }
    await buyers.askAgain();
    const figures = await arena.rest(saleId);
    expectFields(figures, { rows: buyers.opLog.count('ok'), failedRows: 0 }, 'rows of those who heard yes');

    /** The slot rests for some seconds after its lease has ended. */
    async function startWhenFree(): ReturnType<typeof arena.start> {
      const free = async (): Promise<boolean> => {
        const sql = 'SELECT slot FROM worker_slots WHERE leased_until < UTC_TIMESTAMP(3) - INTERVAL 5 SECOND';
        return (await stack.mysql.query(sql)).length > 0;
      };
      await arena.until('the lease of the stopped worker has ended', free, 30_000);
      return arena.start('worker', { env: lease });
    }
  },
};

export const IDS_SCENARIOS: readonly Row[] = [TWINS, EQUAL_IDS, CLOCK, LEASE];
