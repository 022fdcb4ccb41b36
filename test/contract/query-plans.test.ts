import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { createAuditLog } from '../../src/mysql/audit-log.js';
import { createCompensationRepository } from '../../src/mysql/compensation-repository.js';
import { createCoupons } from '../../src/mysql/coupon-codes.js';
import { createCouponRepository } from '../../src/mysql/coupon-repository.js';
import { createDeadLetterParking } from '../../src/mysql/dead-letters.js';
import { createDeadLetterStore } from '../../src/operate/dead-letters/dead-letter-store.js';
import { createDueWork } from '../../src/mysql/due-work.js';
import { createLandedOrders } from '../../src/operate/live/landed-orders.js';
import { createOrderArchive } from '../../src/mysql/order-archive.js';
import { createOrderRepository, createOrderStates } from '../../src/mysql/order-repository.js';
import { createOrderSearch } from '../../src/mysql/order-search.js';
import { createOrderTransitions } from '../../src/mysql/order-transitions.js';
import { createOutbox } from '../../src/mysql/outbox.js';
import { createOverdueRepository } from '../../src/mysql/overdue-repository.js';
import { OVERDUE_MS } from '../../src/core/waiting-states.js';
import { openMysqlPool, type MysqlPool } from '../../src/mysql/pool.js';
import { createReconcileRepository } from '../../src/mysql/reconcile-repository.js';
import { createOrderAudit } from '../invariants/order-audit.js';
import { createPaymentAttempts } from '../../src/mysql/payment-attempts.js';
import { createReconcileRuns } from '../../src/operate/reconcile/reconcile-runs.js';
import { createPaymentCases } from '../../src/mysql/payment-cases.js';
import { createRefundRepository } from '../../src/mysql/refund-repository.js';
import { createPaymentCaseStore } from '../../src/operate/refunds/payment-case-store.js';
import { createRefundStore } from '../../src/operate/refunds/refund-store.js';
import { createRepairRepository } from '../../src/mysql/repair-repository.js';
import { createRetirementRepository } from '../../src/mysql/retirement-repository.js';
import { createRuleRepository } from '../../src/mysql/rule-repository.js';
import { createSaleRepository } from '../../src/mysql/sale-repository.js';
import { createSaleEdits } from '../../src/mysql/sale-edits.js';
import { createSaleSchedule } from '../../src/mysql/sale-schedule.js';
import { createTraceRepository } from '../../src/operate/trace/trace-repository.js';
import { createWorkerSlots } from '../../src/mysql/worker-slots.js';
import { lowestOrderIdAt } from '../../src/core/order-id.js';
import type { WritePlan } from '../../src/core/ports/order-repository.js';
import { silentLog } from '../helpers/silent-log.js';
import { makeNumbers } from '../helpers/numbers.js';
import { faultsOfPlan, RecordingPool, tracked } from '../helpers/query-plans.js';
import { newSale, ownMysqlWorld, systemClock, type MysqlWorld } from './repository-worlds.js';

const ORDERS = 1_000_000;
const PER_SALE = 500;
const SALES = ORDERS / PER_SALE;
const PER_BATCH = 50;
const OUTBOX = 1_000_000;
const OTHERS = 200_000;
/** Archived orders of the previous year. */
const ARCHIVED = 500_000;
const ARCHIVED_SALE = String(SALES + 7);
const DAY_MS = 86_400_000;
const PLANNED_TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

/** Tables of limited size, which a statement may read completely. */
const SMALL_TABLES = new Set(['worker_slots', 'entry_rules', 'reconcile_leases', 'webhook_endpoints']);
/** Maximum for a page, a lease or the orders of a few buyers. `READS_MORE` lists exceptions. */
const READ_MAX = 3_000;
const SORTED_MAX = 1_000;

