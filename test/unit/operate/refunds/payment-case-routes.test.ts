import { expect } from 'chai';
import request from 'supertest';
import { MemoryPaymentCases } from '../../../helpers/memory/memory-payment-cases.js';
import { AT_MS, bearer, FakeServices, startServer, type Started } from '../../http/http-harness.js';
import { partial } from '../../../helpers/partial.js';

const FOUND = { paymentId: 'pi_1', orderId: '99', amountCents: 1998, currency: 'EUR', detail: 'lost_or_stolen_card' };

describe('admin payment cases', () => {
  let server: Started;
  let cases: MemoryPaymentCases;
  const admin = bearer('boss', ['admin']);
  const path = '/admin/v1/payment-cases';

  beforeEach(async () => {
    cases = new MemoryPaymentCases({ payments: new Map() }, partial({ nowMs: () => AT_MS }));
    for (const subject of ['re_1', 're_2', 're_3']) await cases.note({ ...FOUND, kind: 'refund_failed', subject });
    server = await startServer(new FakeServices({ paymentCases: cases }));
  });
  afterEach(() => server.stop());
  const get = (query: string) => request(server.operatorsUrl).get(`${path}${query}`).set('authorization', admin);

  it('lists cases page by page, by state, with times in ISO 8601', async () => {
    const { body } = await get('?limit=2').expect(200);
    const times = { createdAt: new Date(AT_MS).toISOString(), updatedAt: new Date(AT_MS).toISOString() };
    expect(body.cases[0]).to.deep.equal({
      ...{ caseId: '1', kind: 'refund_failed', subject: 're_1', state: 'open' },
      ...FOUND,
      ...times,
    });
    expect(body).to.include({ next: '2' });
    expect((await get('?after=2').expect(200)).body.cases).to.have.length(1);
    expect((await get('?state=closed').expect(200)).body.cases).to.deep.equal([]);
    await get('?state=due').expect(400);
    await get('?after=1x').expect(400);
  });

  it('closes a case in the name of the operator, and returns 404 for an unknown case', async () => {
    const close = (caseId: string) =>
      request(server.operatorsUrl).post(`${path}/${caseId}/close`).set('authorization', admin);
    for (let i = 0; i < 2; i++)
      expect((await close('2').expect(200)).body).to.include({ caseId: '2', state: 'closed' });
    expect(cases.audited.map(({ actor, subject }) => [actor, subject])).to.deep.equal([['boss', 'payment_case:2']]);
    expect((await close('9').expect(404)).body).to.include({ code: 'case_not_found' });
  });
});
