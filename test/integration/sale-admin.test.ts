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
  const create = async (): Promise<string> => String((await post('', newSale)).json.saleId);

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
    expect((await buyers.buy('too-soon'))?.json.code, 'a draft is not public').to.equal('not_found');

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

  it('changes nothing when a sale is warmed twice, and never returns sold units', async () => {
    const saleId = await create();
    const buyers = buyersOf(saleId);
    const unitsLeft = async (): Promise<unknown> =>
      (await system.stack.audit.store.snapshot({ saleId, bucket: 0 }))?.unitsLeft;
    expect(brief(await post(`/${saleId}/warm`))).to.equal('200 warm');
    expect(brief(await post(`/${saleId}/warm`))).to.equal('200 warm');
    expect(await unitsLeft()).to.equal(3);

    await post(`/${saleId}/open`);
    expect((await buyers.buy('ann'))?.status).to.equal(202);
    expect(brief(await post(`/${saleId}/warm`))).to.equal('409 wrong_state');
    // even a row in MySQL that says `warm` again must not restore units
    await system.stack.mysql.execute("UPDATE sales SET state = 'warm' WHERE id = ?", [saleId]);
    expect(brief(await post(`/${saleId}/warm`))).to.equal('200 warm');
    expect(await unitsLeft()).to.equal(2);
    await expectInvariants(system.stack, saleId, buyers.opLog);
  });

  it('refuses callers without the role [S5]', async () => {
    const saleId = await create();
    for (const [path, body] of [['', newSale] as const, [`/${saleId}/warm`] as const]) {
      const nobody = await ask(`${api.operatorsUrl}/admin/v1/sales${path}`, { method: 'POST', body });
      expect(brief(nobody)).to.equal('401 unauthorized');
      expect(nobody.headers['www-authenticate']).to.match(/^Bearer/);
      expect(brief(await post(path, body, buyersOf(saleId).token('ann')))).to.equal('403 role_needed');
      expect(brief(await post(path, body, buyersOf(saleId).token('ann', ['Admin'])))).to.equal('403 role_needed');
    }
    const [header, payload] = admin.split('.') as [string, string];
    const unsigned = Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url');
    for (const forged of [`${unsigned}.${payload}.`, `${header}.${payload}.AAAA`]) {
      expect(brief(await post(`/${saleId}/warm`, undefined, forged))).to.equal('401 unauthorized');
    }
    expect((await system.stack.admin.show(saleId))?.state, 'nothing moved').to.equal('draft');
  });

  it('names every wrong field', async () => {
    const bad = await post('', { ...newSale, stock: 0, closesAt: 'never', colour: 'red' });
    expect(brief(bad)).to.equal('400 bad_request');
    const fields = (bad.json.errors as { field: string }[]).map(({ field }) => field);
    expect(fields).to.have.members(['stock', 'closesAt', 'colour']);
    expect(brief(await post('/999999999/warm'))).to.equal('404 not_found');
    expect(brief(await post('/x/warm'))).to.equal('400 bad_request');
  });
});
