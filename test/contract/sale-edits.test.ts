import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { NewSale, Sale, SaleState } from '../../src/core/sale.js';
import type { SaleEdit, SaleEdits } from '../../src/core/ports/sale-edits.js';
import { createReconcileRepository } from '../../src/mysql/reconcile-repository.js';
import { createSaleEdits } from '../../src/mysql/sale-edits.js';
import { MemorySaleEdits } from '../helpers/memory/memory-sale-edits.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import { memoryWorld, mysqlWorld, newSale, systemClock, type RepositoryWorld } from './repository-worlds.js';
import { openSale, STORE_WORLDS, type StoreWorld } from './store-worlds.js';
import { onEachWorld } from './on-each-world.js';

interface World extends RepositoryWorld {
  readonly edits: SaleEdits;
  putSold(saleId: string, sold: number): Promise<void>;
}

const WORLDS = [
  [
    'memory',
    async () => {
      const world = await memoryWorld(systemClock);
      const { repositories } = world;
      const putSold: World['putSold'] = async (saleId, sold) =>
        repositories.putSale({ ...(repositories.saleOf(saleId) as Sale), sold });
      return { ...world, edits: new MemorySaleEdits(repositories, systemClock), putSold };
    },
  ],
  [
    'mysql',
    async () => {
      const world = await mysqlWorld();
      const putSold: World['putSold'] = async (saleId, sold) =>
        void (await world.pool.execute('UPDATE sales SET sold = ? WHERE id = ?', [sold, saleId]));
      return { ...world, edits: createSaleEdits(world.pool), putSold };
    },
  ],
] as const;

