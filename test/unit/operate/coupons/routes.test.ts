import { expect } from 'chai';
import request from 'supertest';
import type { Coupon } from '../../../../src/core/coupon.js';
import type { DeskAnswer, RevokeAnswer } from '../../../../src/operate/coupons/coupon-desk.js';
import { bearer, FakeServices, startServer, type Started } from '../../http/http-harness.js';

const COUPON: Coupon = {
  code: '7KQ2MZP4WX',
  orderId: '98',
  saleId: '7',
  userId: 'u1',
  currency: 'EUR',
  valueCents: null,
  percent: 10,
  minCents: 0,
  state: 'redeemed',
  usedOrderId: null,
  reference: 'shop-1',
  discountCents: null,
  createdAtMs: Date.UTC(2030, 0, 1),
  expiresAtMs: Date.UTC(2030, 0, 31),
  redeemedAtMs: Date.UTC(2030, 0, 2),
};

describe('coupons over HTTP', () => {
  let server: Started;
  let answer: DeskAnswer;
  let revoked: RevokeAnswer;
  const asked: unknown[][] = [];
  before(async () => {
    const coupons = {
      find: async (code: string) => (code === COUPON.code ? COUPON : null),
      list: async (...call: unknown[]) => {
        asked.push(call);
        return [COUPON];
      },
    };
    const couponDesk = {
      redeem: async (...call: unknown[]) => {
        asked.push(call);
        return answer;
      },
      revokeNext: async (...call: unknown[]) => {
        asked.push(call);
        return revoked;
      },
    };
    server = await startServer(new FakeServices({ coupons, couponDesk }));
  });
  beforeEach(() => void asked.splice(0));
  after(() => server.stop());
  const path = '/admin/v1/coupons';
  const get = (rest: string, roles = ['viewer']) =>
    request(server.operatorsUrl).get(`${path}${rest}`).set('authorization', bearer('olga', roles));
  const redeem = (code: string, body: object, roles = ['operator']) =>
    request(server.operatorsUrl).post(`${path}/${code}/redeem`).set('authorization', bearer('olga', roles)).send(body);

  it('lists the coupons of the buyer of the token, without the data of the shop', async () => {
    const { body } = await request(server.url)
      .get('/v1/me/coupons?limit=1&after=99')
      .set('authorization', bearer('u1'))
      .expect(200);
    expect(asked).to.deep.equal([[{ userId: 'u1' }, { max: 1, afterOrderId: '99' }]]);
    expect(body.next).to.equal('98');
    expect(body.coupons[0]).to.include({ code: COUPON.code, percent: 10, expiresAt: '2030-01-31T00:00:00.000Z' });
    expect(body.coupons[0]).not.to.have.any.keys('userId', 'reference');
  });

  it('finds and exports coupons by user, sale, order and state', async () => {
    const { body } = await get('?user=u1&sale=7&order=98&state=redeemed').expect(200);
    expect(asked).to.deep.equal([[{ userId: 'u1', saleId: '7', orderId: '98', state: 'redeemed' }, { max: 50 }]]);
    expect(body).to.deep.include({ next: null });
    expect(body.coupons[0]).to.include({ userId: 'u1', reference: 'shop-1' });
    expect((await get('/7kq2mzp4wx').expect(200)).body).to.include({ code: COUPON.code });
    expect((await get('/2222222222').expect(404)).body).to.include({ code: 'coupon_not_found' });
    await get('/0OIL1').expect(400);
    const { text } = await get('/export?state=redeemed').expect(200);
    expect(text.split('\n')[1]).to.match(/^7KQ2MZP4WX,u1,7,98,EUR,,10,0,redeemed,,shop-1,,2030-01-01/);
  });

  it('redeems in the name of the operator, and answers 403, 404 or 409', async () => {
    answer = { outcome: 'redeemed', coupon: COUPON };
    expect((await redeem('7kq2mzp4wx', { order: 'shop-1' }).expect(200)).body).to.include({ reference: 'shop-1' });
    expect(asked).to.deep.equal([[COUPON.code, 'shop-1', 'olga']]);
    answer = { outcome: 'refused', why: 'redeemed' };
    expect((await redeem(COUPON.code, { order: 'shop-2' }).expect(409)).body).to.include({
      code: 'coupon_refused',
      detail: 'The coupon was already used.',
    });
    answer = { outcome: 'refused', why: 'not_found' };
    expect((await redeem(COUPON.code, { order: 'shop-2' }).expect(404)).body).to.include({ code: 'coupon_not_found' });
    await redeem(COUPON.code, {}).expect(400);
    await redeem(COUPON.code, { order: 'shop-2' }, ['viewer']).expect(403);
  });

  it('revokes coupons of a sale or by codes for an admin, and answers 404, 400 or 403', async () => {
    const revoke = (body: object, roles = ['admin']) =>
      request(server.operatorsUrl).post(`${path}/revoke`).set('authorization', bearer('olga', roles)).send(body);
    const reason = 'leaked';
    revoked = { outcome: 'done', revoked: 500, reserved: 2, next: '99' };
    expect((await revoke({ saleId: '7', reason, after: '98' }).expect(200)).body).to.deep.equal(revoked);
    expect(asked).to.deep.equal([[{ saleId: '7', reason, dryRun: false }, '98', 'olga']]);
    revoked = { outcome: 'not_found', code: '2222222222' };
    const { body } = await revoke({ codes: ['2222222222'], reason, dryRun: true }).expect(404);
    expect(body).to.include({ code: 'coupon_not_found', detail: 'There is no coupon 2222222222.' });
    revoked = { outcome: 'not_found', code: null };
    expect((await revoke({ saleId: '7', reason }).expect(404)).body).to.include({ code: 'not_found' });
    for (const wrong of [
      { reason },
      { saleId: '7' },
      { codes: [], reason },
      { codes: Array(101).fill(COUPON.code), reason },
    ])
      await revoke(wrong).expect(400);
    await revoke({ saleId: '7', reason }, ['operator']).expect(403);
  });
});
