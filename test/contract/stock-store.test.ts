import { expect } from 'chai';
import fc from 'fast-check';
import { type Batch } from '../../src/core/batch.js';
import type { PurchaseAnswer } from '../../src/core/ports/stock-store.js';
import type { Sale } from '../../src/core/sale.js';
import { batchOf, purchaseOf, purchasesOf, saleOf, releaseOf } from '../helpers/sales.js';
import { firstBucket, openSale, STORE_WORLDS, type StoreWorld } from './store-worlds.js';
import { onEachWorld } from './on-each-world.js';

const wordsOf = (answers: readonly (PurchaseAnswer | null)[]): (string | null)[] =>
  answers.map((answer) => answer?.outcome ?? null);

onEachWorld<StoreWorld>('contract StockStore', STORE_WORLDS, (world) => {
  const unitsLeft = async (sale: Sale): Promise<number | undefined> =>
    (await world.stock.readSale(firstBucket(sale)))?.unitsLeft;
  const deduct = (sale: Sale, ...texts: string[]) => world.stock.deduct(batchOf(sale, purchasesOf(...texts)));

  describe('precheck', () => {
    it('accepts every purchase that fits, returns the epoch and the remaining units, and changes nothing', async () => {
      const sale = await openSale(world, { stock: 3, epoch: 4 });
      for (const time of ['first', 'second']) {
        const verdict = await world.stock.precheck(firstBucket(sale), purchasesOf('u1*2', 'u2'));
        expect(verdict, time).to.deep.equal({ epoch: 4, unitsLeft: 3, buckets: 1, answers: [null, null] });
      }
      expect(await world.stock.acceptedBuyerCount(firstBucket(sale))).to.equal(0);
    });

    it('gives units to purchases in order, so that a later purchase may find none', async () => {
      const sale = await openSale(world, { stock: 3, limitPerBuyer: 2 });
      const purchases = purchasesOf('u1/a*2', 'u1/b', 'u2*2', 'u3', 'u4');
      const { answers } = await world.stock.precheck(firstBucket(sale), purchases);
      expect(wordsOf(answers)).to.deep.equal([null, 'limit_reached', 'sold_out', null, 'sold_out']);
    });

    it('returns `replayed` with the entry for an accepted key, and a conflict if the quantity differs (DUPLICATE)', async () => {
      const sale = await openSale(world);
      const batch = batchOf(sale, purchasesOf('u1/k*2'));
      await world.stock.deduct(batch);
      const { answers } = await world.stock.precheck(firstBucket(sale), purchasesOf('u1/k*2', 'u1/k*1', 'u2/k*2'));
      expect(answers).to.deep.equal([
        { outcome: 'replayed', entry: { state: 'held', batchId: batch.batchId, quantity: 2 } },
        { outcome: 'request_conflict' },
        null,
      ]);
    });

    it('returns `loading` with epoch 0 and unknown remaining units for a sale that is not loaded (LOADING)', async () => {
      const verdict = await world.stock.precheck(firstBucket(saleOf()), purchasesOf('u1'));
      expect(verdict).to.deep.equal({ epoch: 0, unitsLeft: null, buckets: null, answers: [{ outcome: 'loading' }] });
    });

    it('opens and closes the sale by the clock of Redis [S8]', async () => {
      const nowMs = await world.nowMs();
      const cases = [
        ['not_open', { opensAtMs: nowMs + 60_000, closesAtMs: nowMs + 120_000 }],
        ['closed', { opensAtMs: nowMs - 120_000, closesAtMs: nowMs - 1 }],
        [null, { opensAtMs: nowMs - 1, closesAtMs: nowMs + 60_000 }],
      ] as const;
      for (const [word, window] of cases) {
        const sale = await openSale(world, window);
        const { answers } = await world.stock.precheck(firstBucket(sale), purchasesOf('u1'));
        expect(wordsOf(answers)).to.deep.equal([word]);
      }
    });
  });

  describe('deduct', () => {
    it('takes the units of the whole batch (LUA_OK)', async () => {
      const sale = await openSale(world, { stock: 5 });
      const batch = batchOf(sale, purchasesOf('u1*2', 'u2', 'u3'));
      expect(await world.stock.deduct(batch)).to.deep.equal({ outcome: 'deducted' });
      expect(await unitsLeft(sale)).to.equal(1);
      const entry = await world.stock.findRequest(firstBucket(sale), 'u1', 'k1');
      expect(entry).to.deep.equal({ state: 'held', batchId: batch.batchId, quantity: 2 });
    });

    it('returns `already_deducted` and never `sold_out` for a retry of the batch that took the last unit [T8]', async () => {
      const sale = await openSale(world, { stock: 1 });
      const batch = batchOf(sale, purchasesOf('u1'));
      await world.stock.deduct(batch);
      expect(await world.stock.deduct(batch)).to.deep.equal({ outcome: 'already_deducted' });
      expect(await unitsLeft(sale)).to.equal(0);
    });

    it('returns `errored` for an undecodable body, takes nothing, and stays undecided until resolve [G14]', async () => {
      const sale = await openSale(world, { stock: 5 });
      const noting = (metadata: Record<string, string>) => [...purchasesOf('u1'), { ...purchaseOf('u2'), metadata }];
      const halves = ['\ud800', '\udfff', '\udc00\ud800', 'a\ud83d', '\udc00b', '\ud83d\ud83d\ude00'];
      for (const metadata of [...halves.map((text) => ({ a: text })), { '\ud800': 'a' }]) {
        const batch = batchOf(sale, noting(metadata));
        const verdict = await world.stock.deduct(batch);
        expect(verdict.outcome, JSON.stringify(metadata)).to.equal('errored');
        expect('error' in verdict && verdict.error).to.include({ dependency: 'redis', retryable: false });
        expect(await world.stock.resolve(batch)).to.equal('aborted');
      }
      expect(await unitsLeft(sale)).to.equal(5);
    });

    it('decodes exactly the well-formed bodies, whatever UTF-16 units they contain [G14]', async () => {
      const unit = fc.oneof(
        fc.integer({ min: 0, max: 0xffff }),
        fc.integer({ min: 0xd800, max: 0xdfff }),
        fc.constantFrom(0, 0x22, 0x2f, 0x5c, 0x7f, 0x2028, 0xfffd, 0xffff),
      );
      const text = fc.array(unit, { maxLength: 12 }).map((units) => String.fromCharCode(...units));
      const sale = await openSale(world, { stock: 1000, limitPerBuyer: 1000 });
      let count = 0;
      await fc.assert(
        fc.asyncProperty(text, async (value) => {
          const purchase = { ...purchaseOf(`u1/k${count++}`), metadata: { a: value } };
          const { outcome } = await world.stock.deduct(batchOf(sale, [purchase]));
          expect(outcome).to.equal(/\p{Surrogate}/u.test(value) ? 'errored' : 'deducted');
        }),
        { numRuns: 200 },
      );
    });

    it('takes nothing if a batch does not fit, and names the surplus purchases (SOLD_OUT) [G1]', async () => {
      const sale = await openSale(world, { stock: 3 });
      const verdict = await deduct(sale, 'u1*2', 'u2*2', 'u3');
      expect(verdict.outcome).to.equal('refused');
      expect(wordsOf(verdict.outcome === 'refused' ? verdict.answers : [])).to.deep.equal([null, 'sold_out', null]);
      expect(await unitsLeft(sale)).to.equal(3);
      expect(await world.stock.acceptedBuyerCount(firstBucket(sale))).to.equal(0);
    });

    it('refuses a purchase if its key or limit was used up after the precheck [G2]', async () => {
      const sale = await openSale(world);
      const first = batchOf(sale, purchasesOf('u1/a*2', 'u2/k'));
      await world.stock.deduct(first);
      const verdict = await deduct(sale, 'u1/b', 'u2/k', 'u2/k*2', 'u3');
      expect(verdict).to.deep.equal({
        outcome: 'refused',
        answers: [
          { outcome: 'limit_reached' },
          { outcome: 'replayed', entry: { state: 'held', batchId: first.batchId, quantity: 1 } },
          { outcome: 'request_conflict' },
          null,
        ],
      });
    });

    it('applies the limit within the batch, and allows each key once [G5]', async () => {
      const sale = await openSale(world, { limitPerBuyer: 1 });
      const byLimit = await deduct(sale, 'u1/a', 'u1/b', 'u2');
      expect(wordsOf(byLimit.outcome === 'refused' ? byLimit.answers : [])).to.deep.equal([
        null,
        'limit_reached',
        null,
      ]);
      const roomy = await openSale(world, { limitPerBuyer: 5 });
      const byDuplicate = await deduct(roomy, 'u1/a', 'u1/a', 'u2');
      expect(wordsOf(byDuplicate.outcome === 'refused' ? byDuplicate.answers : [])).to.deep.equal([
        null,
        'request_conflict',
        null,
      ]);
    });

    it('returns `aborted` for a refused batch from then on, even if it would now fit', async () => {
      const sale = await openSale(world, { stock: 1 });
      const batch = batchOf(sale, purchasesOf('u1', 'u2'));
      await world.stock.deduct(batch);
      expect(await world.stock.deduct(batch)).to.deep.equal({ outcome: 'aborted' });
      expect(await world.stock.resolve(batch)).to.equal('aborted');
    });
  });

  describe('resolve', () => {
    it('aborts an unknown batch and refuses a late deduct [T2, T7]', async () => {
      const sale = await openSale(world);
      const batch = batchOf(sale, purchasesOf('u1'));
      expect(await world.stock.resolve(batch)).to.equal('aborted');
      expect(await world.stock.deduct(batch)).to.deep.equal({ outcome: 'aborted' });
      expect(await unitsLeft(sale)).to.equal(10);
    });
  });

  describe('bucket loaded on another server [R1]', () => {
    let sale: Sale;
    let held: Batch;
    beforeEach(async () => {
      sale = await openSale(world, { stock: 5 });
      held = batchOf(sale, purchasesOf('u1'));
      await world.stock.deduct(held);
      await world.restart(firstBucket(sale));
    });

    it('`precheck` returns `loading` and hides entries, because they may be outdated', async () => {
      const {
        epoch,
        unitsLeft: left,
        answers,
      } = await world.stock.precheck(firstBucket(sale), purchasesOf('u1', 'u2'));
      expect({ epoch, left }).to.deep.equal({ epoch: 1, left: null });
      expect(wordsOf(answers)).to.deep.equal(['loading', 'loading']);
    });

    it('`deduct` takes nothing and `resolve` writes nothing, but existing markers still count', async () => {
      const batch = batchOf(sale, purchasesOf('u2'));
      expect(await world.stock.deduct(batch)).to.deep.equal({ outcome: 'stale_epoch' });
      expect(await world.stock.resolve(batch)).to.equal('no_answer');
      expect(await world.stock.resolve({ ...batch, epoch: 0 }), 'an older one neither').to.equal('no_answer');
      expect(await world.stock.deduct(held)).to.deep.equal({ outcome: 'already_deducted' });
      expect(await world.stock.resolve(held)).to.equal('deducted');
      expect(await unitsLeft(sale)).to.equal(4);
    });

    it('reads return `unsure`, and the status of the sale is `repair`', async () => {
      expect(await world.stock.findRequest(firstBucket(sale), 'u1', 'k1')).to.equal('unsure');
      expect(await world.stock.findRequest(firstBucket(sale), 'u2', 'k1')).to.equal('unsure');
      const { opensAtMs, closesAtMs } = sale;
      expect(await world.stock.readSale(firstBucket(sale))).to.include({
        state: 'repair',
        epoch: 1,
        opensAtMs,
        closesAtMs,
      });
    });

    it('setState still works, so that a closed sale stays closed', async () => {
      expect(await world.sales.setState(sale, 'closed')).to.equal('set');
      expect(await world.sales.setState(sale, 'open')).to.equal('closed');
      expect(wordsOf((await world.stock.precheck(firstBucket(sale), purchasesOf('u2'))).answers)).to.deep.equal([
        'loading',
      ]);
    });
  });

  describe('reads', () => {
    it('find nothing in a bucket that is not loaded', async () => {
      const ref = firstBucket(saleOf());
      expect(await world.stock.readSale(ref)).to.equal(null);
      expect(await world.stock.findRequest(ref, 'u1', 'k1'), 'it may be lost').to.equal('unsure');
      const loaded = firstBucket(await openSale(world));
      expect(await world.stock.findRequest(loaded, 'u1', 'k1')).to.equal(null);
      expect(await world.stock.acceptedBuyerCount(ref)).to.equal(0);
      for await (const keys of world.stock.acceptedBuyers(ref)) expect(keys).to.deep.equal([]);
    });

    it('return state, epoch, window and units of a bucket, and the time of its server', async () => {
      const sale = await openSale(world, { stock: 7, epoch: 3 });
      const before = await world.nowMs();
      const found = await world.stock.readSale(firstBucket(sale));
      const { opensAtMs, closesAtMs } = sale;
      expect(found).to.include({ state: 'open', epoch: 3, unitsLeft: 7, opensAtMs, closesAtMs });
      expect(found?.nowMs).to.be.within(before, await world.nowMs());
    });

    it('list every accepted buyer once, even after the units are released', async () => {
      const sale = await openSale(world, { stock: 1500, limitPerBuyer: 2 });
      const crowd = Array.from({ length: 1200 }, (_, index) => purchaseOf(`buyer-${index}`));
      for (let from = 0; from < crowd.length; from += 400) {
        await world.stock.deduct(batchOf(sale, crowd.slice(from, from + 400)));
      }
      await world.stock.deduct(batchOf(sale, purchasesOf('buyer-8/k2')));
      const gone = releaseOf(firstBucket(sale), 'buyer-7', '9');
      expect(await world.batches.release([gone])).to.deep.equal(['released']);

      const buyers: string[] = [];
      for await (const chunk of world.stock.acceptedBuyers(firstBucket(sale))) buyers.push(...chunk);
      expect(buyers.sort()).to.deep.equal(crowd.map(({ userId }) => userId).sort());
      expect(await world.stock.acceptedBuyerCount(firstBucket(sale))).to.equal(1200);
    });
  });
});
