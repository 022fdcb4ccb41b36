import { expect } from 'chai';
import { Buyers, userIds } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale, RECONCILE_ENV } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

const HOUR_MS = 3_600_000;

describe('sales run by operators and by schedule', () => {
  let api: Program;
  let keepers: Program[];
  let admin: string;
  const system = useSystem(async ({ programs }) => {
    const env = { KEEPER_EVERY_MS: '200', ...RECONCILE_ENV };
    [api, ...keepers] = (await Promise.all([
      programs.start('api'),
      programs.start('keeper', { env }),
      programs.start('keeper', { env }),
      programs.start('worker'),
    ])) as [Program, Program, Program, Program];
    keepers = keepers.slice(0, 2);
    admin = buyersOf('1').token('root', ['admin']);
  });

  const buyersOf = (saleId: string): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
  const call = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<Answer> =>
    ask(`${api.operatorsUrl}/admin/v1${path}`, { method, token: admin, body });
  const iso = (fromNowMs: number): string => new Date(Date.now() + fromNowMs).toISOString();
  const newSale = (sku: string, opensMs: number, closesMs: number) => ({
    sku,
    title: 'A thing',
    priceCents: 500,
    currency: 'USD',
    stock: 5,
    limitPerBuyer: 1,
    opensAt: iso(opensMs),
    closesAt: iso(closesMs),
  });
  const stateOf = async (saleId: string): Promise<unknown> => (await call('GET', `/sales/${saleId}`)).json.state;
  const actions = async (saleId: string): Promise<string[]> => {
    const { json } = await call('GET', `/audit?subject=sale:${saleId}`);
    return (json.entries as { actor: string; action: string }[])
      .map(({ actor, action }) => `${actor} ${action}`)
      .reverse();
  };

  it('takes a sale from draft to compared, each step once, although two keepers run', async () => {
    const sku = `by-itself-${Date.now()}`;
    const sale = { ...newSale(sku, 10_000, HOUR_MS), warmBefore: '1h' };
    const created = await call('POST', '/sales', sale);
    expect(created.json).to.include({ state: 'draft', warmBefore: '1h', currency: 'USD' });
    const saleId = String(created.json.saleId);
    const again = await call('POST', '/sales', { ...sale, closesAt: iso(2 * HOUR_MS) });
    expect([again.status, again.json.code]).to.deep.equal([409, 'sale_overlaps']);

    const buyers = buyersOf(saleId);
    await until('it is opened ahead', async () => (await stateOf(saleId)) === 'open');
    expect((await buyers.buy('early'))?.json.code, 'by the clock of Redis it is not open').to.equal('not_open');
    const planned = async (): Promise<unknown> => {
      const { json } = await call('GET', '/sale-plan');
      return (json.sales as { sale: { saleId: string } }[]).find((one) => one.sale.saleId === saleId);
    };
    // Redis opens the sale a moment before MySQL and the APIs
    const isReady = async (): Promise<boolean> => {
      const found = (await planned()) as { status: string; missing: string[] } | undefined;
      return found?.status === 'ready' && found.missing.length === 0;
    };
    await until('the plan has it as ready', isReady);
    await until('buyers get in', async () => (await buyers.buy('ann', { tries: 1 }))?.status === 202);
    expect((await call('PATCH', `/sales/${saleId}`, { closesAt: iso(2_000) })).status).to.equal(200);
    await until('it is closed', async () => (await stateOf(saleId)) === 'closed');
    await until('it is compared', async () => (await actions(saleId)).includes('keeper sale.compared'));
    const byKeepers = (await actions(saleId)).filter((action) => action.startsWith('keeper '));
    expect(byKeepers).to.deep.equal([
      'keeper sale.warmed',
      'keeper sale.opened',
      'keeper sale.closed',
      'keeper sale.compared',
    ]);
    const figures = await expectInvariants(system.stack, saleId, buyers.opLog);
    expect(figures).to.include({ stock: 5, sold: 1, unitsLeft: 4 });
  });

  it('sells each unit once and strands none when stock rises and falls under load', async () => {
    for (const buckets of [1, 3]) {
      const { saleId } = await openSale(system.stack, { stock: 60, buckets });
      const buyers = buyersOf(saleId);
      const rush = buyers.rush(userIds(150), 12, { tries: 5 });
      const stocks: unknown[] = [];
      for (const stock of [80, 70, 90, 85, 100]) {
        const answer = await call('PATCH', `/sales/${saleId}`, { stock });
        stocks.push(answer.json.stock ?? answer.json.code);
      }
      await rush;
      // Redis or MySQL refuses to lower the stock if more than 70 units are sold already
      const refusals = ['units_not_free', 'bad_request'];
      expect(stocks.filter((stock) => typeof stock !== 'number' && !refusals.includes(String(stock)))).to.deep.equal(
        [],
      );
      const { json } = await call('PATCH', `/sales/${saleId}`, { stock: 100 });
      expect(json.stock).to.equal(100);
      await buyers.rush(userIds(120), 12, { tries: 5 });
      // zero is cached for a moment, even while another bucket has a unit for a later buyer
      let late = 0;
      await until('all are sold', async () => {
        const sql = 'SELECT sold FROM sales WHERE id = ?';
        const [row] = await system.stack.mysql.query<{ sold: number }>(sql, [saleId]);
        if (Number(row?.sold) < 100) await buyers.buy(`late-${buckets}-${late++}`, { tries: 1 });
        return Number(row?.sold) === 100;
      });
      const figures = await expectInvariants(system.stack, saleId, buyers.opLog);
      expect(figures).to.include({ stock: 100, sold: 100, unitsLeft: 0 });
      const lower = await call('PATCH', `/sales/${saleId}`, { stock: 99 });
      expect(lower.status, 'all are sold').to.be.oneOf([400, 409]);
    }
  });
});