onEachWorld<World>('contract SaleEdits', WORLDS, (world) => {
  const fine = () => [];
  async function sale(state: SaleState, parts: Partial<NewSale> = {}): Promise<Sale> {
    const { saleId } = await world.sales.create(newSale(parts));
    const way: SaleState[] = state === 'draft' ? [] : state === 'warm' ? ['warm'] : ['warm', 'open'];
    for (const to of way) await world.sales.move(saleId, to);
    return (await world.sales.find(saleId)) as Sale;
  }
  const begin = async ({ saleId }: Sale, change: Parameters<SaleEdits['begin']>[1]): Promise<SaleEdit> => {
    const begun = await world.edits.begin(saleId, change, 'ann', fine);
    if (begun.outcome !== 'begun' || begun.edit === null) throw new Error(begun.outcome);
    return begun.edit;
  };
  const stockOf = async ({ saleId }: Sale): Promise<number | undefined> => (await world.sales.find(saleId))?.stock;
  const audited = async ({ saleId }: Sale) =>
    (await world.auditOf(`sale:${saleId}`))
      .filter(({ action }) => action === 'sale.edited')
      .map(({ actor, before, after }) => [actor, before, after]);

  it('raises a stock in MySQL at once, but lowers it only when Redis has given up the units', async () => {
    const it = await sale('open', { stock: 10 });
    const up = await begin(it, { stock: 15 });
    expect(up).to.include({ saleId: it.saleId, units: 5, epoch: 1 });
    expect(await stockOf(it)).to.equal(15);
    expect([await world.edits.finish(up), await world.edits.finish(up), await world.edits.refuse(up)]).to.deep.equal([
      'done',
      'done',
      'done',
    ]);
    const down = await begin(it, { stock: 4 });
    expect([down.units, await stockOf(it)]).to.deep.equal([-11, 15]);
    expect([await world.edits.finish(down), await stockOf(it)]).to.deep.equal(['done', 4]);
    expect(BigInt(down.editId) > BigInt(up.editId)).to.equal(true);
    expect(await audited(it)).to.deep.equal([
      ['ann', { stock: 10 }, { stock: 15 }],
      ['ann', { stock: 15 }, { stock: 4 }],
    ]);
  });

  it('refuses to remove units that MySQL has sold, and returns them to Redis by another edit', async () => {
    const it = await sale('open', { stock: 10 });
    const down = await begin(it, { stock: 1 });
    await world.putSold(it.saleId, 2);
    expect([await world.edits.finish(down), await world.edits.finish(down)]).to.deep.equal(['refused', 'refused']);
    const reverse = await world.edits.begin(it.saleId, { title: 'x' }, 'bob', fine);
    expect(reverse).to.have.nested.include({ outcome: 'busy', 'edit.units': 9 });
    expect([await stockOf(it), await audited(it)]).to.deep.equal([10, []]);
  });

  it('accepts an edit by an operator whose name and account are longer than the column', async () => {
    const it = await sale('open', { stock: 10 });
    const begun = await world.edits.begin(it.saleId, { stock: 15 }, `${'a'.repeat(128)} (deploy)`, fine);
    expect(begun.outcome).to.equal('begun');
    expect(await stockOf(it)).to.equal(15);
  });

  it('allows one edit at a time, and returns the unfinished edit to the next caller', async () => {
    const it = await sale('open');
    const first = await begin(it, { stock: 5 });
    expect(await world.edits.begin(it.saleId, { title: 'x' }, 'bob', fine)).to.deep.equal({
      outcome: 'busy',
      edit: first,
    });
    expect(await world.edits.refuse(first)).to.equal('refused');
    expect([await world.edits.finish(first), await stockOf(it), await audited(it)]).to.deep.equal(['refused', 10, []]);
    const both = await Promise.all([1, 2].map(() => world.edits.begin(it.saleId, { stock: 5 }, 'bob', fine)));
    expect(both.map(({ outcome }) => outcome).sort()).to.deep.equal(['begun', 'busy']);
  });

  it('takes units for an older epoch again, but does not add units again', async () => {
    const it = await sale('open');
    const down = await begin(it, { stock: 5 });
    await world.raiseEpoch(it.saleId);
    expect([await world.edits.finish(down), await stockOf(it)]).to.deep.equal(['moved', 10]);
    const taken = await world.edits.takeUp(down);
    expect(taken).to.deep.equal({ ...down, epoch: 2 });
    expect(await world.edits.refuse(down), 'by a process that has not seen the rebuild').to.equal('moved');
    expect([await world.edits.finish(taken as SaleEdit), await stockOf(it)]).to.deep.equal(['done', 5]);
    expect(await world.edits.takeUp(down)).to.equal(null);
    const up = await begin(it, { stock: 7 });
    await world.raiseEpoch(it.saleId);
    expect([await world.edits.finish(up), await stockOf(it)]).to.deep.equal(['done', 7]);
  });

  it('edits a draft at once, and begins an epoch for changes that Redis must load', async () => {
    const it = await sale('draft');
    const closesAtMs = it.closesAtMs + 1000;
    for (const [change, epoch] of [
      [{ title: 'A "better" ☕' }, 1],
      [{ priceCents: 7 }, 1],
      [{ stock: 5 }, 2],
      [{ closesAtMs }, 3],
      [{ paymentWindowMs: 60_000 }, 3],
      [{ stock: 5, closesAtMs, title: 'A "better" ☕' }, 3],
    ] as const) {
      const begun = await world.edits.begin(it.saleId, change, 'ann', fine);
      expect(begun).to.deep.include({ outcome: 'begun', edit: null });
      expect(await world.sales.find(it.saleId)).to.deep.include({ ...change, epoch });
      expect('sale' in begun && begun.sale).to.deep.equal(await world.sales.find(it.saleId));
    }
    expect(await audited(it)).to.have.length(5);
  });

  it('changes nothing on a forbidden edit, and checks the calendar without the sale itself', async () => {
    const sku = `sku-${randomBytes(4).toString('hex')}`;
    const [it, other] = [await sale('open', { sku }), await sale('draft', { sku })];
    const errors = [{ field: 'closesAt', message: 'no.' }];
    const seen: unknown[] = [];
    const change = { closesAtMs: it.closesAtMs + 1 };
    const begun = await world.edits.begin(it.saleId, change, 'ann', (found, calendar) => {
      seen.push(
        found,
        calendar.map(({ saleId }) => saleId),
      );
      return errors;
    });
    expect(begun).to.deep.equal({ outcome: 'wrong', errors });
    expect(seen).to.deep.equal([it, [other.saleId]]);
    const refused = await world.edits.begin(it.saleId, { title: 'x' }, 'ann', () => 'wrong_state');
    expect(refused).to.deep.equal({ outcome: 'wrong_state', sale: it });
    expect(await world.edits.begin('999999999999999999', { title: 'x' }, 'ann', fine)).to.deep.equal({
      outcome: 'not_found',
    });
    expect(await world.sales.find(it.saleId)).to.deep.equal(it);
  });

  it('unfinished: returns old edits that have not ended', async () => {
    const it = await sale('open');
    const edit = await begin(it, { stock: 20 });
    const ids = async (afterMs: number) => (await world.edits.unfinished(afterMs, 100_000)).map(({ editId }) => editId);
    expect(await ids(60_000)).not.to.include(edit.editId);
    expect(await ids(-60_000)).to.include(edit.editId);
    await world.edits.finish(edit);
    expect(await ids(-60_000)).not.to.include(edit.editId);
  });

  it('remove: removes a draft, records its last state in the audit log, and keeps other sales', async () => {
    const [draft, warm] = [await sale('draft'), await sale('warm')];
    expect(await world.edits.remove(draft.saleId, 'ann')).to.deep.equal(draft);
    expect(await world.sales.find(draft.saleId)).to.equal(null);
    expect((await world.auditOf(`sale:${draft.saleId}`)).at(-1)).to.deep.include({
      actor: 'ann',
      action: 'sale.deleted',
      before: draft,
      after: null,
    });
    expect(await world.edits.remove(draft.saleId, 'ann')).to.equal(null);
    expect(await world.edits.remove(warm.saleId, 'ann')).to.deep.equal(warm);
    expect(await world.sales.find(warm.saleId)).to.deep.equal(warm);
  });
});

