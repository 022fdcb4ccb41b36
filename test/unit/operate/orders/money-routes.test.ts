import { expect } from 'chai';
import request from 'supertest';
import type { OrderRefund, OrderRefunds, RefundOrdered, VoidAnswer } from '../../../../src/core/ports/order-refunds.js';
import type { OrderSearch } from '../../../../src/core/ports/order-search.js';
import { partial } from '../../../helpers/partial.js';
import { bearer, FakeServices, ORDER, startServer, type Started } from '../../http/http-harness.js';

const REFUND: OrderRefund = {
  ...{ refundId: '7', orderId: '99', paymentId: 'p1', key: 'k1', amountCents: 500, restock: false },
  ...{ reason: 'a scratch', actor: 'boss', state: 'due', attempts: 0, lastError: null, followedBy: null },
  createdAtMs: Date.UTC(2030, 0, 1),
};

describe('admin routes for the money of orders', () => {
  let server: Started;
  let asked: unknown[][];
  let cancelled: Awaited<ReturnType<OrderRefunds['cancel']>>;
  let ordered: RefundOrdered;
  let voided: VoidAnswer;

  beforeEach(async () => {
    asked = [];
    cancelled = 'cancelled';
    ordered = { outcome: 'refunding', refund: REFUND };
    voided = { outcome: 'done', cancelled: 3, refunding: 0, refundCents: 0, next: 'paid.0-0' };
    const orderRefunds = partial<OrderRefunds>({
      cancel: async (...call) => (asked.push(call), cancelled),
      order: async (...call) => (asked.push(call), ordered),
      refundsOf: async (...call) => (asked.push(call), [REFUND]),
      voidNext: async (...call) => (asked.push(call), voided),
    });
    const order = { ...ORDER, state: 'cancelled' as const };
    const orderSearch = partial<OrderSearch>({ detailsOf: async () => new Map() });
    server = await startServer(new FakeServices({ orderRefunds, orderSearch, findOrder: async () => order }));
  });
  afterEach(() => server.stop());

  const post = (path: string, body: object, roles = ['admin']) =>
    request(server.operatorsUrl).post(`/admin/v1${path}`).set('authorization', bearer('boss', roles)).send(body);
  const refund = (body: object, key?: string) => {
    const sent = post('/orders/99/refunds', { reason: 'a scratch', ...body });
    return key === undefined ? sent : sent.set('idempotency-key', key);
  };
  const detailOf = async (sent: request.Test, status: number): Promise<string> =>
    ((await sent.expect(status)).body as { detail: string }).detail;

  it('cancels an unpaid order for an operator, with the reason and the name of the caller', async () => {
    const { body } = await post('/orders/99/cancel', { reason: ' a call ' }, ['operator']).expect(200);
    expect(body).to.include({ orderId: '99', state: 'cancelled' });
    expect(asked).to.deep.equal([['99', 'a call', 'boss']]);
    cancelled = { state: 'paid' };
    expect(await detailOf(post('/orders/99/cancel', { reason: 'x' }), 409)).to.equal(
      'Cannot cancel an order that is paid.',
    );
    cancelled = 'not_found';
    await post('/orders/99/cancel', { reason: 'x' }).expect(404);
    await post('/orders/99/cancel', { reason: ' ' }).expect(400);
    await post('/orders/99/cancel', { reason: 'x' }, ['viewer']).expect(403);
  });

  it('requests a refund of the rest, or of a part under its own key', async () => {
    const { body } = await refund({ restock: true }).expect(200);
    const { createdAtMs: _, ...shown } = REFUND;
    expect(body).to.deep.equal({
      outcome: 'refunding',
      refund: { ...shown, createdAt: '2030-01-01T00:00:00.000Z' },
    });
    await refund({ amountCents: 500 }, 'k1').expect(200);
    expect(asked).to.deep.equal([
      ['99', { restock: true, reason: 'a scratch' }, 'boss'],
      ['99', { restock: false, reason: 'a scratch', amountCents: 500, key: 'k1' }, 'boss'],
    ]);
  });

  it('refuses a partial refund without a key, a bad key, a bad amount, and an operator', async () => {
    expect(await detailOf(refund({ amountCents: 500 }), 400)).to.contain('Idempotency-Key');
    await refund({}, 'a b').expect(400);
    for (const amountCents of [0, -1, 1.5, '5']) await refund({ amountCents }, 'k1').expect(400);
    await post('/orders/99/refunds', { reason: 'x' }, ['operator']).expect(403);
    expect(asked).to.deep.equal([]);
  });

  it('says why no refund was requested', async () => {
    for (const [answer, status, says] of [
      [{ outcome: 'in_progress', refund: REFUND }, 409, 'under way'],
      [{ outcome: 'refund_failed', refund: { ...REFUND, lastError: 'refused: no' } }, 409, 'refused: no'],
      [{ outcome: 'wrong_state', state: 'expired' }, 409, 'is expired'],
      [{ outcome: 'too_much', leftCents: 298 }, 409, '2.98 EUR'],
      [{ outcome: 'sale_closed' }, 409, 'without restock'],
      [{ outcome: 'key_conflict' }, 422, 'already used'],
      [{ outcome: 'not_found' }, 404, ''],
    ] as const) {
      ordered = answer;
      expect(await detailOf(refund({}), status), answer.outcome).to.contain(says);
    }
  });

  it('lists the refunds of an order', async () => {
    const sent = request(server.operatorsUrl).get('/admin/v1/orders/99/refunds');
    const { body } = await sent.set('authorization', bearer('eve', ['viewer'])).expect(200);
    expect((body as { refunds: unknown[] }).refunds).to.have.length(1);
  });

  it('voids a sale step by step, and refuses an open sale or an unknown place', async () => {
    const wish = { unpaid: true, reason: 'wrong price' };
    expect((await post('/sales/7/void', { ...wish, after: 'unpaid.0-0' }).expect(200)).body).to.deep.equal(voided);
    expect(asked).to.deep.equal([['7', 'unpaid.0-0', { ...wish, refundAll: false, dryRun: false }, 'boss']]);
    voided = { outcome: 'sale_open' };
    expect(await detailOf(post('/sales/7/void', wish), 409)).to.contain('Pause or close');
    voided = { outcome: 'no_place' };
    await post('/sales/7/void', wish).expect(400);
    voided = { outcome: 'not_found' };
    await post('/sales/7/void', wish).expect(404);
    await post('/sales/7/void', { reason: 'x' }).expect(400);
    await post('/sales/7/void', wish, ['operator']).expect(403);
  });
});
