import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { Sale } from '../../../src/core/sale.js';
import type { SaleChange } from '../../../src/core/ports/sale-edits.js';
import type { Price } from '../../../src/core/ports/payment-provider.js';
import { checkChange, finishEdits, readSaleChange, SaleEditor } from '../../../src/sales/edit-sale.js';
import { SaleAdmin } from '../../../src/sales/sale-admin.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryRedis } from '../../helpers/memory/memory-redis.js';
import { MemoryRepositories } from '../../helpers/memory/memory-repositories.js';
import { MemorySaleEdits } from '../../helpers/memory/memory-sale-edits.js';
import { MemorySaleSnapshotCache } from '../../helpers/memory/memory-sale-snapshot-cache.js';
import { MemoryTransferStore } from '../../helpers/memory/memory-transfer-store.js';
import { batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';

describe('SaleEditor', () => {
  let clock: ManualClock;
  let mysql: MemoryRepositories;
  let redis: MemoryRedis;
  let edits: MemorySaleEdits;
  let editor: SaleEditor;

  beforeEach(() => {
    clock = new ManualClock();
    mysql = new MemoryRepositories({ clock });
    redis = new MemoryRedis({ clock });
    edits = new MemorySaleEdits(mysql, clock);
    const cache = new MemorySaleSnapshotCache(clock, { ttlMs: 5000 });
    editor = new SaleEditor({
      edits,
      sales: mysql,
      admin: new SaleAdmin({ repository: mysql, store: redis, cache }),
      store: redis,
      stock: redis,
      transfers: new MemoryTransferStore(redis),
      cache,
      nowMs: () => clock.nowMs(),
      faultOf: () => null,
    });
  });

  async function open(parts: Partial<Sale> = {}): Promise<Sale> {
    const sale = saleOf(parts, clock.nowMs());
    mysql.putSale(sale);
    if (sale.state !== 'draft') {
      await redis.warm(sale);
      if (sale.state !== 'warm') await redis.setState(sale, sale.state);
    }
    return sale;
  }
  const left = ({ saleId, buckets }: Sale): number[] =>
    Array.from({ length: buckets }, (_, bucket) => redis.bucket({ saleId, bucket }).unitsLeft);
  const stock = ({ saleId }: Sale): number | undefined => mysql.saleOf(saleId)?.stock;
  const edit = ({ saleId }: Sale, change: SaleChange) => editor.edit(saleId, change, 'ann');
  const outcome = async (sale: Sale, change: SaleChange): Promise<string> => (await edit(sale, change)).outcome;
  const job = () => finishEdits({ edits, editor });
  const edited = (): unknown[] =>
    mysql.audited.filter(({ action }) => action === 'sale.edited').map(({ before, after }) => [before, after]);

  it('changes the stock of a selling sale exactly, and nothing on a repeat', async () => {
    const sale = await open({ stock: 10 });
    await redis.deduct(batchOf(sale, purchasesOf('u1*2')));
    expect(await outcome(sale, { stock: 15 })).to.equal('done');
    expect(await outcome(sale, { stock: 15 })).to.equal('done');
    expect([stock(sale), left(sale)]).to.deep.equal([15, [13]]);
    expect(await outcome(sale, { stock: 2 })).to.equal('done');
    expect(await outcome(sale, { stock: 2 })).to.equal('done');
    expect([stock(sale), left(sale)]).to.deep.equal([2, [0]]);
    expect(edited()).to.deep.equal([
      [{ stock: 10 }, { stock: 15 }],
      [{ stock: 15 }, { stock: 2 }],
    ]);
  });

  it('refuses to lower the stock if buyers hold one unit too many', async () => {
    const sale = await open({ stock: 10 });
    await redis.deduct(batchOf(sale, purchasesOf('u1*2')));
    expect(await outcome(sale, { stock: 1 })).to.equal('not_enough');
    expect([stock(sale), left(sale), edited()]).to.deep.equal([10, [8], []]);
    expect(await outcome(sale, { stock: 2 }), 'a refusal is the end of that edit only').to.equal('done');
    expect([stock(sale), left(sale)]).to.deep.equal([2, [0]]);
  });

  it('takes units from all buckets together', async () => {
    const sale = await open({ stock: 12, buckets: 4 });
    expect(await outcome(sale, { stock: 5 })).to.equal('done');
    expect(left(sale).reduce((sum, units) => sum + units)).to.equal(5);
    expect(await outcome(sale, { stock: 8 })).to.equal('done');
    expect([stock(sale), left(sale).reduce((sum, units) => sum + units)]).to.deep.equal([8, 8]);
  });

  for (const [what, to] of [
    ['raise', 15],
    ['lower', 4],
  ] as const) {
    for (const fault of ['edit_fails', 'edit_reply_lost'] as const) {
      it(`lets the keeper or a repeat finish after a Redis fault (${fault}) in a ${what}`, async () => {
        for (const finish of ['keeper', 'repeat'] as const) {
          const sale = await open({ stock: 10 });
          redis.breakNext(fault);
          const error = await edit(sale, { stock: to }).catch((thrown: unknown) => thrown);
          expect(error).to.be.instanceOf(OperationalError);
          await job().runOnce();
          expect(edits.rows.size > 0 && [...edits.rows.values()].at(-1)?.state, 'too early').to.equal('begun');
          if (finish === 'repeat') expect(await outcome(sale, { stock: to })).to.equal('done');
          clock.advance(5000);
          await job().runOnce();
          await job().runOnce();
          expect([stock(sale), left(sale)]).to.deep.equal([to, [to]]);
        }
      });

      it(`applies a ${what} once if the sale is rebuilt after a Redis fault (${fault})`, async () => {
        const sale = await open({ stock: 10 });
        redis.breakNext(fault);
        await edit(sale, { stock: to }).catch(() => undefined);
        const rebuilt = { ...(mysql.saleOf(sale.saleId) as Sale), epoch: 2 };
        mysql.putSale(rebuilt);
        const bucket = redis.bucket({ saleId: sale.saleId, bucket: 0 });
        bucket.sale = { ...bucket.sale!, state: 'repair' };
        clock.advance(5000);
        await job().runOnce(); // waits for the repair
        bucket.sale = { ...bucket.sale, state: 'open', epoch: 2 };
        bucket.unitsLeft = rebuilt.stock;
        await job().runOnce();
        await job().runOnce();
        expect([stock(sale), left(sale)]).to.deep.equal([to, [to]]);
        expect([...edits.rows.values()].map(({ state }) => state)).to.deep.equal(['done']);
      });
    }
  }

  it('requests the rebuild of a closed sale, and ends the edit if the sale is retired', async () => {
    for (const to of [15, 4]) {
      const sale = await open({ stock: 10 });
      redis.breakNext('edit_fails');
      await edit(sale, { stock: to }).catch(() => undefined);
      const closed = { ...(mysql.saleOf(sale.saleId) as Sale), state: 'closed' as const };
      mysql.putSale(closed);
      redis.restart();
      clock.advance(5000);
      await job().runOnce();
      expect([...redis.asks]).to.include(sale.saleId);
      const state = () => [...edits.rows.values()].at(-1)?.state;
      expect(state()).to.equal('begun');
      mysql.putSale({ ...closed, retiredAtMs: clock.nowMs() });
      await redis.forget(sale);
      await job().runOnce();
      expect([state(), stock(sale)]).to.deep.equal(to > 10 ? ['done', 15] : ['refused', 10]);
    }
  });

  it('makes an edit once if two processes finish it', async () => {
    for (const to of [15, 4]) {
      const sale = await open({ stock: 10 });
      redis.breakNext('edit_fails');
      await edit(sale, { stock: to }).catch(() => undefined);
      clock.advance(5000);
      await Promise.all([job().runOnce(), job().runOnce(), edit(sale, { stock: to })]);
      expect([stock(sale), left(sale)]).to.deep.equal([to, [to]]);
    }
  });

  it('returns the units if MySQL has already sold them', async () => {
    const sale = await open({ stock: 10 });
    redis.bucket({ saleId: sale.saleId, bucket: 0 }).unitsLeft = 10; // as if a sold unit were free
    mysql.putSale({ ...sale, sold: 5 });
    const finish = edits.finish.bind(edits);
    edits.finish = async (one) => {
      mysql.putSale({ ...(mysql.saleOf(sale.saleId) as Sale), sold: 8 });
      return finish(one);
    };
    expect(await outcome(sale, { stock: 6 }), 'the stock is not lowered').to.equal('not_enough');
    clock.advance(5000);
    await job().runOnce();
    expect([stock(sale), left(sale)]).to.deep.equal([10, [10]]);
  });

  it('refuses the next edit, with the reason, while an edit waits for a repair', async () => {
    const sale = await open({ stock: 10 });
    const bucket = redis.bucket({ saleId: sale.saleId, bucket: 0 });
    bucket.sale = { ...bucket.sale!, state: 'repair' };
    expect(await outcome(sale, { stock: 15 }), 'it is made in MySQL').to.equal('repairing');
    expect(await outcome(sale, { title: 'New' })).to.equal('busy');
    expect(mysql.saleOf(sale.saleId)).to.include({ stock: 15, title: sale.title });
    bucket.sale = { ...bucket.sale, state: 'open' };
    expect(await outcome(sale, { title: 'New' })).to.equal('done');
    expect([mysql.saleOf(sale.saleId)?.title, left(sale)]).to.deep.equal(['New', [15]]);
  });

  it('changes title and closing time of a selling sale in both stores, but not its price', async () => {
    const sale = await open({ buckets: 2 });
    const closesAtMs = sale.closesAtMs + 1000;
    expect(await outcome(sale, { title: 'New', closesAtMs })).to.equal('done');
    expect(mysql.saleOf(sale.saleId)).to.include({ title: 'New', closesAtMs });
    for (const bucket of [0, 1]) {
      expect((await redis.readSale({ saleId: sale.saleId, bucket }))?.closesAtMs).to.equal(closesAtMs);
    }
    expect(await outcome(sale, { priceCents: 1 })).to.equal('wrong');
    expect(await outcome(await open({ state: 'closed' }), { title: 'x' })).to.equal('wrong_state');
    expect(await outcome(saleOf(), { title: 'x' })).to.equal('not_found');
  });

  it('changes a draft only in MySQL, in a new epoch if its stock changes', async () => {
    const sale = await open({ state: 'draft' });
    expect(await outcome(sale, { title: 'New', priceCents: 7 })).to.equal('done');
    expect(mysql.saleOf(sale.saleId)).to.include({ title: 'New', priceCents: 7, epoch: 1 });
    expect(await outcome(sale, { stock: 5 })).to.equal('done');
    expect(mysql.saleOf(sale.saleId)).to.include({ stock: 5, epoch: 2 });
    expect(edits.rows.size).to.equal(0);
  });

  it('cancels a sale before it starts by deleting a draft or closing a warm sale', async () => {
    const draft = await open({ state: 'draft' });
    await redis.warm(draft);
    const later = clock.nowMs() + 60_000;
    const [warm, early, selling] = [await open({ state: 'warm' }), await open({ opensAtMs: later }), await open()];
    const outcomes = [];
    for (const { saleId } of [draft, warm, early, selling]) outcomes.push((await editor.cancel(saleId, 'ann')).outcome);
    expect(outcomes).to.deep.equal(['deleted', 'closed', 'closed', 'wrong_state']);
    expect(mysql.saleOf(draft.saleId)).to.equal(undefined);
    expect(await redis.readSale({ saleId: draft.saleId, bucket: 0 })).to.equal(null);
    expect(mysql.audited[0]).to.deep.include({ actor: 'ann', action: 'sale.deleted', before: draft, after: null });
    expect((await editor.remove(warm.saleId, 'ann')).outcome).to.equal('wrong_state');
    expect((await editor.remove('404', 'ann')).outcome).to.equal('not_found');
  });
});

describe('sale change', () => {
  it('must name at least one field, and only changeable fields', () => {
    const errors = (input: unknown): string[] => {
      const read = readSaleChange(input);
      return 'errors' in read ? read.errors.map(({ message }) => message) : [];
    };
    expect(errors({})).to.deep.equal([
      'body must name at least one of title, priceCents, closesAt, stock, paymentWindow, coupon.',
    ]);
    expect(errors({ sku: 'x', stock: 0 })).to.deep.equal([
      'stock must be a whole number from 1 to 10000000.',
      'sku is not a known field.',
    ]);
    expect(readSaleChange({ paymentWindow: '5m' })).to.deep.equal({ change: { paymentWindowMs: 300_000 } });
    expect(errors({ paymentWindow: '2d' })).to.deep.equal([
      'paymentWindow must be a duration from 1s to 1d, such as 10m.',
    ]);
    expect(errors({ title: ' New ', closesAt: '2030-01-01T00:00:00Z' })).to.deep.equal([]);
  });

  it('is checked against the current sale', () => {
    const nowMs = Date.UTC(2030, 0, 1);
    const sale = saleOf({ sold: 4, limitPerBuyer: 2, warmBeforeMs: 1000, sku: 'pen' }, nowMs);
    const said = (change: SaleChange, parts: Partial<Sale> = {}, calendar: Parameters<typeof checkChange>[2] = []) => {
      const faultOf = ({ amountCents }: Price) => (amountCents === 1 ? 'must be 0, or 50 or more' : null);
      const errors = checkChange({ ...sale, ...parts }, change, calendar, { nowMs, faultOf });
      return errors === 'wrong_state' ? errors : errors.map(({ message }) => message);
    };
    expect(said({ stock: 3 })).to.deep.equal(['stock must not be less than the 4 units that are sold.']);
    expect(said({ stock: 5, paymentWindowMs: 1 })).to.have.length(1);
    expect(said({ stock: 5, title: 'x' })).to.deep.equal(['stock must be lowered alone, without other changes.']);
    expect(said({ stock: 5, title: 'x' }, { state: 'draft' })).to.deep.equal([]);
    expect(said({ stock: 1 }, { state: 'draft', sold: 0 })).to.deep.equal([
      'stock must not be less than limitPerBuyer.',
    ]);
    expect(said({ priceCents: 5 })).to.deep.equal(['priceCents can be changed only while the sale is a draft.']);
    expect(said({ priceCents: sale.priceCents })).to.deep.equal([]);
    expect(said({ priceCents: 1 }, { state: 'draft' })).to.deep.equal(['priceCents must be 0, or 50 or more.']);
    expect(said({ closesAtMs: sale.opensAtMs })).to.deep.equal(['closesAt must be later than opensAt.']);
    expect(said({ closesAtMs: nowMs })).to.deep.equal(['closesAt must be in the future; to end the sale, close it.']);
    const next = { saleId: '9', sku: 'pen', opensAtMs: nowMs + 5000, closesAtMs: nowMs + 9000 };
    expect(said({ closesAtMs: nowMs + 5000 }, {}, [next])).to.deep.equal([]);
    expect(said({ closesAtMs: nowMs + 5001 }, {}, [next])[0]).to.match(/^closesAt overlaps: sale 9 offers pen/);
    expect(said({ closesAtMs: nowMs + 5001 }, { warmBeforeMs: null }, [next])).to.deep.equal([]);
    expect(said({ title: 'x' }, { state: 'closed' })).to.equal('wrong_state');
  });
});