describe('contract ReconcileRepository on mysql: restock', () => {
  it('shows a running edit, and afterwards its result', async () => {
    const world = await mysqlWorld();
    const edits = createSaleEdits(world.pool);
    const reconcile = createReconcileRepository(world.pool);
    const { saleId } = await world.sales.create(newSale({ stock: 10 }));
    await world.sales.move(saleId, 'warm');
    expect(await reconcile.isRestocked({ saleId, stock: 10 })).to.equal(false);
    const begun = await edits.begin(saleId, { stock: 4 }, 'ann', () => []);
    expect(await reconcile.isRestocked({ saleId, stock: 10 })).to.equal(true);
    if (begun.outcome === 'begun' && begun.edit !== null) await edits.finish(begun.edit);
    expect(await reconcile.isRestocked({ saleId, stock: 10 })).to.equal(true);
    expect(await reconcile.isRestocked({ saleId, stock: 4 })).to.equal(false);
    await world.close();
  });
});

onEachWorld<StoreWorld>('contract SaleStore.edit', STORE_WORLDS, (world) => {
  const edit = (sale: Sale, editId: number, units: number, parts: { epoch?: number; isLast?: boolean } = {}) => {
    const { saleId, closesAtMs } = sale;
    const { epoch = 1, isLast = false } = parts;
    const asked = { editId: String(editId), saleId, units, epoch, closesAtMs: closesAtMs + editId, isLast };
    return world.edits.edit({ saleId, bucket: 0 }, asked);
  };
  const read = async ({ saleId, closesAtMs }: Sale) => {
    const found = await world.stock.readSale({ saleId, bucket: 0 });
    return found && [found.unitsLeft, found.closesAtMs - closesAtMs];
  };

  it('changes units and the end of the window once per edit, while the sale sells', async () => {
    const sale = await openSale(world, { stock: 10 });
    expect([await edit(sale, 7, 5), await edit(sale, 7, 5), await read(sale)]).to.deep.equal(['done', 'done', [15, 7]]);
    await world.stock.deduct(batchOf(sale, purchasesOf('u1*2')));
    expect([await edit(sale, 9, -13), await edit(sale, 9, -13), await read(sale)]).to.deep.equal([
      'done',
      'done',
      [0, 9],
    ]);
    expect([await edit(sale, 7, 5), await read(sale)], 'a late copy of an earlier edit').to.deep.equal([
      'done',
      [0, 9],
    ]);
  });

  it('takes all units or none, and refuses an edit for good after its final refusal', async () => {
    const sale = await openSale(world, { stock: 3 });
    expect([await edit(sale, 1, -4), await read(sale)]).to.deep.equal(['not_enough', [3, 0]]);
    expect(await edit(sale, 1, -4, { isLast: true })).to.equal('refused');
    expect([await edit(sale, 1, -3), await read(sale)]).to.deep.equal(['refused', [3, 0]]);
    expect([await edit(sale, 2, -3), await read(sale)]).to.deep.equal(['done', [0, 2]]);
  });

  it('leaves a bucket unchanged if it is not loaded, in repair, on another server or in another epoch', async () => {
    const sale = await openSale(world, { stock: 10, epoch: 2 });
    expect(await edit(sale, 1, 5, { epoch: 1 })).to.equal('moved');
    expect(await edit(sale, 1, 5, { epoch: 3 })).to.equal('unavailable');
    expect(await edit({ ...sale, saleId: `${sale.saleId.slice(1)}9` }, 1, 5)).to.equal('unavailable');
    await world.restart({ saleId: sale.saleId, bucket: 0 });
    expect(await edit(sale, 1, 5, { epoch: 2 })).to.equal('unavailable');
    const locked = await openSale(world);
    await world.repair.lock({ saleId: locked.saleId, bucket: 0 }, 'token', 60_000);
    expect(await edit(locked, 1, 5)).to.equal('unavailable');
  });
});
