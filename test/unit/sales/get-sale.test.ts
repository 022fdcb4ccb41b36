import { expect } from 'chai';
import type { StoredSaleState, Sale } from '../../../src/core/sale.js';
import { GetSale, type SaleView } from '../../../src/sales/get-sale.js';
import { SaleSnapshots } from '../../../src/sales/sale-snapshots.js';
import { UnitFetcher } from '../../../src/sales/stock/gather-units.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryRepositories } from '../../helpers/memory/memory-repositories.js';
import { MemoryRedis } from '../../helpers/memory/memory-redis.js';
import { MemorySaleSnapshotCache } from '../../helpers/memory/memory-sale-snapshot-cache.js';
import { MemoryTransferStore } from '../../helpers/memory/memory-transfer-store.js';
import { saleOf } from '../../helpers/sales.js';
import { partial } from '../../helpers/partial.js';

describe('get-sale', () => {
  let clock: ManualClock;
  let store: MemoryRedis;
  let mysql: MemoryRepositories;
  let reads: number;

  beforeEach(() => {
    clock = new ManualClock();
    store = new MemoryRedis({ clock });
    mysql = new MemoryRepositories({ clock });
    reads = 0;
  });

  const create = (ttlMs = 60_000): GetSale => {
    const cache = new MemorySaleSnapshotCache(clock, { ttlMs: 60_000 });
    const snapshots = new SaleSnapshots(
      { repository: mysql, cache, clock },
      { memoryTtlMs: 60_000, memoryMax: 10, lockMs: 1000 },
    );
    const readSale: MemoryRedis['readSale'] = (ref) => {
      reads++;
      return store.readSale(ref);
    };
    const units = new UnitFetcher(new MemoryTransferStore(store));
    return new GetSale({ snapshots, store: partial({ readSale }), units, clock }, { ttlMs, max: 10 });
  };
  const loaded = async (parts: Partial<Sale> = {}, state: StoredSaleState = 'open'): Promise<Sale> => {
    const sale = saleOf(parts, clock.nowMs());
    mysql.putSale(sale);
    await store.warm(sale);
    for (let bucket = 0; bucket < sale.buckets; bucket++) store.bucket({ ...sale, bucket }).sale!.state = state;
    return sale;
  };
  it('shows a closed sale that Redis may have lost with the data of MySQL', async () => {
    const sale = await loaded({ stock: 100, sold: 20 }, 'closed');
    mysql.putSale({ ...sale, state: 'closed' });
    store.restart();
    expect(await viewOf(sale)).to.include({ state: 'closed', stock: 'plenty', nowMs: clock.nowMs() });
    store.restart({ empty: true });
    expect(await viewOf(sale)).to.include({ state: 'closed', stock: 'plenty' });
  });

  it('announces a planned sale with its times, and shows it as closed after its end', async () => {
    const sale = saleOf({ state: 'draft', warmBeforeMs: 60_000 }, clock.nowMs());
    mysql.putSale(sale);
    const { opensAtMs, closesAtMs, title } = sale;
    const view = await viewOf(sale);
    expect(view).to.include({
      state: 'announced',
      stock: 'plenty',
      title,
      opensAtMs,
      closesAtMs,
      nowMs: clock.nowMs(),
    });
    clock.step(closesAtMs - clock.nowMs());
    expect(await viewOf(sale)).to.include({ state: 'closed', nowMs: closesAtMs });
    expect(reads).to.equal(0);
  });

  it('shows a retired sale as closed with the data of MySQL, without asking Redis', async () => {
    const sale = saleOf({ stock: 100, sold: 95, state: 'closed', retiredAtMs: clock.nowMs() }, clock.nowMs());
    mysql.putSale(sale);
    const view = await viewOf(sale);
    expect(view).to.include({ state: 'closed', stock: 'few', title: sale.title, nowMs: clock.nowMs() });
    expect(view).to.include({ opensAtMs: sale.opensAtMs, closesAtMs: sale.closesAtMs });
    expect(reads).to.equal(0);
  });

  it('counts units in transit, and does not treat an unreadable bucket as empty [R12]', async () => {
    const sale = await loaded({ stock: 2, buckets: 2 });
    const transfers = new MemoryTransferStore(store);
    store.bucket({ ...sale, bucket: 1 }).unitsLeft = 0;
    expect(await transfers.transferOut({ ...sale, bucket: 0 }, 1, 1, 1)).to.include({
      outcome: 'transferred',
      units: 1,
    });
    expect((await viewOf(sale)).stock).to.equal('plenty');
    expect(store.bucket({ ...sale, bucket: 1 }).unitsLeft, 'the units have arrived').to.equal(1);

    const sold = await loaded({ stock: 2, buckets: 2 });
    for (const bucket of [0, 1]) store.bucket({ ...sold, bucket }).unitsLeft = 0;
    store.bucket({ ...sold, bucket: 1 }).sale!.epoch = 2;
    expect((await viewOf(sold)).stock).to.equal('unknown');
    store.bucket({ ...sold, bucket: 1 }).sale!.epoch = 1;
    expect((await viewOf(sold)).stock).to.equal('none');
  });
  const viewOf = async ({ saleId }: Sale): Promise<SaleView> => {
    const answer = await create().get(saleId);
    if (answer.outcome !== 'found') throw new Error(answer.outcome);
    return answer.view;
  };

  it('shows the public view with the time of Redis', async () => {
    const sale = await loaded({ paymentWindowMs: 600_000 });
    const { saleId, sku, title, priceCents, currency, limitPerBuyer, opensAtMs, closesAtMs } = sale;
    expect(await viewOf(sale)).to.deep.equal({
      saleId,
      sku,
      title,
      priceCents,
      currency,
      limitPerBuyer,
      paymentWindowMs: 600_000,
      opensAtMs,
      closesAtMs,
      nowMs: clock.nowMs(),
      state: 'open',
      stock: 'plenty',
    });
  });

  for (const [units, word] of [
    [100, 'plenty'],
    [10, 'plenty'],
    [9, 'few'],
    [1, 'few'],
    [0, 'none'],
  ] as const) {
    it(`shows ${units} of 100 units as ${word}`, async () => {
      const sale = await loaded({ stock: 100, buckets: 2 });
      store.bucket({ ...sale, bucket: 0 }).unitsLeft = units;
      store.bucket({ ...sale, bucket: 1 }).unitsLeft = 0;
      expect((await viewOf(sale)).stock).to.equal(word);
    });
  }

  for (const [state, shown] of [
    ['warm', 'not_open'],
    ['open', 'open'],
    ['paused', 'paused'],
    ['closed', 'closed'],
    ['repair', 'loading'],
  ] as const) {
    it(`shows a sale that is ${state} as ${shown}`, async () => {
      expect((await viewOf(await loaded({}, state))).state).to.equal(shown);
    });
  }

  it('shows an open sale as not open outside its window [S8]', async () => {
    const nowMs = clock.nowMs();
    const early = await loaded({ opensAtMs: nowMs + 1, closesAtMs: nowMs + 100 });
    expect((await viewOf(early)).state).to.equal('not_open');
    const late = await loaded({ opensAtMs: nowMs - 100, closesAtMs: nowMs });
    expect((await viewOf(late)).state).to.equal('closed');
  });

  it('advances the time of a reused reading, so that the sale opens and closes on time', async () => {
    const readAtMs = clock.nowMs();
    const sale = await loaded({ opensAtMs: readAtMs + 400, closesAtMs: readAtMs + 900 });
    const get = create();
    const shownAfter = async (ms: number, isExact: boolean): Promise<string> => {
      clock.advance(readAtMs + ms - clock.nowMs());
      const answer = await get.get(sale.saleId, isExact);
      return answer.outcome === 'found' ? `${answer.view.state} at ${answer.view.nowMs - readAtMs}` : answer.outcome;
    };
    expect(await shownAfter(0, false)).to.equal('not_open at 0');
    expect(await shownAfter(399, true)).to.equal('not_open at 399');
    expect(await shownAfter(399, false), 'equal for everyone until something changes').to.equal('not_open at 0');
    expect(await shownAfter(400, false)).to.equal('open at 400');
    expect(await shownAfter(900, true)).to.equal('closed at 900');
    expect(await shownAfter(901, false)).to.equal('closed at 901');
    expect(reads).to.equal(1);
  });

  it('gives everyone the same answer until the next reading', async () => {
    const sale = await loaded();
    const get = create();
    const [one, other] = await Promise.all([get.get(sale.saleId), get.get(sale.saleId)]);
    clock.advance(500);
    expect([other, await get.get(sale.saleId)]).to.deep.equal([one, one]);
    expect(other).to.equal(one);
    expect(await get.get(sale.saleId, true)).not.to.equal(one);
  });

  it('distinguishes not_found from loading', async () => {
    expect(await create().get('404')).to.deep.equal({ outcome: 'not_found' });
    const sale = saleOf();
    mysql.putSale(sale);
    expect(await create().get(sale.saleId), 'no bucket is loaded').to.deep.equal({ outcome: 'loading' });
    await store.warm({ ...sale, buckets: 1 });
    mysql.putSale({ ...sale, buckets: 2 });
    expect(await create().get(sale.saleId), 'half of the buckets').to.deep.equal({ outcome: 'loading' });
  });

  it('shares one read between many concurrent callers', async () => {
    const sale = await loaded();
    const get = create();
    await Promise.all(Array.from({ length: 100 }, () => get.get(sale.saleId)));
    await get.get(sale.saleId);
    expect(reads).to.equal(1);
  });

  it('does not remember a fault [R8]', async () => {
    const sale = await loaded();
    const get = create();
    store.breakNext('read_fails');
    expect(await get.get(sale.saleId).catch((error: Error) => error.name)).to.equal('OperationalError');
    expect((await get.get(sale.saleId)).outcome).to.equal('found');
  });
});
