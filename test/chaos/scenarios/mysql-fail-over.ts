import { versionsIn } from '../../../deploy/local/stack/versions.js';
import type { ScenarioContext } from '../context.js';
import { Buyers, outcomeOf, userIds } from '../harness/buyers.js';
import { type CommandEnd, runCommand } from '../harness/commands.js';
import { expectAtLeast, expectEqual, expectTrue } from '../harness/expect.js';
import { MysqlPair } from '../harness/mysql-pair.js';
import { complaintOf, type Program } from '../harness/programs.js';
import { untilRebuilt } from '../harness/redis.js';
import { openSale, RECONCILE_ENV, reconcileSale } from '../harness/sales.js';
import { checkSecondStack } from '../harness/second-stack.js';
import { pause } from '../harness/wait.js';
import type { Scenario } from '../scenario.js';

// D11 and D12: a replica takes over from the MySQL that took the writes (docs/durability.md).

const KEEPER = { KEEPER_EVERY_MS: '500', REPAIR_QUIET_MS: '300', REPAIR_WAIT_MAX_MS: '3000' };
const STOCK = 100_000;
/** Long poll for an order. */
const WAIT_S = 20;
/** A sale that is being rebuilt answers 503. */
const TRIES = { tries: 150 };

const mysqlIsOther = (): string | null =>
  versionsIn(process.env).mysql.startsWith('mariadb') ? null : 'it lets a MariaDB follow another';

type System = Readonly<Record<'api' | 'worker' | 'keeper', Program>>;

async function startPrograms(context: ScenarioContext, pair: MysqlPair): Promise<System> {
  const start = (name: 'api' | 'worker' | 'keeper', more: Readonly<Record<string, string>> = {}) =>
    context.start(name, { env: { ...pair.env, ...more } });
  const [api, worker, keeper] = await Promise.all([
    start('api', RECONCILE_ENV),
    start('worker'),
    start('keeper', KEEPER),
  ]);
  return { api, worker, keeper };
}

const seckill = ({ env }: ScenarioContext, pair: MysqlPair, ...args: readonly string[]): Promise<CommandEnd> =>
  runCommand(args, { ...env, ...pair.env });

/** Records the verdict of a doctor check. */
async function observeDoctor(
  context: ScenarioContext,
  pair: MysqlPair,
  check: string,
  expected: RegExp,
): Promise<void> {
  const { lines } = await seckill(context, pair, 'doctor', '--json');
  const checks = (lines.at(-1)?.checks ?? []) as {
    readonly id: string;
    readonly verdict: string;
    readonly says: string;
  }[];
  const { verdict, says } = checks.find(({ id }) => id === check) ?? {};
  await context.observed(`doctor: ${verdict}, ${says}`, () => expected.test(`${verdict}: ${says}`));
}

const buyersOf = (pair: MysqlPair, saleId: string, api: () => Program): Buyers =>
  new Buyers(saleId, pair.stack.env.JWT_SECRET, () => [api().url]);

/** Buys, and waits for the orders. @returns the order id of each buyer */
async function ordered(buyers: Buyers, users: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const answers = await buyers.rush(users, 4, TRIES);
  expectEqual(new Set(answers.map(outcomeOf)), new Set(['accepted']), `answers of ${users[0]} and others`);
  const orders = new Map<string, string>();
  for (const userId of users) {
    const { json } = await buyers.status(userId, 'k1', WAIT_S);
    expectEqual(json.status, 'ordered', `the purchase of ${userId}`);
    orders.set(userId, String(json.orderId));
  }
  return orders;
}

/** Keeps reading the orders of the primary until it is gone. */
function watchPrimary(pair: MysqlPair, saleId: string) {
  let seen: readonly string[] = [];
  let stopped = false;
  const watching = (async () => {
    for (; !stopped; await pause(5)) seen = await pair.ordersOn('primary', saleId);
  })().catch(() => undefined);
  return {
    /** Returns the orders that any client may have seen. */
    seen: (): readonly string[] => seen,
    async stop(): Promise<readonly string[]> {
      stopped = true;
      await watching;
      return seen;
    },
  };
}

/** Sells while a replica takes over, which must have every order that any client saw. */
async function sellThrough(context: ScenarioContext, pair: MysqlPair, takesOver: () => Promise<void>): Promise<void> {
  const { api } = await startPrograms(context, pair);
  const { saleId } = await openSale(pair.stack, { stock: STOCK });
  const buyers = buyersOf(pair, saleId, () => api);
  const load = await buyers.startLoadUntil({ parallel: 8, pauseMs: 20, tries: 1 }, context.random.whole(100, 300));
  const watch = watchPrimary(pair, saleId);
  await context.until('the worker writes orders', () => watch.seen().length > 50);

  const startedMs = performance.now();
  await takesOver();
  const tookOverMs = Math.round(performance.now() - startedMs);
  const before = await watch.stop();
  const kept = new Set(await pair.ordersOn('replica', saleId));
  const lost = before.filter((id) => !kept.has(id)).length;
  const landsAgain = async (): Promise<boolean> => (await pair.ordersOn('replica', saleId)).length > kept.size;
  await context.until('an order lands on the new primary', landsAgain, { everyMs: 10 });
  const gapMs = Math.round(performance.now() - startedMs);
  const figures = `orders land again after ${gapMs} ms (the switch took ${tookOverMs})`;
  await context.observed(
    `${figures}; ${lost} of ${before.length} orders are lost`,
    () => before.length > 50 && lost === 0,
  );
  context.faultEnded();
  await buyers.untilAccepted(50, 'purchases are accepted');
  await load.stop();

  await buyers.retryUnknown();
  const { rows, failedRows } = await checkSecondStack(pair.stack, buyers);
  expectEqual([rows, failedRows], [buyers.opLog.count('ok'), 0], 'a row for each accepted purchase');
  expectEqual((await reconcileSale(pair.stack, api, saleId)).found, [], 'what reconcile finds');
}

