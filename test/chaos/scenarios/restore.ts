import type { Sale } from '../../../src/core/sale.js';
import { signWebhook } from '../../helpers/sign-webhook.js';
import type { ScenarioContext } from '../context.js';
import { copyMysql, emptyBroker, emptyRedis, removeCopy, restoreMysql } from '../harness/backup.js';
import { batchesAtBroker, createTopics } from '../harness/broker.js';
import { Buyers, outcomeOf, userIds } from '../harness/buyers.js';
import { runCommand } from '../harness/commands.js';
import { expectAtLeast, expectEqual, expectTrue } from '../harness/expect.js';
import { ask, type Answer } from '../harness/http.js';
import type { Program } from '../harness/programs.js';
import { untilRebuilt } from '../harness/redis.js';
import { batchesWithRows, isRecorded, pendingCountOf, rowsOf } from '../harness/sale-state.js';
import { ACTOR, draftSale, openSale, RECONCILE_ENV, reconcileSale } from '../harness/sales.js';
import type { StackControls } from '../harness/stack-controls.js';
import type { Scenario } from '../scenario.js';

// D9: the procedure of docs/durability.md. Compares the loss with that page, purchase by purchase.

const PAYS = { PAYMENT_PROVIDER: 'simulator' };
const API = { ...PAYS, ...RECONCILE_ENV };
const KEEPER = { ...PAYS, KEEPER_EVERY_MS: '500', REPAIR_QUIET_MS: '300', REPAIR_WAIT_MAX_MS: '3000' };
/** A sale that is being rebuilt answers 503. */
const TRIES = { tries: 150 };
/** Long poll for an order. */
const WAIT_S = 20;
const PRICE = { priceCents: 1999, currency: 'EUR' };

const keysOf = (saleId: string, users: readonly string[]): string[] => users.map((user) => `${saleId}/${user}`);

/** Buyers whose answers the scenario compares itself, because no invariant covers them after a restore. */
const outside = ({ stack }: ScenarioContext, saleId: string, apis: () => readonly Program[]): Buyers =>
  new Buyers(saleId, stack.env.JWT_SECRET, () => apis().map(({ url }) => url));

/** Buys once for each buyer, and asserts a 202. */
async function accepted(buyers: Buyers, users: readonly string[]): Promise<void> {
  const answers = await buyers.rush(users, 4, TRIES);
  expectEqual(new Set(answers.map(outcomeOf)), new Set(['accepted']), `answers of ${users[0]} and others`);
}

/** Waits for the order of a buyer. */
async function orderOf(buyers: Buyers, userId: string): Promise<string> {
  const { json } = await buyers.status(userId, 'k1', WAIT_S);
  expectEqual(json.status, 'ordered', `the purchase of ${userId}`);
  return String(json.orderId);
}

/** Buys, and waits until the worker has written the order. @returns the order of each buyer */
async function ordered(buyers: Buyers, users: readonly string[]): Promise<ReadonlyMap<string, string>> {
  await accepted(buyers, users);
  const orders = new Map<string, string>();
  for (const userId of users) orders.set(userId, await orderOf(buyers, userId));
  return orders;
}

/** `sale/buyer` → order id and state, for every order in MySQL. */
async function ordersIn({ mysql }: StackControls, sales: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const sql = 'SELECT id, sale_id AS sale, user_id AS user, state FROM orders WHERE sale_id IN (?)';
  const rows = await mysql.query<{ id: string; sale: string; user: string; state: string }>(sql, [sales]);
  return new Map(rows.map(({ id, sale, user, state }) => [`${sale}/${user}`, `${id} ${state}`]));
}

/** Returns the highest id of the outbox, which names events. 0 if the outbox is empty. */
async function lastEventId({ mysql }: StackControls): Promise<bigint> {
  const [row] = await mysql.query<{ last: string | null }>('SELECT MAX(id) AS last FROM outbox');
  return BigInt(row?.last ?? 0);
}

async function killPrograms({ programs }: ScenarioContext): Promise<void> {
  await Promise.all(programs.running.map((program) => program.crash()));
}

/** Asserts that a command of the procedure succeeds. */
async function command({ env }: ScenarioContext, ...args: readonly string[]): Promise<void> {
  const { code, stderr } = await runCommand(args, env);
  expectEqual([code, stderr], [0, ''], `seckill ${args.join(' ')}`);
}

