import { expect } from 'chai';
import type { SaleFilter } from '../../src/core/ports/sale-repository.js';
import { newSale, WORLDS, type RepositoryWorld } from './repository-worlds.js';
import { onEachWorld } from './on-each-world.js';

onEachWorld<RepositoryWorld>('contract SaleRepository', WORLDS, (world) => {
  it('create: stores a draft with every field unchanged, with times in milliseconds', async () => {
    const wanted = newSale({
      title: "Ünïcode 'quoted' 🎉 \\",
      opensAtMs: 1_800_000_000_123,
      priceCents: 4_294_967_295,
    });
    const created = await world.sales.create(wanted);
    const { saleId, ...rest } = created;
    expect(rest).to.deep.equal({ ...wanted, sold: 0, state: 'draft', epoch: 1, retiredAtMs: null });
    expect(await world.sales.find(saleId)).to.deep.equal(created);
    expect(await world.sales.find('999999999999999999')).to.equal(null);
  });

  it('list: returns at most max sales, newest first, by state', async () => {
    const first = await world.sales.create(newSale());
    const second = await world.sales.create(newSale());
    await world.sales.move(first.saleId, 'warm');

    const ids = (await world.sales.list({ max: 1000 })).map(({ saleId }) => saleId);
    expect(ids.indexOf(second.saleId)).to.be.lessThan(ids.indexOf(first.saleId));
    const warm = (await world.sales.list({ states: ['warm'], max: 1000 })).map(({ saleId }) => saleId);
    expect(warm).to.include(first.saleId).and.not.include(second.saleId);
    expect(await world.sales.list({ max: 1 })).to.have.length(1);
    const far = Date.now() + 10 * 365 * 24 * 3_600_000;
    const last = await world.sales.create(newSale({ closesAtMs: far + 1 }));
    await world.sales.create(newSale({ closesAtMs: far }));
    const [closedLast] = await world.sales.list({ states: ['draft'], max: 1, order: 'closed_last' });
    expect(closedLast?.closesAtMs).to.be.at.least(last.closesAtMs);
    const ends = (await world.sales.list({ max: 50, order: 'closed_last' })).map(({ closesAtMs }) => closesAtMs);
    expect(ends).to.deep.equal([...ends].sort((a, b) => b - a));
    expect(await world.sales.list({ states: [], max: 10 })).to.deep.equal([]);
  });

  it('newestId: returns the highest id of all sales, including drafts', async () => {
    const { saleId } = await world.sales.create(newSale());
    const newest = (await world.sales.newestId()) as string;
    // Other suites may create sales in the same database during this test.
    expect(Number(newest)).to.be.at.least(Number(saleId));
    expect((await world.sales.find(newest))?.saleId).to.equal(newest);
  });

  it('list: returns each sale once by sku, by opening time and page by page', async () => {
    const { sku } = newSale();
    const nowMs = Date.now();
    const made = [];
    for (const minutes of [1, 2, 3]) {
      const opensAtMs = nowMs + minutes * 60_000;
      made.push(await world.sales.create(newSale({ sku, opensAtMs, closesAtMs: opensAtMs + 1000 })));
    }
    const [first, second, third] = made.map(({ saleId }) => saleId);
    const ids = async (filter: Omit<SaleFilter, 'max' | 'sku'>, max = 10): Promise<string[]> =>
      (await world.sales.list({ sku, max, ...filter })).map(({ saleId }) => saleId);
    expect(await ids({})).to.deep.equal([third, second, first]);
    expect(await ids({}, 2)).to.deep.equal([third, second]);
    expect(await ids({ ...(second === undefined ? {} : { beforeId: second }) }, 2)).to.deep.equal([first]);
    expect(await ids({ opensFromMs: nowMs + 120_000 })).to.deep.equal([third, second]);
    expect(await ids({ opensToMs: nowMs + 120_000 }), 'not at its end').to.deep.equal([first]);
    expect((await world.sales.list({ sku: newSale().sku, max: 10 })).length).to.equal(0);
  });

  it('move: allows only the transitions of a sale, and accepts a repeat [I8]', async () => {
    const { saleId } = await world.sales.create(newSale());
    const moved = async (to: 'draft' | 'warm' | 'open' | 'paused' | 'closed'): Promise<unknown[]> => {
      const answer = await world.sales.move(saleId, to);
      return [answer?.sale.state, answer?.outcome];
    };
    expect(await moved('open')).to.deep.equal(['draft', 'refused']);
    expect(await moved('warm')).to.deep.equal(['warm', 'moved']);
    expect(await moved('warm')).to.deep.equal(['warm', 'unchanged']);
    expect(await moved('open')).to.deep.equal(['open', 'moved']);
    expect(await moved('warm')).to.deep.equal(['open', 'refused']);
    expect(await moved('paused')).to.deep.equal(['paused', 'moved']);
    expect(await moved('open')).to.deep.equal(['open', 'moved']);
    expect(await moved('closed')).to.deep.equal(['closed', 'moved']);
    expect(await moved('open')).to.deep.equal(['closed', 'refused']);
    expect(await moved('draft')).to.deep.equal(['closed', 'refused']);
    expect(await world.sales.move('999999999999999999', 'warm')).to.equal(null);
  });

  it('create and move: write an audit row, but not for a repeat or a refused move', async () => {
    const created = await world.sales.create(newSale(), 'ann');
    const { saleId } = created;
    await world.sales.move(saleId, 'open', 'eve'); // A draft cannot open.
    await world.sales.move(saleId, 'warm', 'ann');
    for (const to of ['open', 'open', 'paused', 'open', 'closed'] as const) await world.sales.move(saleId, to, 'bob');
    await world.sales.move(saleId, 'closed');

    const entries = await world.auditOf(`sale:${saleId}`);
    expect(entries[0]).to.deep.include({ actor: 'ann', action: 'sale.created', before: null, after: created });
    const shown = (state: unknown): unknown => (state as { state: string }).state;
    expect(
      entries.slice(1).map(({ actor, action, before, after }) => [actor, action, shown(before), shown(after)]),
    ).to.deep.equal([
      ['ann', 'sale.warmed', 'draft', 'warm'],
      ['bob', 'sale.opened', 'warm', 'open'],
      ['bob', 'sale.paused', 'open', 'paused'],
      ['bob', 'sale.resumed', 'paused', 'open'],
      ['bob', 'sale.closed', 'open', 'closed'],
    ]);
  });
});
