import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { expectInvariants } from '../helpers/invariants.js';
import type { Program } from '../chaos/harness/programs.js';
import { runCommand, type CommandEnd } from '../helpers/command.js';
import { openSale } from '../chaos/harness/sales.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

describe('sale administration over HTTP', () => {
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

  describe('by command', () => {
    let folder: string;
    before(() => (folder = mkdtempSync(join(tmpdir(), 'sales-'))));
    after(() => rmSync(folder, { recursive: true }));
    const sale = (...args: string[]): Promise<CommandEnd> => runCommand(['sale', ...args], system.stack.env);

    it('resumes a paused sale, and warns when it moves a sale that Redis has lost', async () => {
      const { saleId } = await openSale(system.stack);
      expect((await sale('pause', saleId)).code).to.equal(0);
      const resumed = await sale('resume', saleId, '--json');
      expect([resumed.code, resumed.lines[0]?.state, resumed.stderr]).to.deep.equal([0, 'open', '']);
      expect((await sale('resume', saleId)).stderr).to.equal(`Sale ${saleId} was open already.\n`);
      await system.stack.redis.redis.del(bucketKeys({ saleId, bucket: 0 }).sale);
      const paused = await sale('pause', saleId, '--json');
      expect([paused.code, paused.lines[0]?.state]).to.deep.equal([0, 'paused']);
      expect(paused.stderr).to.contain(`Sale ${saleId} is paused.`).and.contain('nobody can buy');
      expect((await post(`/${saleId}/pause`)).json).to.include({ state: 'paused', inRepair: true });
    });

    it('prints the id of each imported sale, and exits with 1 on an overlap and 2 on a wrong file', async () => {
      const sku = `desk-${Date.now()}`;
      const file = join(folder, 'sales.csv');
      const rows = [1, 2].map((nth) => `${sku}-${nth},A desk,100,5,1,2090-01-01T00:00:00Z,2090-01-02T00:00:00Z`);
      writeFileSync(file, ['sku,title,priceCents,stock,limitPerBuyer,opensAt,closesAt', ...rows].join('\n'));
      const imported = await sale('import', file);
      expect(imported.code, imported.stderr).to.equal(0);
      const [first, second, last] = imported.stdout.trimEnd().split('\n');
      const [, line, saleId] = /:(\d+): sale (\d+) \(/.exec(second ?? '') ?? [];
      expect([first?.startsWith(`${file}:2: sale `), line, last]).to.deep.equal([true, '3', '2 sales were created.']);
      expect((await sale('show', String(saleId), '--json')).lines[0]?.sku).to.equal(`${sku}-2`);

      const again = await sale('import', file, '--json');
      expect([again.code, again.lines.map((one) => one.line)]).to.deep.equal([1, [2, 3]]);
      writeFileSync(file, 'sku,title\npen,A pen');
      expect((await sale('import', file)).code).to.equal(2);
      expect((await sale('import', join(folder, 'missing.csv'))).code).to.equal(2);

      writeFileSync(
        file,
        `sku,title,priceCents,stock,limitPerBuyer,opensAt,closesAt\n${rows[0]?.replace('-1,', '-3,')}`,
      );
      const json = await sale('import', file, '--json');
      expect(json.lines[0])
        .to.include({ line: 2, sku: `${sku}-3` })
        .and.have.property('saleId');
    });

    it('exits with 1 if an edit is not allowed now, and with 2 if an edit is always wrong', async () => {
      const { saleId } = await openSale(system.stack, { stock: 5 });
      expect((await sale('edit', saleId, '--price-cents', '200')).code, 'not a draft').to.equal(1);
      expect((await sale('edit', saleId, '--closes-at', '-1h')).code, 'in the past').to.equal(1);
      expect((await sale('edit', saleId, '--stock', '0')).code).to.equal(2);
      expect((await sale('edit', saleId, '--stock', '6')).code).to.equal(0);
    });
  });
});
