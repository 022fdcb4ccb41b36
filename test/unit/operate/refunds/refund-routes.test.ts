import { expect } from 'chai';
import request from 'supertest';
import type {
  RefundFilter,
  RefundPage,
  StoredRefund,
  TakeOnOutcome,
} from '../../../../src/operate/refunds/refund-store.js';
import { bearer, FakeServices, startServer, type Started } from '../../http/http-harness.js';

const SHARED = {
  paymentId: 'pi_3.Mt:1',
  orderId: '99',
  amountCents: 1998,
  reason: 'order_expired',
  state: 'due' as const,
  attempts: 2,
  lastError: 'refused: no',
};
const REFUND: StoredRefund = { ...SHARED, createdAtMs: Date.UTC(2030, 0, 1), updatedAtMs: Date.UTC(2030, 0, 2) };
const SHOWN = { ...SHARED, createdAt: '2030-01-01T00:00:00.000Z', updatedAt: '2030-01-02T00:00:00.000Z' };

describe('admin refunds', () => {
  let server: Started;
  let listed: [RefundFilter, RefundPage][];
  let takenOn: string[];
  let answer: TakeOnOutcome;
  let reason: string;
  const admin = bearer('boss', ['admin']);

  beforeEach(async () => {
    [listed, takenOn, reason] = [[], [], REFUND.reason];
    answer = { outcome: 'done', refund: { ...REFUND, state: 'refunded' } };
    const refunds = {
      list: async (filter: RefundFilter, page: RefundPage): Promise<StoredRefund[]> => {
        listed.push([filter, page]);
        return Array<StoredRefund>(Math.min(page.max, 2)).fill({ ...REFUND, reason });
      },
      takeOn: async (paymentId: string, actor: string): Promise<TakeOnOutcome> => {
        takenOn.push(`${paymentId} ${actor}`);
        return answer;
      },
    };
    const currenciesOf = async (orderIds: readonly string[]) => new Map(orderIds.map((orderId) => [orderId, 'USD']));
    server = await startServer(new FakeServices({ refunds, currenciesOf }));
  });
  afterEach(() => server.stop());

  const get = (query: string): request.Test =>
    request(server.operatorsUrl).get(`/admin/v1/refunds${query}`).set('authorization', admin);
  const done = (paymentId: string): request.Test =>
    request(server.operatorsUrl).post(`/admin/v1/refunds/${paymentId}/done`).set('authorization', admin);

  it('lists refunds and names the start of the next page when the page is full', async () => {
    const listedRefund = { ...SHOWN, currency: 'USD' };
    expect((await get('').expect(200)).body).to.deep.equal({ refunds: [listedRefund, listedRefund], next: null });
    reason = 'wrong_currency';
    expect((await get('?limit=1').expect(200)).body.refunds[0].currency, 'that of the payment is not kept').to.equal(
      null,
    );
    listed.pop();
    expect((await get('?state=due&after=pi_3.Mt:1&limit=2').expect(200)).body.next).to.equal('pi_3.Mt:1');
    expect(listed).to.deep.equal([
      [{}, { max: 50 }],
      [{ state: 'due' }, { max: 2, afterPaymentId: 'pi_3.Mt:1' }],
    ]);
  });

  it('takes on a due refund in the name of the caller', async () => {
    const { body } = await done('pi_3.Mt:1').expect(200);
    expect(body).to.deep.equal({ outcome: 'done', refund: { ...SHOWN, state: 'refunded' } });
    expect(takenOn).to.deep.equal(['pi_3.Mt:1 boss']);
  });

  it('returns 409 for a completed refund, so that it is not paid twice, and 404 for an unknown refund', async () => {
    answer = { outcome: 'already_refunded', refund: REFUND };
    const { body } = await done('p1').expect(409);
    expect(body).to.include({ code: 'wrong_state', retryable: false });
    expect(body.detail).to.contain('Pay nothing');
    answer = { outcome: 'not_found' };
    expect((await done('p1').expect(404)).body.code).to.equal('refund_not_found');
  });

  it('returns 400 and names the field when a value is wrong [S6]', async () => {
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
