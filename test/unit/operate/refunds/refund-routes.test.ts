import { expect } from 'chai';
import request from 'supertest';
import type {
  RefundFilter,
  RefundPage,
  RefundStore,
  StoredRefund,
  TakeOnOutcome,
} from '../../../../src/operate/refunds/refund-store.js';
import type {
  OrderRefund,
  OrderRefunds,
  RefundAgain,
  RefundTakenOn,
} from '../../../../src/core/ports/order-refunds.js';
import { partial } from '../../../helpers/partial.js';
import { bearer, FakeServices, startServer, type Started } from '../../http/http-harness.js';

const SHARED = {
  refundId: null,
  paymentId: 'pi_3.Mt:1',
  orderId: '99',
  amountCents: 1998,
  reason: 'order_expired',
  state: 'due' as const,
  attempts: 2,
  lastError: 'refused: no',
  followedBy: null,
};
const REFUND: StoredRefund = { ...SHARED, createdAtMs: Date.UTC(2030, 0, 1), updatedAtMs: Date.UTC(2030, 0, 2) };
const SHOWN = { ...SHARED, createdAt: '2030-01-01T00:00:00.000Z', updatedAt: '2030-01-02T00:00:00.000Z' };

const AGAIN: OrderRefund = {
  ...{ refundId: '8', orderId: '99', paymentId: 'p1', key: 'again/7', amountCents: 500, restock: false },
  ...{ reason: 'a new card', actor: 'boss', state: 'due', attempts: 0, lastError: null, followedBy: null },
  createdAtMs: Date.UTC(2030, 0, 1),
};

