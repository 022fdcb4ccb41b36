import { expect } from 'chai';
import request from 'supertest';
import { sealBatch, type Batch } from '../../../../src/core/batch.js';
import { encodeOrderEvents, type OrderEventType } from '../../../../src/core/order-event.js';
import { composeOrderId } from '../../../../src/core/order-id.js';
import type { Purchase } from '../../../../src/core/purchase.js';
import type { Sale } from '../../../../src/core/sale.js';
import type {
  ResolvedOrder,
  ResolveMode,
  ResolveOrder,
  SaleResolved,
} from '../../../../src/operate/reconcile/resolve-lost.js';
import { liveOrderOf } from '../../../helpers/sales.js';
import { bearer, FakeServices, startServer } from '../../http/http-harness.js';
import { ReconcileWorld } from './reconcile-world.js';

describe('lost orders after a restore of MySQL', () => {
  let world: ReconcileWorld;
  let sale: Sale;
  let next: number;
  beforeEach(async () => {
    world = new ReconcileWorld();
    sale = await world.openSale({ stock: 100, limitPerBuyer: 10 });
    next = 0;
  });

  const bucket = () => world.store.bucket({ saleId: sale.saleId, bucket: 0 });
  const entry = (user: string): string => {
    const { state, quantity, ...rest } = bucket().requests.get(`${user}/k1`) ?? { state: 'none', quantity: 0 };
    return `${state} ${'orderId' in rest ? rest.orderId : ''} ${quantity}`;
  };
  const stored = (): Sale => world.mysql.saleOf(sale.saleId) as Sale;

  /** Buys, records and marks one purchase per text, and returns the ids of the orders. */
  async function ordered(texts: readonly string[], everyMs = 0): Promise<{ batch: Batch; ids: string[] }> {
    const batch = await world.deducted(sale, texts);
    const ids = batch.purchases.map(({ userId }) => {
      next++;
      return composeOrderId(world.clock.nowMs() + next * everyMs, 1, userId, next % 256);
    });
    const terms = await world.mysql.termsOf([sale.saleId]);
    const orders = batch.purchases.map((purchase, at) => ({
      orderId: ids[at] as string,
      batch,
      purchase,
      failure: null,
    }));
    await world.mysql.write({ terms, orders, releases: [], oneByOne: new Set(), paymentWindowMs: 900_000 });
    const live = batch.purchases.map(({ userId, requestId }, at) => liveOrderOf(userId, ids[at] as string, requestId));
    await world.store.markRecorded([{ batch, orders: live }]);
    return { batch, ids };
  }

  /** Does the same as `ordered`, and then MySQL loses the rows. */
  async function lost(texts: readonly string[], everyMs = 0): Promise<{ batch: Batch; ids: string[] }> {
    const made = await ordered(texts, everyMs);
    for (const id of made.ids) world.mysql.loseOrder(id);
    world.mysql.outbox.rows.length = 0;
    return made;
  }

  async function resolve(mode: ResolveMode, parts: Partial<ResolveOrder> = {}) {
    const orders: ResolvedOrder[] = [];
    const asked = { saleId: sale.saleId, mode, dryRun: false, max: 1000, waitMs: 0, actor: 'ann', ...parts };
    const result = await world.resolveLost(asked, (order) => orders.push(order));
    const words = orders
      .map(({ userId, outcome, reason }) => [userId, outcome, reason].filter(Boolean).join(' '))
      .sort();
    return { result, orders, words };
  }
  const countsOf = (result: SaleResolved) => (result.outcome === 'resolved' ? result.counts : result.outcome);
  const event = (type: OrderEventType, orderId: string, metadata?: Record<string, string>): string =>
    encodeOrderEvents([
      {
        eventId: `e-${orderId}`,
        type,
        saleId: sale.saleId,
        orders: [orderId],
        atMs: 1,
        ...(metadata ? { metadata: { [orderId]: metadata } } : {}),
      },
    ]);

  it('writes lost orders under their old ids, unpaid and with a new deadline [D5]', async () => {
    const { ids } = await lost(['u1', 'u2*3']);
    world.clock.advance(3_600_000);
    expect(await world.found(sale.saleId)).to.have.members(['order_lost u1', 'order_lost u2']);
    const { words, result } = await resolve('write');
    expect(words).to.deep.equal(['u1 written', 'u2 written']);
    expect(result).to.deep.include({ outcome: 'resolved', more: false });
    const rows = world.mysql.allOrders;
    expect(rows.map(({ orderId }) => orderId).sort()).to.deep.equal([...ids].sort());
    expect(rows.map(({ state }) => state)).to.deep.equal(['pending_payment', 'pending_payment']);
    expect(rows.every(({ expiresAtMs }) => expiresAtMs === world.clock.nowMs() + 900_000)).to.equal(true);
    expect(stored().sold).to.equal(4);
    expect(bucket().unitsLeft).to.equal(96);
    expect(world.mysql.outbox.undone('batch_recorded'), 'buyers and services get events').to.have.length(2);
    expect(await world.found(sale.saleId)).to.deep.equal([]);
    expect(await resolve('fail').then(({ words: again }) => again), 'it may be repeated').to.deep.equal([]);
  });

  it('fails lost orders under their old ids, and returns their units once', async () => {
    const { ids } = await lost(['u1', 'u2*3']);
    const { words } = await resolve('fail');
    expect(words).to.deep.equal(['u1 failed discarded', 'u2 failed discarded']);
    expect(world.mysql.allOrders.map(({ orderId }) => orderId).sort()).to.deep.equal([...ids].sort());
    await world.releaseUnits();
    await world.releaseUnits();
    expect(bucket().unitsLeft).to.equal(100);
    expect(entry('u2')).to.equal(`released ${ids[1]} 3`);
    expect(stored().sold).to.equal(0);
    expect(await world.found(sale.saleId)).to.deep.equal([]);
  });

  it('takes batch id and metadata from the message, unless its quantity differs', async () => {
    const { batch } = await lost(['u1', 'u2']);
    const metadata = { cart: '42' };
    const [first, second] = batch.purchases as [Purchase, Purchase];
    const purchases = [
      { ...first, metadata },
      { ...second, quantity: 9 },
    ];
    world.kept.batches.push('{', sealBatch({ ...batch, purchases }).body);
    const { orders } = await resolve('auto');
    expect(orders.map(({ userId, outcome, evidence }) => [userId, outcome, ...evidence])).to.have.deep.members([
      ['u1', 'written', 'message'],
      ['u2', 'failed'],
    ]);
    const [row] = world.mysql.allOrders.filter(({ userId }) => userId === 'u1');
    expect(row?.batchId).to.equal(batch.batchId);
    expect(world.mysql.shown(row as never).metadata).to.deep.equal(metadata);
  });

  it('fails orders that had ended, even in mode `write`, and notes a paid order', async () => {
    const { ids } = await lost(['paid', 'gone', 'late', 'plain']);
    world.kept.events.push(event('order.paid', ids[0] as string), event('order.cancelled', ids[1] as string));
    world.kept.events.push(event('order.expired', ids[2] as string));
    const { words, orders } = await resolve('write');
    expect(words).to.deep.equal(['gone failed discarded', 'late failed discarded', 'paid written', 'plain written']);
    expect(orders.find(({ userId }) => userId === 'paid')?.note).to.equal('it was paid');
  });

  it('writes only orders that an event confirms in mode `auto`, and fails the others', async () => {
    const { ids } = await lost(['u1', 'u2']);
    world.kept.events.push(event('order.created', ids[0] as string, { cart: '7' }));
    expect((await resolve('auto')).words).to.deep.equal(['u1 written', 'u2 failed discarded']);
    const row = world.mysql.allOrders.find(({ userId }) => userId === 'u1');
    expect(world.mysql.shown(row as never).metadata).to.deep.equal({ cart: '7' });
  });

  it('changes no order without evidence in mode `auto` if a broker was silent', async () => {
    await lost(['u1']);
    world.silent = 'broker-a: no answer';
    const { orders, result } = await resolve('auto');
    expect(countsOf(result)).to.deep.equal({ written: 0, failed: 0, recorded: 0, left: 1 });
    expect(orders[0]?.note).to.include('broker-a: no answer');
    expect(world.mysql.allOrders).to.deep.equal([]);
    expect(world.audits, 'nothing was done').to.deep.equal([]);
    expect((await resolve('write')).words).to.deep.equal(['u1 written']);
  });

  it('shows in a dry run what it would do, and changes nothing', async () => {
    await lost(['u1']);
    const { words, result } = await resolve('write', { dryRun: true });
    expect([words, countsOf(result)]).to.deep.equal([['u1 written'], { written: 1, failed: 0, recorded: 0, left: 0 }]);
    expect([world.mysql.allOrders, world.audits, stored().sold]).to.deep.equal([[], [], 0]);
  });

  it('writes the audit log before the change, with order ids but no buyer', async () => {
    const { ids } = await lost(['u1']);
    world.mysql.breakNext('write_fails');
    await resolve('write').catch(() => undefined);
    expect(world.audits).to.deep.equal([
      {
        actor: 'ann',
        action: 'orders.resolved',
        subject: `sale:${sale.saleId}`,
        before: null,
        after: { mode: 'write', does: 'write', orders: ids },
      },
    ]);
    expect((await resolve('write')).words, 'the rest is done by the next call').to.deep.equal(['u1 written']);
  });

  it('fails a purchase that lost its units before it had an order', async () => {
    sale = await world.openSale({ stock: 1 });
    await world.work(await world.deducted(sale, ['u1']));
    const late = await world.deducted(await world.openSale(), ['u9']);
    const older = { ...late, saleId: sale.saleId, body: late.body.replace(late.saleId, sale.saleId) };
    await world.store.reacquire(older, 1, new Set());
    await world.store.park(older);
    expect((await resolve('write')).words).to.deep.equal(['u9 failed units_lost']);
    expect(await world.found(sale.saleId)).to.deep.equal([]);
  });

  it('fails the second order of a buyer in a sale with a limit of one', async () => {
    sale = await world.openSale({ stock: 10, limitPerBuyer: 1 });
    const { ids } = await lost(['u1']);
    const terms = await world.mysql.termsOf([sale.saleId]);
    const other = await world.deducted(await world.openSale(), ['u1/k2']);
    const orders = other.purchases.map((purchase) => ({
      orderId: '77',
      batch: { ...other, saleId: sale.saleId },
      purchase,
      failure: null,
    }));
    await world.mysql.write({ terms, orders, releases: [], oneByOne: new Set(), paymentWindowMs: 1 });
    expect((await resolve('write')).words).to.deep.equal(['u1 failed limit_reached']);
    await world.releaseUnits();
    expect(entry('u1')).to.equal(`released ${ids[0]} 1`);
  });

  it('writes orders in separate transactions if their ids are far apart', async () => {
    await lost(['u1', 'u2', 'u3'], 600);
    expect(await resolve('write').then(({ words }) => words)).to.have.length(3);
    expect(world.audits.map(({ after }) => (after as { orders: string[] }).orders.length)).to.deep.equal([2, 1]);
  });

  it('does not touch the orders if the sale was rebuilt after they were read', async () => {
    await lost(['u1']);
    world.read.beforeEntriesRead = () => world.mysql.putSale({ ...stored(), epoch: sale.epoch + 1 });
    const { result, orders } = await resolve('write');
    expect(countsOf(result)).to.deep.include({ left: 1, written: 0 });
    expect(orders[0]?.note).to.include('run it again');
    expect(world.mysql.allOrders).to.deep.equal([]);
  });

  it('keeps a row of a purchase that was written in the meantime', async () => {
    const { ids } = await lost(['u1']);
    world.mysql.breakNext('write_reply_lost');
    await resolve('write').catch(() => undefined);
    expect(world.mysql.allOrders.map(({ orderId }) => orderId)).to.deep.equal(ids);
    expect((await resolve('fail')).words).to.deep.equal([]);
    expect(stored().sold).to.equal(1);
  });

  it('requests a repair if Redis does not have a closed sale, and says so', async () => {
    await lost(['u1']);
    world.mysql.putSale({ ...stored(), state: 'closed', epoch: 1001 });
    expect((await resolve('write')).result).to.deep.equal({ outcome: 'not_loaded', saleId: sale.saleId });
    expect(await world.repairs.asked(10)).to.deep.equal([sale.saleId]);
  });

  it('handles at most the requested number of orders, and the others in the next run', async () => {
    await lost(['u1', 'u2', 'u3']);
    const { result, words } = await resolve('write', { max: 2 });
    expect([words.length, result.outcome === 'resolved' && result.more]).to.deep.equal([2, true]);
    expect((await resolve('write')).words).to.have.length(1);
  });

  it('returns 409 from the admin route while another run holds the lease of the sale', async () => {
    await lost(['u1']);
    const fake = new FakeServices({ resolveLost: world.resolveLost });
    const server = await startServer(fake);
    const post = (query: string, roles: string[]): request.Test =>
      request(server.operatorsUrl)
        .post(`/admin/v1/reconcile/sales/${sale.saleId}/lost-orders?${query}`)
        .set('authorization', bearer('boss', roles));
    try {
      await post('mode=write', ['operator']).expect(403);
      await post('mode=all', ['admin']).expect(400);
      const dry = await post('mode=write&dryRun=true', ['admin']).expect(200);
      expect(dry.body).to.deep.include({ dryRun: true, more: false, silent: null });
      expect(dry.body.orders[0]).to.include({ userId: 'u1', outcome: 'written' });
      await world.runsRepository.lease(sale.saleId, 'bob-1', 60_000);
      expect((await post('mode=write', ['admin']).expect(409)).body).to.include({ code: 'reconcile_running' });
      await world.runsRepository.free(sale.saleId, 'bob-1');
      expect((await post('mode=write', ['admin']).expect(200)).body.counts).to.include({ written: 1 });
      expect(world.audits.map(({ actor }) => actor)).to.deep.equal(['boss']);
      expect(fake.bugs).to.deep.equal([]);
    } finally {
      await server.stop();
    }
  });
});
