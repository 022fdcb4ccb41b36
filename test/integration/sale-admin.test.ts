import { expect } from 'chai';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

describe('administration of sales over HTTP', () => {
  let api: Program;
  let admin: string;
  const system = useSystem(async ({ programs }) => {
    [api] = await Promise.all([programs.start('api'), programs.start('worker')]);
    admin = buyersOf('1').token('root', ['admin']);
  });

  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
  const brief = (answer: Answer | null): string => `${answer?.status} ${answer?.json.code ?? answer?.json.state}`;
  const post = (path: string, body?: unknown, token = admin): Promise<Answer> =>
    ask(`${api.operatorsUrl}/admin/v1/sales${path}`, { method: 'POST', token, body });
  const newSale = {
    sku: 'desk-1',
    title: 'Ein Ding für 5 €',
    priceCents: 500,
    stock: 3,
    limitPerBuyer: 1,
    opensAt: '2020-01-31T20:00:00Z',
    closesAt: '2090-01-31T20:00:00+01:00',
  };

  it('takes a sale through its whole life', async () => {
    const created = await post('', newSale);
    expect(created.status).to.equal(201);
    const { saleId, ...rest } = created.json;
    expect(created.headers.location).to.equal(`/admin/v1/sales/${String(saleId)}`);
    expect(rest).to.deep.include({
      ...newSale,
      opensAt: '2020-01-31T20:00:00.000Z',
      closesAt: '2090-01-31T19:00:00.000Z',
      state: 'draft',
      sold: 0,
      buckets: 1,
      epoch: 1,
    });
    const buyers = buyersOf(String(saleId));
    const page = async (): Promise<unknown> => (await ask(`${api.url}/v1/sales/${String(saleId)}`)).json.state;
    expect((await buyers.buy('too-soon'))?.json.code, 'a draft is nobody’s business').to.equal('not_found');

    expect(brief(await post(`/${saleId}/open`))).to.equal('409 wrong_state');
    expect(brief(await post(`/${saleId}/warm`))).to.equal('200 warm');
    await until('buyers see it', async () => (await buyers.buy('too-soon'))?.json.code === 'not_open');
    expect(brief(await post(`/${saleId}/open`))).to.equal('200 open');
    expect((await buyers.buy('ann'))?.status).to.equal(202);
    expect(brief(await post(`/${saleId}/pause`))).to.equal('200 paused');
    expect(brief(await buyers.buy('bob'))).to.equal('503 paused');
    await until('its page says so', async () => (await page()) === 'paused');
    expect((await buyers.buy('ann'))?.status, 'a winner gets the same answer').to.be.oneOf([200, 202]);
    expect(brief(await post(`/${saleId}/resume`))).to.equal('200 open');
    expect((await buyers.buy('bob'))?.status).to.equal(202);
    expect(brief(await post(`/${saleId}/close`))).to.equal('200 closed');
    expect(brief(await buyers.buy('cid'))).to.equal('409 closed');
    expect(brief(await post(`/${saleId}/resume`)), 'closed for good').to.equal('409 wrong_state');
    expect(brief(await post(`/${saleId}/close`)), 'a repeat').to.equal('200 closed');

    const figures = await expectInvariants(system.stack, String(saleId), buyers.opLog);
    expect(figures).to.include({ stock: 3, sold: 2, unitsLeft: 1 });
    const shown = await ask(`${api.operatorsUrl}/admin/v1/sales/${String(saleId)}`, { token: admin });
    expect(shown.json).to.include({ saleId, state: 'closed', sold: 2 });
  });
});