/** Statements that read more by design. Each has a LIMIT. */
const READS_MORE: readonly { readonly from: RegExp; readonly rowsMax: number; readonly why: string }[] = [
  {
    from: /^orderAudit\.orders$|^reconcile\.(orderPage|unlistedOrders)$/,
    rowsMax: 25_000,
    why: 'a window of a walk over a sale',
  },
  { from: /^search\.page$/, rowsMax: 10_005, why: 'a bounded stretch of a search by sale or time' },
  { from: /^trace\.walkForRequest$/, rowsMax: 25_000, why: 'a window of a bounded walk, by a person' },
  {
    from: /^outbox\.backlog$|\.undoneReleases$|\.stuckRows$/,
    rowsMax: 25_000,
    why: 'rows that are not done: a backlog',
  },
  { from: /^jobs\.counts$/, rowsMax: 10_005, why: 'counts up to 10,000 of each state' },
  { from: /^overdue\./, rowsMax: 20_005, why: 'counts what waits too long, up to 10,000' },
];

describe('statements on large tables', () => {
  let world: MysqlWorld & { readonly url: string };
  let pool: RecordingPool;
  let plain: MysqlPool;
  const called = new Set<string>();
  const all: Record<string, object> = {};

  before(async () => {
    world = await ownMysqlWorld();
    plain = openMysqlPool({ url: world.url, poolMax: 1, queryTimeoutMs: 240_000, silentSeconds: 300 });
    await fill(plain);
    pool = new RecordingPool(plain);
    await callEverything();
  });
  after(async () => {
    await plain?.close();
    await world?.close();
  });

  const repository = <T extends object>(name: string, made: T): T => {
    all[name] = made;
    return tracked(name, made, pool, called);
  };

  async function callEverything(): Promise<void> {
    const sales = repository('sales', createSaleRepository(pool));
    const draft = newSale({ sku: 'p', stock: 1000, limitPerBuyer: 1, closesAtMs: Date.now() + DAY_MS });
    const { saleId } = await sales.create(draft);
    await sales.createAll([{ ...draft, warmBeforeMs: 60_000 }], 'plans', () => []);
    await sales.calendar(['s7', 's8']);
    await sales.find(saleId);
    await sales.newestId();
    await sales.move(saleId, 'warm', 'plans');
    await sales.move(saleId, 'open', 'plans');
    await sales.list({ max: 100 });
    await sales.list({ states: ['warm', 'open', 'paused'], max: 1000 });
    await sales.list({ states: ['closed'], max: 1000, order: 'closed_last' });
    await sales.list({ sku: 's7', max: 100 });
    await sales.list({ retired: false, max: 100, beforeId: '1000' });
    await sales.list({ opensFromMs: Date.now() - DAY_MS, opensToMs: Date.now(), max: 100 });
    const schedule = repository('schedule', createSaleSchedule(pool));
    const [firstDue] = await schedule.due(100);
    await schedule.due(100, firstDue);
    await schedule.toCompare(60_000, 100);
    await schedule.compareLater('7', 60_000);
    await schedule.compared('7', 'plans');
    await schedule.coming(7 * DAY_MS, 100);
    const edits = repository('edits', createSaleEdits(pool));
    const begin = (stock: number) => edits.begin(saleId, { title: 'edited', stock }, 'plans', () => []);
    const [more, less] = [await begin(1010), await begin(1005)];
    const begun = [more, less].flatMap((one) => ('edit' in one && one.edit !== null ? [one.edit] : []));
    await edits.unfinished(0, 100);
    for (const edit of begun) {
      await edits.takeUp(edit);
      await edits.finish(edit);
      await edits.refuse(edit);
    }
    await edits.remove(saleId, 'plans');
    const search = repository('search', createOrderSearch(pool));
    await search.page({ userId: 'u7' }, null, 100);
    await search.page({ userId: 'u7' }, '1000.r7', 100);
    await search.page({ userId: 'u7', fromMs: Date.now() - DAY_MS, toMs: Date.now() }, null, 100);
    await search.page({ saleId: '7' }, null, 100);
    await search.page({ saleId: '7', state: 'paid' }, null, 100);
    await search.page({ fromMs: Date.now() - DAY_MS, toMs: Date.now() }, null, 100);
    await search.page({ saleId: ARCHIVED_SALE }, null, 100);
    await search.page({ saleId: ARCHIVED_SALE, state: 'failed' }, null, 100);
    await search.page({ fromMs: Date.now() - 500 * DAY_MS }, null, 100);
    await search.page({ paidFromMs: Date.now() - DAY_MS, paidToMs: Date.now() }, null, 100);
    await search.page({ paidFromMs: 0, saleId: '7' }, `${Date.now() - DAY_MS}.pay7`, 100);
    const landed = repository('landed', createLandedOrders(pool));
    await landed.bySale(['7', '8', saleId], Date.now() - 1000, Date.now());
    await landed.bySale(['7', '8'], Date.now() - 400 * DAY_MS, Date.now());
    await landed.bySecond('7', Date.now() - 400 * DAY_MS, Date.now());
    await landed.bySecond(ARCHIVED_SALE, Date.now() - 800 * DAY_MS, Date.now());

    const retirement = repository('retirement', createRetirementRepository(pool));
    const [retired] = await retirement.due(7 * DAY_MS, 100);
    if (retired === undefined) throw new Error('no sale is old enough to retire');
    await retirement.retire(retired, 'plans');
    await retirement.toForget(0, 100);
    await retirement.forgotten(retired.saleId);

    const archive = repository('archive', createOrderArchive(pool, 0));
    expect(await archive.due(0, 100)).to.deep.equal([retired.saleId]);
    await archive.begin(retired.saleId, 'plans');
    let step = await archive.move(retired.saleId, null, 400);
    expect(step.moved).to.equal(400);
    // Only a part of the orders is archived now.
    await landed.bySecond(retired.saleId, Date.now() - 400 * DAY_MS, Date.now());
    while (step.next !== null) step = await archive.move(retired.saleId, step.next, 400);
    await archive.later(retired.saleId, 1000);
    expect(await archive.finish(retired.saleId)).to.equal(true);

    const orders = repository('orders', createOrderRepository(pool));
    const terms = await orders.termsOf([saleId, '1', '2']);
    const metadata = { cart: '42' };
    const purchases = Array.from({ length: 64 }, (_, n) => {
      const noted = n % 2 === 0 ? { metadata, traceId: PLANNED_TRACE } : {};
      return { userId: `plan${n}`, requestId: `p${n}`, quantity: 1, ...noted };
    });
    const batch = { batchId: 'planned', saleId, bucket: 0, epoch: 1, traceparent: '', purchases };
    const idAt = BigInt(lowestOrderIdAt(Date.now()));
    const planned = purchases.map((purchase, n) => ({
      orderId: String(idAt + BigInt(n)),
      batch,
      purchase,
      failure: n === 63 ? ('units_lost' as const) : null,
    }));
    const plan = { terms, orders: planned, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 600_000 };
    expect(await orders.write(plan as unknown as WritePlan)).to.include({ outcome: 'written' });
    await orders.findByPurchases(saleId, purchases as never);
    await orders.findByPurchases(saleId, purchases.slice(0, 1) as never);
    await orders.writtenBatches(Array.from({ length: 100 }, (_, n) => `${n}`));
    await orders.writtenBatches(['planned']);
    await orders.liveBuyers(
      saleId,
      purchases.map(({ userId }) => userId),
    );
    const orderIds = planned.map(({ orderId }) => orderId);
    await search.currenciesOf(orderIds);
    await search.currenciesOf(['1', '2']);
    await search.detailsOf((await search.page({ fromMs: Date.now() - DAY_MS }, null, 100))?.orders ?? []);
    await orders.findOrder(orderIds[0] ?? '');
    await orders.findOrder('1');
    await orders.countCancelled('7', 'u1');
    await orders.expiredOf(saleId, [...new Set(purchases.map(({ userId }) => userId))]);
    await orders.expiredOf(saleId, ['u1']);
    await orders.findByPurchases(ARCHIVED_SALE, purchases as never);
    const states = repository('states', createOrderStates(pool));
    await states.statesOf(orderIds);
    await states.dueOf(orderIds);
    await states.notificationsOf(orderIds);

    const transitions = repository('moves', createOrderTransitions(pool, { clock: systemClock, log: silentLog }));
    await transitions.pay(orderIds[0] ?? '', { paymentId: 'plan-1', amountCents: 100 });
    await transitions.pay(orderIds[0] ?? '', { paymentId: 'plan-1', amountCents: 100 });
    await transitions.pay(orderIds[1] ?? '', { paymentId: 'plan-2', amountCents: 7 });
    await transitions.cancel(orderIds[2] ?? '');
    await transitions.expire(orderIds.slice(3, 9));
    await transitions.expireDue(500);

    const outbox = repository('outbox', createOutbox(pool));
    const leased = await outbox.lease('batch_recorded', 64, 1000);
    await outbox.lease('orders_moved', 64, 1000);
    await outbox.lease('release', 64, 1000);
    const outboxIds = leased.map(({ outboxId }) => outboxId);
    await outbox.postpone(outboxIds, 1000);
    await outbox.giveBack(outboxIds, 1000);
    await outbox.markDone(outboxIds);
    await outbox.backlog();
    await outbox.removeDone(DAY_MS, 1000);

    const overdue = repository('overdue', createOverdueRepository(pool));
    const afterMs = { ...OVERDUE_MS, payment_case: 0, sale_kept: 60_000, sale_unarchived: 60_000, webhook_paused: 0 };
    await overdue.overdue(afterMs);

    const sale = await sales.find(String(SALES - 1));
    if (sale === null) throw new Error('the filled sales are missing');
    const audit = repository('orderAudit', createOrderAudit(pool));
    await audit.findSale(sale.saleId);
    await audit.undoneReleases(sale.saleId);
    await first(2, audit.orders(sale.saleId));
    const reconcile = repository('reconcile', createReconcileRepository(pool));
    await reconcile.findSale(sale.saleId);
    await reconcile.undoneReleases(sale.saleId);
    await reconcile.orderPage(sale.saleId, (await reconcile.orderPage(sale.saleId, null)).next);
    await first(2, reconcile.unlistedOrders(sale));
    await reconcile.orderPage(ARCHIVED_SALE, null);
    await reconcile.rowsOf(sale.saleId, [{ userId: 'u5', requestId: 'r5' }]);
    await reconcile.parkedBatches(['b5', 'b6']);
    await reconcile.stuckRows(sale.saleId, { olderThanMs: 60_000, attemptsMin: 20 }, 100);
    await reconcile.isDone('1000');
    await reconcile.isRestocked(sale);

    const jobs = repository('jobs', createCompensationRepository(pool));
    const job = {
      kind: 'leak' as const,
      subject: `${saleId}/plan/p`,
      saleId,
      batchId: 'planned',
      userId: 'plan',
      requestId: 'p',
      detail: '',
    };
    await jobs.add([job], 'plans');
    await jobs.add([job], 'plans');
    for (const filter of [{}, { state: 'pending' as const }, { kind: 'leak' as const }, { saleId: '7' }]) {
      await jobs.list(filter, { max: 100 });
    }
    const [mine] = await jobs.byRequest(saleId, 'plan', 'p');
    const jobId = mine?.jobId ?? '';
    await jobs.find(jobId);
    await jobs.byBatch('planned');
    await jobs.counts();
    await jobs.claim({ max: 16, leaseMs: 1000 });
    await jobs.claim({ max: 16, leaseMs: 1000, saleId });
    await jobs.postpone(jobId, 1000, 'no', 'counts');
    await jobs.failed(jobId, 'plans', 'no');
    await jobs.retry(jobId, 'plans');
    await jobs.done(jobId, 'plans', 'yes');
    await jobs.announce(jobId, 'plans', 'compensation.planned', null, null);
    await jobs.removeOld(DAY_MS, 100);

    const runs = repository('runs', createReconcileRuns(pool, systemClock));
    await runs.lease(saleId, 'plans', 1000);
    await runs.free(saleId, 'plans');
    const runId = await runs.begin({ saleId, applied: false, actor: 'plans' });
    await runs.end(runId, { outcome: 'match', figures: {}, findings: [] } as never);
    await runs.removeOld(DAY_MS, 100);
    await runs.removeOld(400 * DAY_MS, 100);
    await runs.list({}, 20);
    await runs.list({ saleId }, 20);
    await runs.list({ beforeId: '1000' }, 20);
    await runs.list({ saleId: '7', beforeId: '199000' }, 20);

    await repository('due', { read: createDueWork(pool) }).read();

    const refunds = repository('refunds', { ...createRefundRepository(pool), ...createRefundStore(pool) });
    await refunds.lease(16, 1000);
    await refunds.postpone({ paymentId: 'pay7', attempts: 0 }, 1000, 'no');
    await refunds.markRefunded('pay7');
    await refunds.refundsOf(orderIds[1] ?? '');
    await refunds.has('pay7');
    const page = await refunds.list({}, { max: 100 });
    await refunds.list({}, { max: 100, after: page.at(-1)?.paymentId ?? '' });
    await refunds.list({ saleId: '7' }, { max: 100 });
    for (const state of ['due', 'failed'] as const) await refunds.list({ state }, { max: 100, after: 'order/7' });
    await refunds.counts('7');
    const duePage = await refunds.list({ state: 'due' }, { max: 100 });
    await refunds.list({ state: 'due' }, { max: 100, after: duePage.at(-1)?.paymentId ?? '' });
    await refunds.takeOn('pay9', 'plans');
    const cases = repository('payment-cases', {
      ...createPaymentCases(pool),
      ...createPaymentCaseStore(pool),
    });
    const dispute = { kind: 'disputed', subject: 'case7', paymentId: 'pay7', orderId: null } as const;
    await cases.note({ ...dispute, amountCents: 100, currency: 'EUR', detail: 'news' });
    await cases.settle('unrecorded', 'case7');
    await cases.orderOf('pay7');
    for (const filter of [{}, { state: 'open' }] as const) {
      const [first] = await cases.list(filter, { max: 100 });
      await cases.list(filter, { max: 100, afterCaseId: first?.caseId ?? '' });
    }
    await cases.close('7', 'plans');

    const attempts = repository('attempts', createPaymentAttempts(pool, { clock: systemClock }));
    const bound = { perOrder: 8, perBuyerHour: 20, refuses: () => true };
    await attempts.open(orderIds[0] ?? '', 'k', 100, 0, bound);
    await attempts.openOf(orderIds[0] ?? '');
    await attempts.lease(16, 1000);
    await attempts.postpone({ orderId: orderIds[0] ?? '', key: 'k' }, 1000, 'no');
    await attempts.close({ orderId: orderIds[0] ?? '', key: 'k' }, 'charged' as never);

    const coupons = repository('coupons', createCouponRepository(pool));
    await coupons.issue(orderIds.slice(0, 4));
    await coupons.withoutCoupon(orderIds);
    const codes = repository('coupon-codes', createCoupons(pool));
    await codes.find('C000000007');
    for (const filter of [
      {},
      { userId: 'u7' },
      { saleId: '7' },
      { orderId: orderIds[0] ?? '' },
      { state: 'reserved' },
    ] as const)
      await codes.list(filter, { max: 100, afterOrderId: orderIds[0] ?? '' });
    const coupon = { code: 'C000000009', discountCents: 10 };
    await attempts.open(orderIds[1] ?? '', 'k2', 90, 0, null, coupon);
    await attempts.close({ orderId: orderIds[1] ?? '', key: 'k2' }, 'declined');

    const letters = repository('deadLetters', { ...createDeadLetterParking(pool), ...createDeadLetterStore(pool) });
    await letters.park({
      messageId: 'plans',
      group: 'g',
      originTopic: 't',
      saleId,
      batchId: 'planned',
      body: '{}',
      reason: 'undecodable',
      detail: '',
      attempts: 1,
    });
    const since = { sinceMs: Date.now() - DAY_MS, untilMs: Date.now() };
    for (const filter of [{}, { state: 'parked' as const }, { saleId: '7' }, { batchId: 'b7' }, since]) {
      await letters.list(filter, { max: 100 });
      await letters.list(filter, { max: 100, afterId: '100' });
    }
    const narrow = { state: 'parked', text: 'd', originTopic: 't', reason: 'undecodable' } as const;
    await letters.list(narrow, { max: 100 });
    await letters.count(narrow);
    await letters.list({ state: 'parked', ids: ['199990', '199991'] }, { max: 100 });
    await letters.count({ state: 'parked' });
    await letters.list({ key: 'r7' }, { max: 20 });
    await letters.find('7');
    await letters.parkedBatches('', 100);
    await letters.beginReplay('199990', 'plans');
    await letters.keepParked('199990', 'plans', '');
    await letters.close('199990', 'plans', 'discarded', '');

    const log = repository('audit', createAuditLog(pool));
    await log.append({ actor: 'plans', action: 'plans.tried', subject: 'plans:1', before: null, after: {} });
    for (const filter of [
      {},
      { subject: 'sale:7' },
      { actor: 'nobody' },
      { action: 'sale.nothing' },
      { sinceMs: Date.now() - DAY_MS },
    ]) {
      await log.list(filter, { max: 100 });
      await log.list(filter, { max: 100, beforeId: '150000' });
    }

    const repair = repository('repair', createRepairRepository(pool));
    await repair.raiseEpoch(saleId, 2, 'plans');
    await repair.claimReshard(saleId, { from: 1, to: 4 }, 'plans', 9000);
    await repair.lastOrderMs('7');
    await repair.parkedBatchesOf('7');

    const trace = repository('trace', createTraceRepository(pool));
    await trace.findRequests(orderIds[0] ?? '', {}, 20);
    await trace.findRequests('p0', { userId: 'plan0' }, 20);
    await trace.findRequests('b7', { saleId: '7' }, 20);
    expect(await trace.findByTrace(PLANNED_TRACE, {}, 20)).to.have.length(20);
    await trace.findByTrace(PLANNED_TRACE, { saleId, userId: 'plan2' }, 20);
    await trace.findByTrace('f'.repeat(32), {}, 20);
    await trace.walkForRequest('unknown', { saleId: '7' }, 20);
    await trace.walkForRequest('unknown', {}, 20);
    await trace.read({ userId: 'plan0', saleId, requestId: 'p0' });
    await trace.read({ userId: 'u777', saleId: '2', requestId: 'r777' });

    const slots = repository('slots', createWorkerSlots(pool));
    await slots.acquire('plans', 1000);
    await slots.free('plans');
    const rules = repository('rules', createRuleRepository(pool));
    await rules.store({}, (await rules.current()).version, 'plans');
    await rules.find(1);
    await rules.ageMs(1);
    await rules.history(10);
  }

  it('cover every method of every repository', () => {
    const files = readdirSync(new URL('../../src/mysql/', import.meta.url));
    const stems = files.filter((name) =>
      /-repository\.ts$|^(outbox|audit-log|reconcile-runs|worker-slots|order-transitions|order-search|order-archive|payment-attempts|sale-edits|sale-schedule)\.ts$/.test(
        name,
      ),
    );
    expect(Object.keys(all).length, `repositories in ${stems.join(', ')}`).to.be.at.least(stems.length);
    const methods = Object.entries(all).flatMap(([name, made]) =>
      Object.entries(made).flatMap(([key, value]) => (typeof value === 'function' ? [`${name}.${key}`] : [])),
    );
    expect(methods.filter((method) => !called.has(method))).to.deep.equal([]);
  });

  it('never scan or sort a whole large table', async () => {
    const faults: string[] = [];
    for (const statement of pool.seen) {
      for (const fault of await faultsOfPlan(plain, statement, SMALL_TABLES, SORTED_MAX)) {
        faults.push(`${statement.from}: ${fault}: ${statement.sql}`);
      }
    }
    expect(faults, faults.join('\n')).to.deep.equal([]);
  });

  it('read no more rows than a page holds, except for bounded walks', () => {
    const faults = pool.seen
      .filter(({ from, rowsRead }) => rowsRead > (READS_MORE.find((one) => one.from.test(from))?.rowsMax ?? READ_MAX))
      .map(({ from, rowsRead, sql }) => `${from}: ${rowsRead} rows: ${sql}`);
    expect(faults, faults.join('\n')).to.deep.equal([]);
  });
});