/** Lets a payment provider repeat its reports. */
function report({ stack }: ScenarioContext, api: Program, orderId: string): Promise<Answer> {
  const event = { type: 'payment.succeeded', paymentId: `p-${orderId}`, orderId, live: true };
  const { priceCents: amountCents, currency } = PRICE;
  const body = { ...event, amountCents, currency };
  const signature = signWebhook(stack.env.PAYMENT_WEBHOOK_SECRET, JSON.stringify(body), Date.now());
  const headers = { 'Payment-Signature': signature };
  return ask(`${api.url}/v1/payments/webhook`, { method: 'POST', body, headers });
}

const EVERYTHING: Scenario = {
  name: 'D9/everything',
  title:
    'MySQL is restored, with Redis and the broker empty: only later data is lost, and each sale sells out to the unit',
  fast: true,
  alone: true,
  timeoutMs: 300_000,
  async run(context) {
    const { stack, random } = context;
    let [api, worker] = await Promise.all([
      context.start('api', { env: API }),
      context.start('worker'),
      context.start('keeper', { env: KEEPER }),
    ]);
    const apis = (): readonly Program[] => [api];
    const open = (parts: object): Promise<Sale> => context.openSale({ ...PRICE, ...parts });
    const selling = await open({ stock: 40 });
    const inBuckets = await open({ stock: 20, buckets: 2 });
    const soldOut = await open({ stock: 4 });
    const paused = await open({ stock: 10 });
    const closedLater = await open({ stock: 10 });
    const draft = await draftSale(stack, { ...PRICE, stock: 10 });
    const ofCopy = [selling, inBuckets, soldOut, paused, closedLater].map(({ saleId }) => saleId);

    // Before the copy is made.
    const kept = context.buyers(selling.saleId, apis);
    const early = userIds(random.whole(8, 12), 'early-');
    const orders = await ordered(kept, early);
    for (const [{ saleId }, count] of [
      [inBuckets, 6],
      [soldOut, 4],
      [paused, 1],
      [closedLater, 1],
    ] as const) {
      await ordered(context.buyers(saleId, apis), userIds(count, 'early-'));
    }
    await stack.admin.pause(paused.saleId, ACTOR);
    const [paid, cancelled, paidLater, cancelledLater] = early as [string, string, string, string];
    const orderIdOf = (userId: string): string => orders.get(userId) as string;
    expectEqual((await kept.move('pay', paid, orderIdOf(paid)))?.status, 200, 'a payment before the copy');
    expectEqual((await kept.move('cancel', cancelled, orderIdOf(cancelled)))?.status, 200, 'a cancellation before it');
    await context.expectInvariants(selling.saleId); // its unit is back

    // Only Redis and the broker have the next purchases and their units.
    worker.signal('SIGSTOP');
    const gone = outside(context, selling.saleId, apis);
    const waiting = userIds(3, 'waiting-');
    await accepted(gone, waiting);
    expectAtLeast(await pendingCountOf(stack, selling.saleId), 1, 'batches that wait for the worker');
    const inCopy = await ordersIn(stack, ofCopy);
    context.atEnd(() => removeCopy(stack));
    await copyMysql(stack);
    worker.signal('SIGCONT');

    // After the copy, all of this is lost.
    await context.until('what waited is written', () => isRecorded(stack, selling.saleId));
    const later = userIds(random.whole(4, 8), 'later-');
    const lostOrders = await ordered(gone, later);
    await ordered(outside(context, inBuckets.saleId, apis), userIds(3, 'later-'));
    expectEqual((await gone.move('pay', paidLater, orderIdOf(paidLater)))?.status, 200, 'a payment after the copy');
    const cancel = await gone.move('cancel', cancelledLater, orderIdOf(cancelledLater));
    expectEqual(cancel?.status, 200, 'a cancellation after it');
    await stack.admin.warm(draft.saleId, ACTOR);
    await stack.admin.open(draft.saleId, ACTOR);
    await ordered(outside(context, draft.saleId, apis), userIds(3, 'later-'));
    await stack.admin.close(closedLater.saleId, ACTOR);
    const made = await openSale(stack, { ...PRICE, stock: 10 });
    await ordered(outside(context, made.saleId, apis), userIds(2, 'later-'));
    const written = (await ordersIn(stack, ofCopy)).size;
    const lastEvent = await lastEventId(stack);
    const batches = await batchesWithRows(stack, selling.saleId);

    // The loss, and the procedure.
    await killPrograms(context);
    await restoreMysql(stack);
    await emptyRedis(stack);
    context.atEnd(() => createTopics(stack.servers)); // including the group that the tests use to listen
    await emptyBroker(stack);
    const lost = written - inCopy.size;
    await context.observed(
      `MySQL has ${inCopy.size} of ${written} orders, Redis no key, the broker no batch`,
      async () => {
        const [now, keys] = [await ordersIn(stack, ofCopy), await stack.redis.redis.dbsize()];
        expectEqual([...now].sort(), [...inCopy].sort(), 'the orders of the copy');
        return lost > 0 && keys === 0;
      },
    );
    await command(context, 'migrate');
    await command(context, 'restored');
    await command(context, 'topics');
    expectEqual(await batchesAtBroker(stack, batches), 0, 'batches at the broker');
    api = await context.start('api', { env: API });
    expectEqual(outcomeOf(await gone.buy('too-early')), 'loading', 'an answer before the keeper has rebuilt the sale');
    expectEqual((await report(context, api, orderIdOf(paidLater))).status, 200, 'a payment that is reported again');
    const lostOrder = lostOrders.get(later[0] as string) as string;
    expectEqual((await report(context, api, lostOrder)).json.code, 'order_not_found', 'one for an order that is lost');
    [worker] = await Promise.all([context.start('worker'), context.start('keeper', { env: KEEPER })]);
    const startedMs = performance.now();
    context.faultEnded();

    // Every sale is back, in the state that the copy has.
    for (const { saleId } of [selling, inBuckets, closedLater]) await accepted(context.buyers(saleId, apis), ['back']);
    const backMs = Math.round(performance.now() - startedMs);
    await context.observed(`three open sales sold again ${backMs} ms after the keeper had started`, () => true);
    for (const saleId of ofCopy) await untilRebuilt(stack, saleId, 1000); // above all epochs that were in use
    const words = async (saleId: string): Promise<string> =>
      outcomeOf(await outside(context, saleId, apis).buy('late'));
    expectEqual(await words(soldOut.saleId), 'sold_out', 'an answer where all is sold');
    expectEqual(await words(paused.saleId), 'paused', 'an answer of the sale that was paused');
    expectEqual(await words(draft.saleId), 'not_found', 'an answer of the sale that was a draft');
    expectEqual(await words(made.saleId), 'not_found', 'an answer of the sale that is gone');

    // The data of the copy is unchanged, and everything else is unknown.
    const now = await ordersIn(stack, ofCopy);
    for (const [key, order] of inCopy) {
      const paidAgain = key === `${selling.saleId}/${paidLater}`;
      expectEqual(now.get(key), paidAgain ? `${orderIdOf(paidLater)} paid` : order, `the order ${key}`);
    }
    for (const userId of early) expectEqual(await orderOf(kept, userId), orderIdOf(userId), `the order of ${userId}`);
    const lostKeys = [
      ...keysOf(selling.saleId, [...waiting, ...later]),
      ...keysOf(inBuckets.saleId, userIds(3, 'later-')),
    ];
    expectEqual(
      lostKeys.filter((key) => now.has(key)),
      [],
      'lost purchases that have an order',
    );
    expectEqual(lost, lostKeys.length, 'orders that were lost');
    for (const userId of [...waiting, ...later]) expectEqual((await gone.status(userId)).status, 404, `of ${userId}`);

    // A buyer who lost a purchase may make it again with the same key. No unit or id is given twice.
    const again = context.buyers(selling.saleId, apis);
    const newOrders = await ordered(again, later);
    for (const [userId, orderId] of newOrders) expectTrue(orderId !== lostOrders.get(userId), 'another order id');
    await stack.admin.warm(draft.saleId, ACTOR);
    expectEqual((await stack.admin.open(draft.saleId, ACTOR)).outcome, 'done', 'the draft opens again');
    context.addSale(draft);
    const isKnown = async (): Promise<boolean> => (await ask(`${api.url}/v1/sales/${draft.saleId}`)).status === 200;
    await context.until('the api knows that it is no draft any more', isKnown);
    await ordered(context.buyers(draft.saleId, apis), userIds(2, 'again-'));
    const next = await draftSale(stack);
    expectTrue(
      BigInt(next.saleId) > BigInt(made.saleId),
      `sale ${next.saleId} comes after the lost sale ${made.saleId}`,
    );
    const sql =
      'SELECT COUNT(*) AS n FROM outbox WHERE id <= ? AND created_at > (SELECT MAX(created_at) FROM audit_log WHERE action = ?)';
    const [events] = await stack.mysql.query<{ n: string }>(sql, [String(lastEvent), 'database.restored']);
    expectEqual(Number(events?.n), 0, 'new events with ids that were given before');
    expectTrue((await lastEventId(stack)) > lastEvent, 'there are new events');

    // The sale sells out to the unit.
    await again.rush(userIds(50, 'crowd-'), 8, TRIES);
    await context.expectFigures(selling.saleId, { liveRows: 40, unitsLeft: 0, oversold: 0 }, 'sold to the unit');
    for (const saleId of [...ofCopy, draft.saleId]) {
      await context.expectInvariants(saleId);
      expectEqual((await reconcileSale(stack, api, saleId)).found, [], `what reconcile finds in sale ${saleId}`);
    }
  },
};