const PLANNED: Scenario = {
  name: 'D12/planned',
  title: 'a replica takes over from a read-only MySQL: orders land again by themselves, and no order is lost',
  alone: true,
  noSale: true, // runs in the second stack
  skip: mysqlIsOther,
  timeoutMs: 600_000,
  async run(context) {
    const pair = await MysqlPair.start(context, { semiSync: false });
    await observeDoctor(context, pair, 'mysql.replica', /^risky: Replication is asynchronous \(replicas: 1\)/);
    await sellThrough(context, pair, () => pair.switchOver());
    await observeDoctor(context, pair, 'mysql.replica', /^ok: one server, no replica/);
  },
};

const SEMI_SYNC: Scenario = {
  name: 'D12/semi_sync',
  title: 'a semi-synchronous replica takes over from a killed MySQL: orders land again, and no order is lost',
  alone: true,
  noSale: true, // runs in the second stack
  skip: mysqlIsOther,
  timeoutMs: 600_000,
  async run(context) {
    const pair = await MysqlPair.start(context, { semiSync: true });
    await observeDoctor(context, pair, 'mysql.replica', /^ok: semi-synchronous, replicas that answer: 1/);
    await sellThrough(context, pair, async () => {
      await pair.killPrimary();
      await pair.promote();
    });
  },
};

const LAGGING: Scenario = {
  name: 'D11',
  title: 'a replica without the last writes takes over from MySQL: no program uses it until `restored` has run',
  alone: true,
  noSale: true, // runs in the second stack
  skip: mysqlIsOther,
  timeoutMs: 600_000,
  async run(context) {
    const { random } = context;
    const pair = await MysqlPair.start(context, { semiSync: false });
    let programs = await startPrograms(context, pair);
    const { saleId } = await openSale(pair.stack, { stock: STOCK });
    const buyers = buyersOf(pair, saleId, () => programs.api);
    const early = await ordered(buyers, userIds(random.whole(5, 10), 'early-'));
    await pair.untilCaughtUp();
    await pair.stopReplication();
    const late = await ordered(buyers, userIds(random.whole(5, 10), 'late-'));
    const arePublished = async (): Promise<boolean> =>
      (await pair.stack.mysql.query('SELECT id FROM outbox WHERE done_at IS NULL')).length === 0;
    await context.until('every event is published', arePublished);

    const startedMs = performance.now();
    await pair.killPrimary();
    await pair.promote();
    const left = (await pair.ordersOn('replica', saleId)).length;
    expectEqual(left, early.size, 'orders that the replica has');
    for (const program of Object.values(programs)) {
      const saysSo = async (): Promise<boolean> =>
        /has lost its last writes.*`seckill restored`/.test((await complaintOf(program, 'mysql')) ?? '');
      await context.observed(`the ${program.name} refuses the new primary`, saysSo);
    }
    for (const args of [
      ['sale', 'list'],
      ['refunds', 'list'],
      ['audit', 'list'],
    ]) {
      const { code, stderr } = await seckill(context, pair, ...args);
      expectTrue(code !== 0 && /has lost its last writes/.test(stderr), `seckill ${args.join(' ')}: ${code} ${stderr}`);
    }
    await observeDoctor(context, pair, 'mysql.last-writes', /^wrong: MySQL has lost its last writes/);
    await Promise.all(Object.values(programs).map((program) => program.stop()));
    const restored = await seckill(context, pair, 'restored');
    expectEqual([restored.code, restored.stderr], [0, ''], 'seckill restored');
    programs = await startPrograms(context, pair);
    context.faultEnded();
    await untilRebuilt(pair.stack, saleId, 1000);
    await ordered(buyers, ['again']);
    const gapMs = Math.round(performance.now() - startedMs);
    await context.observed(`the first order after ${gapMs} ms, with ${late.size} orders lost`, () => true);

    const lost = [...late.keys()].map((userId) => `order_lost ${userId}`).sort();
    expectEqual((await reconcileSale(pair.stack, programs.api, saleId, { apply: true })).found, lost, 'what is lost');
    const resolved = await seckill(context, pair, 'reconcile', 'resolve', '--sale', saleId, '--auto', '--json');
    expectEqual([resolved.code, resolved.stderr], [0, ''], 'reconcile resolve --auto');
    for (const [userId, orderId] of [...early, ...late]) {
      expectEqual(String((await buyers.status(userId)).json.orderId), orderId, `the order of ${userId}`);
    }
    const { code, lines } = await seckill(context, pair, 'reconcile', '--sale', saleId, '--json');
    expectEqual([code, lines.at(-1)?.outcome], [0, 'match'], 'reconcile');
    const { rows } = await checkSecondStack(pair.stack, buyers);
    expectAtLeast(rows, early.size + late.size + 1, 'orders');
  },
};

export const MYSQL_FAIL_OVER_SCENARIOS: readonly Scenario[] = [LAGGING, PLANNED, SEMI_SYNC];