describe('admin refunds', () => {
  let server: Started;
  let listed: [RefundFilter, RefundPage][];
  let takenOn: string[];
  let answer: TakeOnOutcome;
  let reason: string;
  let refundId: string | null;
  let ordered: unknown[][];
  let followed: RefundAgain;
  let taken: RefundTakenOn;
  const admin = bearer('boss', ['admin']);

  beforeEach(async () => {
    [listed, takenOn, reason, refundId, ordered] = [[], [], REFUND.reason, null, []];
    followed = { outcome: 'refunding', refund: AGAIN };
    taken = { outcome: 'done', refund: { ...AGAIN, state: 'refunded' } };
    answer = { outcome: 'done', refund: { ...REFUND, state: 'refunded' } };
    const refunds = partial<RefundStore>({
      list: async (filter: RefundFilter, page: RefundPage): Promise<StoredRefund[]> => {
        listed.push([filter, page]);
        return Array<StoredRefund>(Math.min(page.max, 2)).fill({ ...REFUND, reason, refundId });
      },
      takeOn: async (paymentId: string, actor: string): Promise<TakeOnOutcome> => {
        takenOn.push(`${paymentId} ${actor}`);
        return answer;
      },
      counts: async () => [{ state: 'failed', refunds: 2, amountCents: 500 }],
    });
    const orderRefunds = partial<OrderRefunds>({
      again: async (...call) => (ordered.push(['again', ...call]), followed),
      takeOnRefund: async (...call) => (ordered.push(['takeOn', ...call]), taken),
    });
    const currenciesOf = async (orderIds: readonly string[]) => new Map(orderIds.map((orderId) => [orderId, 'USD']));
    server = await startServer(new FakeServices({ refunds, orderRefunds, currenciesOf }));
  });
  afterEach(() => server.stop());

  const get = (query: string): request.Test =>
    request(server.operatorsUrl).get(`/admin/v1/refunds${query}`).set('authorization', admin);
  const done = (paymentId: string): request.Test =>
    request(server.operatorsUrl).post(`/admin/v1/refunds/${paymentId}/done`).set('authorization', admin);

  it('lists refunds, and names the start of the next page if the page is full', async () => {
    const listedRefund = { ...SHOWN, currency: 'USD' };
    expect((await get('').expect(200)).body).to.deep.equal({ refunds: [listedRefund, listedRefund], next: null });
    reason = 'wrong_currency';
    expect((await get('?limit=1').expect(200)).body.refunds[0].currency, 'the currency is unknown').to.equal(null);
    listed.pop();
    expect((await get('?state=due&after=pi_3.Mt:1&limit=2').expect(200)).body.next).to.equal('pi_3.Mt:1');
    expect(listed).to.deep.equal([
      [{}, { max: 50 }],
      [{ state: 'due' }, { max: 2, after: 'pi_3.Mt:1' }],
    ]);
  });

  it('lists the refunds of paid orders of a sale page by page', async () => {
    refundId = '12';
    reason = 'wrong_currency'; // the words of an operator
    const { body } = await get('?state=failed&sale=7&after=order/3&limit=1').expect(200);
    expect(body.next).to.equal('order/12');
    expect(body.refunds[0]).to.include({ refundId: '12', currency: 'USD' });
    expect(listed).to.deep.equal([
      [
        { state: 'failed', saleId: '7' },
        { max: 1, after: 'order/3' },
      ],
    ]);
  });

  it('counts the refunds of a sale by state', async () => {
    const sent = request(server.operatorsUrl).get('/admin/v1/sales/7/refunds').set('authorization', admin);
    expect((await sent.expect(200)).body).to.deep.equal({
      states: [{ state: 'failed', refunds: 2, amountCents: 500 }],
    });
  });

  const post = (path: string, body: object, authorization = admin): request.Test =>
    request(server.operatorsUrl).post(`/admin/v1/order-refunds/${path}`).set('authorization', authorization).send(body);

  it('retries or claims a refund with the reason and the name of the caller', async () => {
    const retried = await post('7/retry', { reason: ' a new card ' }).expect(200);
    expect(retried.body).to.deep.include({ outcome: 'refunding' });
    expect(retried.body.refund).to.include({ refundId: '8', state: 'due', createdAt: '2030-01-01T00:00:00.000Z' });
    const claimed = await post('7/done', { reason: 'by bank' }).expect(200);
    expect(claimed.body.refund).to.include({ refundId: '8', state: 'refunded' });
    expect(ordered).to.deep.equal([
      ['again', '7', 'a new card', 'boss'],
      ['takeOn', '7', 'by bank', 'boss'],
    ]);
    for (const path of ['7/retry', '7/done']) {
      await post(path, {}).expect(400);
      await post(path, { reason: 'x' }, bearer('eve', ['operator'])).expect(403);
    }
    expect(ordered).to.have.length(2);
  });

  it('says why a refund can be neither retried nor claimed', async () => {
    for (const [answer, says] of [
      [{ outcome: 'in_progress', refund: AGAIN }, 'under way'],
      [{ outcome: 'refund_failed', refund: AGAIN }, 'refund 8, which failed too'],
      [{ outcome: 'wrong_state', state: 'disputed' }, 'is disputed'],
      [{ outcome: 'too_much', leftCents: 1 }, 'Less than that is left'],
      [{ outcome: 'sale_closed' }, 'without restock'],
    ] as const) {
      followed = taken = answer;
      for (const path of ['7/retry', '7/done']) {
        const { body } = await post(path, { reason: 'x' }).expect(409);
        expect(body.detail, `${path} ${answer.outcome}`).to.contain(says);
      }
    }
    taken = { outcome: 'already_refunded' };
    expect((await post('7/done', { reason: 'x' }).expect(409)).body.detail).to.contain('Pay nothing');
    taken = { outcome: 'being_asked' };
    expect((await post('7/done', { reason: 'x' }).expect(409)).body.detail).to.contain('try again in a minute');
    followed = taken = { outcome: 'not_found' };
    for (const path of ['7/retry', '7/done']) {
      expect((await post(path, { reason: 'x' }).expect(404)).body.code).to.equal('refund_not_found');
    }
  });

  it("claims a due refund in the caller's name", async () => {
    const { body } = await done('pi_3.Mt:1').expect(200);
    expect(body).to.deep.equal({ outcome: 'done', refund: { ...SHOWN, state: 'refunded' } });
    expect(takenOn).to.deep.equal(['pi_3.Mt:1 boss']);
  });

  it('returns 409 for a completed refund and 404 for an unknown refund', async () => {
    answer = { outcome: 'already_refunded', refund: REFUND };
    const { body } = await done('p1').expect(409);
    expect(body).to.include({ code: 'wrong_state', retryable: false });
    expect(body.detail).to.contain('Pay nothing');
    answer = { outcome: 'not_found' };
    expect((await done('p1').expect(404)).body.code).to.equal('refund_not_found');
  });

  it('returns 400 and names the field if a value is wrong [S6]', async () => {
    for (const [field, query] of [
      ['state', 'state=paid'],
      ['after', 'after=a%20b'],
      ['limit', 'limit=0'],
      ['who', 'who=x'],
    ]) {
      const { body } = await get(`?${query}`).expect(400);
      expect(body.errors.map((error: { field: string }) => error.field)).to.deep.equal([field]);
    }
    await done('a%20b').expect(400);
    expect([listed, takenOn]).to.deep.equal([[], []]);
  });
});
