import { expect } from 'chai';
import type { NewSale, Sale, SaleState } from '../../../src/core/sale.js';
import { SaleAdmin } from '../../../src/sales/sale-admin.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryRepositories } from '../../helpers/memory/memory-repositories.js';
import { MemoryRedis } from '../../helpers/memory/memory-redis.js';
import { MemorySaleSnapshotCache } from '../../helpers/memory/memory-sale-snapshot-cache.js';
import { batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';

describe('SaleAdmin', () => {
  let clock: ManualClock;
  let mysql: MemoryRepositories;
  let store: MemoryRedis;
  let cache: MemorySaleSnapshotCache;
  let admin: SaleAdmin;

  beforeEach(() => {
    clock = new ManualClock();
    mysql = new MemoryRepositories({ clock });
    store = new MemoryRedis({ clock });
    cache = new MemorySaleSnapshotCache(clock, { ttlMs: 60_000 });
    admin = new SaleAdmin({ repository: mysql, store, cache });
  });

  const newSale = (parts: Partial<NewSale> = {}): NewSale => {
    const { saleId: _id, sold: _sold, state: _state, epoch: _epoch, ...wanted } = saleOf(parts, clock.nowMs());
    return wanted;
  };
  const create = async (sale: NewSale, actor: string): Promise<Sale> => {
    const made = await admin.create(sale, actor);
    if (made.outcome !== 'created') throw new Error(made.outcome);
    return made.sale;
  };
  const inStore = async ({ saleId }: Sale) => {
    const found = await store.readSale({ saleId, bucket: 0 });
    return found && [found.state, found.unitsLeft];
  };
  const inRepository = async ({ saleId }: Sale): Promise<SaleState | undefined> => (await admin.show(saleId))?.state;

  it('takes a sale through draft → warm → open ⇄ paused → closed in both stores', async () => {
    const sale = await create(newSale({ stock: 5 }), 'ann');
    expect([sale.state, await inStore(sale)]).to.deep.equal(['draft', null]);
    for (const [move, state] of [
      ['warm', 'warm'],
      ['open', 'open'],
      ['pause', 'paused'],
      ['open', 'open'],
      ['close', 'closed'],
    ] as const) {
      const answer = await admin[move](sale.saleId, 'ann');
      expect(answer).to.deep.include({ outcome: 'done' });
      expect('sale' in answer && answer.sale.state).to.equal(state);
      expect([await inRepository(sale), await inStore(sale)]).to.deep.equal([state, [state, 5]]);
    }
  });

  it('audits every move under its actor, but no repeat', async () => {
    const sale = await create(newSale(), 'ann');
    await admin.open(sale.saleId, 'eve'); // refused, because it is not warm yet
    await admin.warm(sale.saleId, 'ann');
    for (const move of ['open', 'pause', 'open', 'open', 'close'] as const) await admin[move](sale.saleId, 'bob');
    expect(mysql.audited.map(({ actor, action }) => `${actor} ${action}`)).to.deep.equal([
      'ann sale.created',
      'ann sale.warmed',
      'bob sale.opened',
      'bob sale.paused',
      'bob sale.resumed',
      'bob sale.closed',
    ]);
    expect(mysql.audited[0]).to.deep.include({ subject: `sale:${sale.saleId}`, before: null, after: sale });
    expect(mysql.audited.at(-1)).to.deep.include({ before: { state: 'open' }, after: { state: 'closed' } });
  });

  it('allows a repeat of every move', async () => {
    const sale = await create(newSale(), 'ann');
    for (const move of ['warm', 'open', 'pause', 'close'] as const) {
      for (const unchanged of [false, true])
        expect(await admin[move](sale.saleId, 'ann'), move).to.include({ outcome: 'done', unchanged });
    }
  });

  it('changes nothing in MySQL or Redis on a forbidden move', async () => {
    const forbidden: Record<string, ('warm' | 'open' | 'pause' | 'close')[]> = {
      draft: ['open', 'pause', 'close'],
      warm: ['pause'],
      open: ['warm'],
      paused: ['warm'],
      closed: ['warm', 'open', 'pause'],
    };
    for (const [state, moves] of Object.entries(forbidden)) {
      const sale = saleOf({ state: state as SaleState });
      mysql.putSale(sale);
      if (state !== 'draft') await store.warm(sale);
      for (const move of moves) {
        expect((await admin[move](sale.saleId, 'ann')).outcome, `${state}: ${move}`).to.equal('wrong_state');
        expect(await inRepository(sale)).to.equal(state);
        expect((await inStore(sale))?.[0] ?? 'draft').to.equal(state === 'draft' ? 'draft' : 'warm');
      }
    }
  });

  it('never loads a sale again that may have sold [R5]', async () => {
    for (const state of ['open', 'paused', 'closed'] as const) {
      const sale = saleOf({ state });
      mysql.putSale(sale);
      expect(await admin.warm(sale.saleId, 'ann')).to.deep.include({ outcome: 'wrong_state' });
      expect(await inStore(sale)).to.equal(null);
    }
  });

  it('returns not_found for a sale that does not exist', async () => {
    for (const move of ['warm', 'open', 'pause', 'close'] as const) {
      expect(await admin[move]('404', 'ann')).to.deep.equal({ outcome: 'not_found' });
    }
    expect(await admin.show('404')).to.equal(null);
  });

  it('writes to Redis first when it warms, and never changes loaded stock [R5]', async () => {
    const sale = await create(newSale({ stock: 5 }), 'ann');
    const order: string[] = [];
    const recording = new SaleAdmin({
      repository: Object.assign(Object.create(mysql) as MemoryRepositories, {
        find: mysql.find.bind(mysql),
        move: async (saleId: string, to: SaleState, actor: string) => {
          order.push('mysql');
          return mysql.move(saleId, to, actor);
        },
      }),
      store: {
        warm: async (of) => {
          order.push('redis');
          return store.warm(of);
        },
        setState: store.setState.bind(store),
        forget: store.forget.bind(store),
        edit: store.edit.bind(store),
      },
      cache,
    });
    await recording.warm(sale.saleId, 'ann');
    expect(order).to.deep.equal(['redis', 'mysql']);

    await store.setState(sale, 'open');
    await store.deduct(batchOf(sale, purchasesOf('u1')));
    expect((await admin.warm(sale.saleId, 'ann')).outcome).to.equal('done');
    expect((await inStore(sale))?.[1]).to.equal(4);
  });

  it('leaves nothing in Redis if a draft is deleted while it is loaded', async () => {
    const sale = await create(newSale(), 'ann');
    const { warm } = store;
    store.warm = async (of) => {
      mysql.removeSale(sale.saleId);
      return warm.call(store, of);
    };
    expect(await admin.warm(sale.saleId, 'keeper')).to.deep.equal({ outcome: 'not_found' });
    expect(await inStore(sale)).to.equal(null);
  });

  it('completes an open on a repeat if the process died before Redis followed', async () => {
    const sale = await create(newSale(), 'ann');
    await admin.warm(sale.saleId, 'ann');
    await mysql.move(sale.saleId, 'open'); // the process dies here
    expect((await inStore(sale))?.[0]).to.equal('warm');
    expect((await admin.open(sale.saleId, 'ann')).outcome).to.equal('done');
    expect((await inStore(sale))?.[0]).to.equal('open');
  });

  it('moves a sale that Redis has lost or is repairing [R5]', async () => {
    const lost = saleOf({ state: 'warm' });
    mysql.putSale(lost);
    expect(await admin.open(lost.saleId, 'ann')).to.deep.equal({
      outcome: 'in_repair',
      sale: { ...lost, state: 'open' },
    });

    const broken = saleOf({ state: 'open' });
    mysql.putSale(broken);
    await store.warm(broken);
    store.bucket({ saleId: broken.saleId, bucket: 0 }).sale!.state = 'repair';
    const paused = { ...broken, state: 'paused' };
    expect(await admin.pause(broken.saleId, 'ann')).to.deep.equal({ outcome: 'in_repair', sale: paused });
    expect(await mysql.find(broken.saleId)).to.deep.equal(paused);
    expect((await inStore(broken))?.[0]).to.equal('repair');
  });

  it('makes the gates read the sale again on every move', async () => {
    const sale = await create(newSale(), 'ann');
    for (const move of ['warm', 'open', 'pause', 'close'] as const) {
      await cache.write(sale.saleId, sale);
      await admin[move](sale.saleId, 'ann');
      expect(await cache.read(sale.saleId), move).to.deep.equal({ cached: 'missing' });
    }
  });

  it('refuses overlapping scheduled sales of one sku, and allows overlaps of manual sales', async () => {
    const first = await create(newSale({ sku: 'pen' }), 'ann');
    await create(newSale({ sku: 'pen' }), 'ann');
    const planned = newSale({ sku: 'pen', warmBeforeMs: 60_000 });
    const refused = await admin.create(planned, 'ann');
    expect(refused.outcome).to.equal('overlaps');
    expect('errors' in refused && refused.errors[0]).to.deep.include({ field: 'opensAt' });
    expect('errors' in refused && refused.errors[0]?.message).to.match(
      /^opensAt overlaps: sale \d+ offers pen from 20/,
    );
    await create({ ...planned, sku: 'mug' }, 'ann');
    await create({ ...planned, opensAtMs: first.closesAtMs, closesAtMs: first.closesAtMs + 1 }, 'ann');
    expect(await admin.list({ max: 10 })).to.have.length(4);
  });

  it('imports all sales or no sale, and reports the same in a dry run', async () => {
    const nowMs = clock.nowMs();
    const sale = (sku: string, fromMs: number): NewSale =>
      newSale({ sku, opensAtMs: nowMs + fromMs, closesAtMs: nowMs + fromMs + 100 });
    const nameOf = (index: number): string => `line ${index + 2}`;
    await create(sale('pen', 0), 'ann');
    const wrong = [sale('mug', 0), sale('pen', 50), sale('mug', 99), sale('tv', 0)];
    const refused = await admin.import(wrong, 'ann', nameOf);
    const overlaps = 'overlaps' in refused ? refused.overlaps : [];
    expect(overlaps.map(({ index, error }) => [index, error.message.replace(/ from.*/, '')])).to.deep.equal([
      [1, 'opensAt overlaps: sale 1 offers pen'],
      [2, 'opensAt overlaps: line 2 offers mug'],
    ]);
    expect(await admin.overlaps(wrong, nameOf)).to.deep.equal(overlaps);
    expect(await admin.list({ max: 10 })).to.have.length(1);

    const right = [sale('mug', 0), sale('pen', 100), sale('mug', 100)];
    expect(await admin.overlaps(right, nameOf)).to.deep.equal([]);
    const made = await admin.import(right, 'ann', nameOf);
    expect('sales' in made && made.sales.map(({ sku }) => sku)).to.deep.equal(['mug', 'pen', 'mug']);
    expect(mysql.audited.filter(({ action }) => action === 'sale.created')).to.have.length(4);
  });
});