/** Returns the first `count` chunks of a walk. */
async function first<T>(count: number, chunks: AsyncIterable<T>): Promise<void> {
  let seen = 0;
  for await (const _ of chunks) if (++seen >= count) return;
}

/** Fills every table with a year of sales: a million orders, sale by sale, with the newest sale open. */
async function fill(pool: MysqlPool): Promise<void> {
  const nowMs = Date.now();
  const stepMs = Math.floor((365 * DAY_MS) / ORDERS);
  const atMs = `(${nowMs} - (${ORDERS} - seq) * ${stepMs})`;
  const at = `FROM_UNIXTIME(${atMs} / 1000)`;
  const firstId = BigInt(lowestOrderIdAt(nowMs - ORDERS * stepMs));
  const idStep = (BigInt(lowestOrderIdAt(nowMs)) - firstId) / BigInt(ORDERS);
  const orderId = `(${firstId} + seq * ${idStep})`;
  const saleId = `(1 + (seq - 1) DIV ${PER_SALE})`;
  const batchId = `CONCAT('b', seq DIV ${PER_BATCH})`;
  const traceId = (of: string): string => `UNHEX(LEFT(SHA2(${of}, 256), 32))`;
  const upTo = (count: number): string => `numbers WHERE seq <= ${count}`;
  const others = upTo(OTHERS);
  await makeNumbers(pool, Math.max(ORDERS, OUTBOX));
  await pool.execute('SET SESSION unique_checks = 0, foreign_key_checks = 0');
  const statements = [
    `INSERT INTO sales (id, sku, title, price_cents, stock, sold, limit_per_buyer, buckets, opens_at, closes_at, state)
     SELECT seq, CONCAT('s', seq), 't', 100, ${PER_SALE}, ${PER_SALE}, 1, 1,
       FROM_UNIXTIME((${nowMs} - (${SALES} - seq + 1) * ${stepMs * PER_SALE}) / 1000),
       FROM_UNIXTIME((${nowMs} - (${SALES} - seq) * ${stepMs * PER_SALE}) / 1000),
       IF(seq > ${SALES - 20}, 'open', 'closed') FROM ${upTo(SALES)}`,
    `INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, state, one_per_buyer,
       created_at, updated_at, expires_at, paid_at)
     SELECT ${orderId}, ${saleId}, CONCAT('u', seq MOD 200000), CONCAT('r', seq), ${batchId}, 1, 100,
       IF(seq > ${ORDERS - 2000}, 'pending_payment', ELT(1 + seq MOD 10, 'expired', 'failed', 'cancelled', 'paid', 'paid',
         'paid', 'paid', 'paid', 'paid', 'paid')), 1, ${at}, ${at}, ${at} + INTERVAL 10 MINUTE, ${at}
     FROM ${upTo(ORDERS)}`,
    `INSERT INTO order_ranges (sale_id, first_id, last_id, orders)
     SELECT ${saleId}, ${orderId}, ${orderId} + ${PER_BATCH - 1} * ${idStep}, ${PER_BATCH}
     FROM ${upTo(ORDERS)} AND seq MOD ${PER_BATCH} = 1`,
    `INSERT INTO order_metadata (order_id, metadata) SELECT ${orderId}, '{"cart":"42"}' FROM ${others}`,
    `INSERT INTO order_traces (order_id, trace_id) SELECT ${orderId}, ${traceId('seq')} FROM ${others}`,
    `INSERT INTO outbox (id, kind, \`key\`, payload, available_at, attempts, created_at, done_at)
     SELECT seq, ELT(1 + seq MOD 3, 'batch_recorded', 'orders_moved', 'release'), CONCAT('b', seq), '[]', ${at}, 1,
       ${at}, IF(seq > ${OUTBOX - 5000}, NULL, ${at}) FROM ${upTo(OUTBOX)}`,
    `INSERT INTO payments (payment_id, order_id, amount_cents) SELECT CONCAT('pay', seq), ${orderId}, 100 FROM ${others}`,
    `INSERT INTO refunds (payment_id, order_id, amount_cents, reason, state, created_at)
     SELECT CONCAT('pay', seq), ${orderId}, 100, 'order_expired', IF(seq > ${OTHERS - 500}, 'due', 'refunded'), ${at}
     FROM ${others}`,
    `INSERT INTO coupons (order_id, sale_id, user_id)
     SELECT ${orderId}, ${saleId}, CONCAT('u', seq) FROM ${others}`,
    `INSERT INTO coupon_codes (code, order_id, sale_id, user_id, currency, percent, min_cents, state, expires_at)
     SELECT CONCAT('C', LPAD(seq, 9, '0')), ${orderId}, ${saleId}, CONCAT('u', seq), 'EUR', 10, 0,
       IF(seq MOD 50 = 0, 'redeemed', 'free'), UTC_TIMESTAMP(3) + INTERVAL 1 DAY FROM ${others}`,
    `INSERT INTO dead_letters (message_id, consumer_group, origin_topic, sale_id, batch_id, body, reason, detail, state,
       attempts, created_at)
     SELECT CONCAT('m', seq), 'g', 't', ${saleId}, ${batchId}, CONCAT('["u","r', seq, '",1]'), 'undecodable', 'd',
       IF(seq > ${OTHERS - 500}, 'parked', 'replayed'), 1, ${at} FROM ${others}`,
    `INSERT INTO payment_attempts (order_id, \`key\`, amount_cents, state)
     SELECT ${orderId}, 'order', 100, IF(seq > ${OTHERS - 500}, 'open', 'charged') FROM ${others}`,
    `INSERT INTO payment_cases (kind, subject, payment_id, order_id, detail, state, created_at)
     SELECT 'disputed', CONCAT('case', seq), CONCAT('pay', seq), ${orderId}, 'd', IF(seq > ${OTHERS - 500}, 'open', 'closed'), ${at}
     FROM ${others}`,
    `INSERT INTO orders_archive (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, state, one_per_buyer,
       created_at, updated_at, expires_at, paid_at)
     SELECT ${firstId} - ${ARCHIVED + 1} + seq, ${SALES + 1} + (seq - 1) DIV ${PER_SALE}, CONCAT('u', seq MOD 200000),
       CONCAT('r', seq), ${batchId}, 1, 100, IF(seq MOD 10 = 0, 'failed', 'paid'), 1, ${at}, ${at}, NULL, ${at}
     FROM ${upTo(ARCHIVED)}`,
    `INSERT INTO payments_archive (payment_id, order_id, amount_cents)
     SELECT CONCAT('old', seq), ${firstId} - ${ARCHIVED + 1} + seq, 100 FROM ${others}`,
    `INSERT INTO coupons_archive (order_id, sale_id, user_id)
     SELECT ${firstId} - ${ARCHIVED + 1} + seq, 1, CONCAT('u', seq) FROM ${others}`,
    `INSERT INTO order_metadata_archive (order_id, metadata)
     SELECT ${firstId} - ${ARCHIVED + 1} + seq, '{"cart":"42"}' FROM ${others}`,
    `INSERT INTO order_traces_archive (order_id, trace_id)
     SELECT ${firstId} - ${ARCHIVED + 1} + seq, ${traceId('-seq')} FROM ${others}`,
    `INSERT INTO audit_log (actor, action, subject, created_at)
     SELECT CONCAT('a', seq MOD 50), 'sale.opened', CONCAT('sale:', ${saleId}), ${at} FROM ${others}`,
    `INSERT INTO compensation_jobs (kind, subject, sale_id, batch_id, detail, state, available_at)
     SELECT 'leak', CONCAT(${saleId}, '/u/', seq), ${saleId}, ${batchId}, 'd',
       IF(seq > ${OTHERS - 200}, 'pending', 'compensated'), ${at} FROM ${others}`,
    `INSERT INTO reconcile_runs (sale_id, applied, actor, started_at) SELECT ${saleId}, 0, 'keeper', ${at} FROM ${others}`,
  ];
  for (const sql of statements) await pool.execute(sql);
  await pool.query(
    'ANALYZE TABLE sales, orders, orders_archive, payments_archive, coupons_archive, payment_attempts, order_metadata, order_metadata_archive, payment_cases, order_traces, order_traces_archive, order_ranges, outbox, payments, refunds, coupons, coupon_codes, dead_letters, audit_log, compensation_jobs, reconcile_runs',
  );
}