const BROKER_KEPT: Scenario = {
  name: 'D9/broker_kept',
  title: 'MySQL is restored to before a rebuild, with Redis empty: batches that wait at the broker become orders',
  alone: true,
  timeoutMs: 300_000,
  async run(context) {
    const { stack, random } = context;
    const stock = 20;
    let [api, worker] = await Promise.all([
      context.start('api', { env: API }),
      context.start('worker'),
      context.start('keeper', { env: KEEPER }),
    ]);
    const { saleId } = await context.openSale({ stock });
    const buyers = context.buyers(saleId, () => [api]);
    const early = userIds(random.whole(3, 6), 'early-');
    await ordered(buyers, early);
    context.atEnd(() => removeCopy(stack));
    await copyMysql(stack);

    await command(context, 'sale', 'repair', saleId, '--force', '--json');
    const epoch = await untilRebuilt(stack, saleId);
    await worker.stop();
    const waiting = userIds(random.whole(3, 6), 'waiting-');
    await accepted(buyers, waiting);
    expectEqual(await rowsOf(stack, saleId), early.length, 'rows before the loss');
    const committed = async (): Promise<boolean> => {
      const batches = (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.pending ?? [];
      return batches.length > 0 && (await batchesAtBroker(stack, batches)) === batches.length;
    };
    await context.until('the broker has the batches that wait', committed);

    await killPrograms(context);
    await restoreMysql(stack);
    await emptyRedis(stack);
    const stored = (await stack.audit.repository.findSale(saleId))?.epoch ?? Number.NaN;
    await context.observed(`the epoch went back from ${epoch} to ${stored}`, () => stored < epoch);
    await command(context, 'restored');
    [api] = await Promise.all([context.start('api', { env: API }), context.start('keeper', { env: KEEPER })]);
    await untilRebuilt(stack, saleId);
    worker = await context.start('worker');
    context.faultEnded();

    const rows = early.length + waiting.length;
    await context.until('each 202 has its order', async () => (await rowsOf(stack, saleId)) === rows);
    for (const userId of waiting) await orderOf(buyers, userId);
    const figures = { rows, liveRows: rows, failedRows: 0, unitsLeft: stock - rows };
    await context.expectFigures(saleId, figures, 'a unit for each order');
    expectEqual((await reconcileSale(stack, api, saleId)).found, [], 'what reconcile finds');
  },
};

const REDIS_KEPT: Scenario = {
  name: 'D9/redis_kept',
  title:
    'MySQL is restored, but not Redis and the broker: each lost order is written again or fails, and every sale matches',
  fast: true,
  alone: true,
  timeoutMs: 300_000,
  async run(context) {
    const { stack, random } = context;
    let [api] = await Promise.all([
      context.start('api', { env: API }),
      context.start('worker'),
      context.start('keeper', { env: KEEPER }),
    ]);
    const apis = (): readonly Program[] => [api];
    const selling = await context.openSale({ ...PRICE, stock: 40, buckets: 2 });
    const given = await context.openSale({ ...PRICE, stock: 10 });
    const over = await context.openSale({ ...PRICE, stock: 10 });
    const sales = [selling, given, over].map(({ saleId }) => saleId);
    for (const saleId of sales) await ordered(context.buyers(saleId, apis), userIds(random.whole(2, 4), 'early-'));
    await stack.admin.close(over.saleId, ACTOR);
    context.atEnd(() => removeCopy(stack));
    await copyMysql(stack);

    const buyers = outside(context, selling.saleId, apis);
    const later = userIds(random.whole(6, 10), 'later-');
    const orders = await ordered(buyers, later);
    const orderIdOf = (userId: string): string => orders.get(userId) as string;
    const [paid, cancelled, ...unpaid] = later as [string, string, ...string[]];
    expectEqual((await buyers.move('pay', paid, orderIdOf(paid)))?.status, 200, 'a payment after the copy');
    expectEqual((await buyers.move('cancel', cancelled, orderIdOf(cancelled)))?.status, 200, 'a cancellation after it');
    const ofGiven = outside(context, given.saleId, apis);
    const failing = userIds(3, 'later-');
    await ordered(ofGiven, failing);
    const isReleased = async (): Promise<boolean> =>
      (await stack.mysql.query('SELECT id FROM outbox WHERE done_at IS NULL')).length === 0;
    await context.until('services and Redis know all of it', isReleased);

    await killPrograms(context);
    await restoreMysql(stack);
    const none = await ordersIn(stack, sales);
    const left = later.filter((userId) => none.has(`${selling.saleId}/${userId}`));
    await context.observed(`MySQL lost ${later.length + failing.length} orders`, () => left.length === 0);
    for (const name of ['migrate', 'restored', 'topics']) await command(context, name);
    [api] = await Promise.all([
      context.start('api', { env: API }),
      context.start('worker'),
      context.start('keeper', { env: KEEPER }),
    ]);
    context.faultEnded();
    for (const saleId of [selling.saleId, given.saleId]) await untilRebuilt(stack, saleId, 1000);
    const lost = [paid, ...unpaid].map((userId) => `order_lost ${userId}`).sort();
    expectEqual((await reconcileSale(stack, api, selling.saleId, { apply: true })).found, lost, 'found before');
    expectEqual((await buyers.status(paid)).json.status, 'pending', 'the status before');

    // Lost orders of the first sale are written again, and of the second sale fail. The third sale has no lost orders.
    const resolve = async (saleId: string, ...flags: readonly string[]): Promise<readonly unknown[]> => {
      const { code, stderr, lines } = await runCommand(
        ['reconcile', 'resolve', '--sale', saleId, ...flags, '--json'],
        context.env,
      );
      expectEqual([code, stderr], [0, ''], `reconcile resolve ${flags.join(' ')} of sale ${saleId}`);
      return lines.map(
        ({ outcome, userId, counts, evidence }) => counts ?? [outcome, userId, (evidence as []).length > 0],
      );
    };
    const counts = { written: 0, failed: 0, recorded: 0, left: 0 };
    const written = [...[paid, ...unpaid].map((userId) => ['written', userId, true] as const)];
    const byName = (one: unknown, other: unknown): number => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1);
    for (const flags of [['--auto', '--dry-run'], ['--auto']]) {
      const lines = await resolve(selling.saleId, ...flags);
      expectEqual(lines.at(-1), { ...counts, written: written.length }, `counts of ${flags.join(' ')}`);
      expectEqual(lines.slice(0, -1).sort(byName), [...written].sort(byName), `lines of ${flags.join(' ')}`);
    }
    expectEqual(
      (await resolve(given.saleId, '--fail')).at(-1),
      { ...counts, failed: failing.length },
      'the second sale',
    );
    expectEqual((await resolve(over.saleId, '--auto')).at(-1), counts, 'the closed sale');

    for (const userId of [paid, ...unpaid]) expectEqual(await orderOf(buyers, userId), orderIdOf(userId), userId);
    for (const userId of failing)
      expectEqual((await ofGiven.status(userId)).json.status, 'failed', `status of ${userId}`);
    expectEqual((await report(context, api, orderIdOf(paid))).status, 200, 'the payment is reported again');
    expectEqual((await buyers.order(paid, orderIdOf(paid))).json.state, 'paid', 'the order that was paid');
    const isBack = async (): Promise<boolean> =>
      (await runCommand(['reconcile', '--sale', given.saleId, '--json'], context.env)).code === 0;
    await context.until('the units of failed orders are back', isBack);
    for (const saleId of sales) {
      const { code, lines } = await runCommand(['reconcile', '--sale', saleId, '--json'], context.env);
      expectEqual([code, lines.at(-1)?.outcome], [0, 'match'], `reconcile of sale ${saleId}`);
      await context.expectInvariants(saleId);
    }
    await context.buyers(selling.saleId, apis).rush(userIds(50, 'crowd-'), 8, TRIES);
    await context.expectFigures(selling.saleId, { liveRows: 40, unitsLeft: 0, oversold: 0 }, 'sold to the unit');
  },
};

export const RESTORE_SCENARIOS: readonly Scenario[] = [EVERYTHING, BROKER_KEPT, REDIS_KEPT];
