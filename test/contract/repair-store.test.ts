import { expect } from 'chai';
import type { Batch } from '../../src/core/batch.js';
import { OperationalError } from '../../src/core/errors.js';
import type { RequestEntry } from '../../src/core/outcome.js';
import type { Sale } from '../../src/core/sale.js';
import type { StoredRequest } from '../../src/core/ports/reconcile-store.js';
import type { RebuiltBucket } from '../../src/core/ports/repair-stores.js';
import { batchOf, certainEntry, liveOrderOf, purchasesOf, saleOf, releaseOf } from '../helpers/sales.js';
import { firstBucket, openSale, STORE_WORLDS, type StoreWorld } from './store-worlds.js';
import { onEachWorld } from './on-each-world.js';

const LEASE_MS = 60_000;

onEachWorld<StoreWorld>('contract RepairStore', STORE_WORLDS, (world) => {
  let sale: Sale;
  beforeEach(async () => {
    sale = await openSale(world, { stock: 10, limitPerBuyer: 4 });
  });

  const deducted = async (...texts: string[]): Promise<Batch> => {
    const batch = batchOf(sale, purchasesOf(...texts));
    expect(await world.stock.deduct(batch)).to.deep.equal({ outcome: 'deducted' });
    return batch;
  };
  const lock = (token: string) => world.repair.lock(firstBucket(sale), token, LEASE_MS);
  const stage = (token: string, ...entries: StoredRequest[]) => world.repair.stage(firstBucket(sale), token, entries);
  const swap = (token: string, parts: Partial<RebuiltBucket> = {}) => {
    const { opensAtMs, closesAtMs, limitPerBuyer, buckets } = sale;
    const terms = { state: 'open', opensAtMs, closesAtMs, limitPerBuyer, buckets } as const;
    const rebuilt = { unitsLeft: 7, epoch: 2, ...terms };
    return world.repair.swap(firstBucket(sale), token, { ...rebuilt, ...parts });
  };
  const entryOf = (userId: string) => certainEntry(world.stock.findRequest(firstBucket(sale), userId, 'k1'));
  const held = (batchId: string, quantity = 1): RequestEntry => ({ state: 'held', batchId, quantity });
  const read = () => world.stock.readSale(firstBucket(sale));
  const wordsFor = async (...texts: string[]) => {
    const { answers } = await world.stock.precheck(firstBucket(sale), purchasesOf(...texts));
    return answers.map((answer) => answer?.outcome ?? null);
  };

  it('requests one repair for any number of calls that need an untrusted sale [T10, M9]', async () => {
    const { saleId } = sale;
    const isAsked = async (): Promise<boolean> => (await world.repair.asked(100_000)).includes(saleId);
    const batch = batchOf(sale, purchasesOf('u1'));
    const asking: Record<string, () => Promise<unknown>> = {
      ask: () => world.stock.askForRepair(saleId),
      'ask twice': () => world.repair.askForRepair(saleId),
      resolve: () => world.stock.resolve(batch),
      reacquire: () => world.batches.reacquire(batch, 2, new Set()),
      unpark: () => world.batches.unpark(batch),
    };
    await world.restart(firstBucket(sale));
    for (const [what, ask] of Object.entries(asking)) {
      expect(await isAsked(), what).to.equal(false);
      await ask();
      await ask();
      expect(await isAsked(), what).to.equal(true);
      await world.repair.answered(saleId);
    }
    expect(await world.repair.asked(0)).to.deep.equal([]);
  });

  it('statusOf: reports not loaded, loaded here, loaded on another server, in repair and rebuilt [R1]', async () => {
    const missing = { saleId: saleOf().saleId, bucket: 0 };
    const status = () => world.repair.statusOf([missing, firstBucket(sale)]);
    const none = { state: null, epoch: 0, sameServer: false };
    expect(await status()).to.deep.equal([none, { state: 'open', epoch: 1, sameServer: true }]);
    await world.restart(firstBucket(sale));
    expect(await status()).to.deep.equal([none, { state: 'open', epoch: 1, sameServer: false }]);
    await lock('one');
    expect(await status()).to.deep.equal([none, { state: 'repair', epoch: 1, sameServer: false }]);
    await swap('one', { state: 'paused', epoch: 4 });
    expect(await status()).to.deep.equal([none, { state: 'paused', epoch: 4, sameServer: true }]);
    expect(await world.repair.statusOf([])).to.deep.equal([]);
  });

  describe('lock', () => {
    it('stops selling, recording, releasing, reacquiring and state changes, but still counts markers', async () => {
      const batch = await deducted('u1*2');
      const unknown = batchOf(sale, purchasesOf('u2'));
      expect(await lock('one')).to.equal('locked');
      expect(await wordsFor('u1*2', 'u2')).to.deep.equal(['loading', 'loading']);
      expect(await world.stock.deduct(unknown)).to.deep.equal({ outcome: 'stale_epoch' });
      expect(await world.stock.resolve(unknown)).to.equal('no_answer');
      expect(await world.stock.resolve(batch)).to.equal('deducted');
      expect(await world.stock.findRequest(firstBucket(sale), 'u1', 'k1')).to.equal('unsure');
      expect(await world.sales.setState(sale, 'paused')).to.equal('repairing');
      expect(
        await world.batches.reacquire(batchOf({ ...sale, epoch: 0 }, purchasesOf('u3')), 1, new Set()),
      ).to.deep.equal({ outcome: 'unavailable' });
      const order = liveOrderOf('u1', '101');
      const release = { ...firstBucket(sale), ...order, batchId: '', withUnits: true };
      for (const call of [
        () => world.batches.markRecorded([{ batch, orders: [order] }]),
        () => world.batches.release([release]),
      ]) {
        const error: unknown = await call().then(
          () => null,
          (thrown: unknown) => thrown,
        );
        expect(error).to.be.instanceOf(OperationalError).and.include({ dependency: 'redis', retryable: true });
      }
      expect(await read()).to.include({ state: 'repair', unitsLeft: 8 });
      expect((await world.batches.pendingSummary(firstBucket(sale))).batches).to.equal(1);
    });

    it('returns `busy` during the lease of another repair, and accepts its own token again [R10]', async () => {
      expect(await lock('one')).to.equal('locked');
      expect(await lock('two')).to.equal('busy');
      expect(await lock('one')).to.equal('locked');
      await swap('one');
      expect(await lock('two'), 'after its end').to.equal('locked');
    });

    it('returns `moved` for a bucket repaired since its status was read, and does not lock it [R10]', async () => {
      expect(await world.repair.lock(firstBucket(sale), 'one', LEASE_MS, sale.epoch + 1)).to.equal('moved');
      expect((await read())?.state, 'nothing was changed').to.equal('open');
      expect(await world.repair.lock(firstBucket(sale), 'one', LEASE_MS, sale.epoch)).to.equal('locked');
    });

    it('ignores a lease that has expired or was given by another server [R10]', async () => {
      await lock('one');
      await world.endLease(firstBucket(sale));
      expect(await lock('two')).to.equal('locked');
      await world.restart(firstBucket(sale));
      expect(await lock('three')).to.equal('locked');
      expect(await lock('four')).to.equal('busy');
    });

    it('ignores a lease that ends too late because the server clock was set back [R10]', async () => {
      await lock('one');
      await world.stretchLease(firstBucket(sale), 3_600_000);
      expect(await lock('two')).to.equal('locked');
      expect(await lock('three')).to.equal('busy');
    });

    it('expires on its own [R10]', async () => {
      await world.repair.lock(firstBucket(sale), 'one', 1);
      await world.elapse(5);
      expect(await lock('two')).to.equal('locked');
    });

    it('renews the lease with stage and restoreMarker [R10]', async () => {
      const renewals = [
        () => stage('one', ['u1/k1', held('b')]),
        () => stage('one'),
        () => world.repair.restoreMarker(batchOf(sale, purchasesOf('u1')), 0, 'one', false),
      ];
      for (const renew of renewals) {
        await lock('one');
        await world.endLease(firstBucket(sale));
        await renew();
        expect(await lock('two')).to.equal('busy');
      }
    });
  });

  it('requestsWithUnits: returns each held or ordered request at least once, and nothing else', async () => {
    const { batchId } = await deducted('u1', 'u2*2', 'u3', 'u4');
    await world.batches.release([releaseOf(firstBucket(sale), 'u3', '9')]);
    const recorded = await deducted('u5');
    const order = liveOrderOf('u5', '105');
    await world.batches.markRecorded([{ batch: recorded, orders: [order] }]);
    await lock('one');
    const found = new Map<string, RequestEntry>();
    for await (const page of world.repair.requestsWithUnits(firstBucket(sale)))
      for (const [key, entry] of page) found.set(key, entry);
    expect(Object.fromEntries(found)).to.deep.equal({
      'u1/k1': held(batchId),
      'u2/k1': held(batchId, 2),
      'u4/k1': held(batchId),
      'u5/k1': { state: 'ordered', orderId: '105', quantity: 1 },
    });
  });

  describe('swap', () => {
    it('replaces the old data with the staged requests, buyers, stock, window, limit and epoch [R2]', async () => {
      await deducted('gone*4', 'u1');
      await lock('one');
      const first: StoredRequest[] = [
        ['u1/k1', { state: 'ordered', orderId: '101', quantity: 2 }],
        ['u2/k1', held('kept', 3)],
        ['u2/k1', held('again', 2)],
      ];
      expect(await stage('one', ...first)).to.equal('staged');
      const second: StoredRequest[] = [
        ['u1/k1', held('too-late', 1)],
        ['u1/k2', { state: 'released', orderId: '102', quantity: 4 }],
        ['u4/k1', { state: 'released', orderId: '103', quantity: 1 }],
      ];
      expect(await stage('one', ...second), 'earlier staged rows stay').to.equal('staged');
      const [opensAtMs, closesAtMs] = [sale.opensAtMs - 1, sale.closesAtMs + 1];
      const rebuilt = { unitsLeft: 5, epoch: 3, state: 'open', opensAtMs, closesAtMs, limitPerBuyer: 3 } as const;
      expect(await swap('one', rebuilt)).to.equal('swapped');

      expect(await read()).to.include({ state: 'open', epoch: 3, unitsLeft: 5, opensAtMs, closesAtMs });
      expect(await entryOf('u1')).to.deep.equal({ state: 'ordered', orderId: '101', quantity: 2 });
      expect(await entryOf('u2')).to.deep.equal(held('kept', 3));
      expect(await entryOf('gone')).to.equal(null);
      expect(await world.stock.acceptedBuyerCount(firstBucket(sale)), 'u4 holds nothing now').to.equal(3);
      expect(await wordsFor('u1/new', 'u1/new2', 'u2/new', 'gone*3')).to.deep.equal([
        null,
        'limit_reached',
        'limit_reached',
        null,
      ]);
      expect(await world.stock.deduct(batchOf({ ...sale, epoch: 3 }, purchasesOf('u3')))).to.deep.equal({
        outcome: 'deducted',
      });
    });

    it('keeps pending batches and markers, so that they can still be marked recorded', async () => {
      const batch = await deducted('u1');
      await lock('one');
      await stage('one', ['u1/k1', held(batch.batchId)]);
      await swap('one');
      expect((await world.batches.stalePending(firstBucket(sale), 0, 10)).map(({ body }) => body)).to.deep.equal([
        batch.body,
      ]);
      await world.batches.markRecorded([{ batch, orders: [liveOrderOf('u1', '101')] }]);
      expect((await entryOf('u1'))?.state).to.equal('ordered');
    });

    it('keeps the verdict of a resolved batch, and marks any other batch `outlived` [R4]', async () => {
      const [known, unknown] = [await deducted('u1'), batchOf(sale, purchasesOf('u2'))];
      await lock('one');
      await swap('one');
      expect(await world.stock.resolve(known)).to.equal('deducted');
      expect(await world.stock.resolve(unknown)).to.equal('outlived');
      expect(await world.stock.deduct(unknown), 'a copy that comes late').to.deep.equal({ outcome: 'stale_epoch' });
    });

    it('loads a completely lost bucket, which lock creates and warm leaves alone [R5]', async () => {
      sale = saleOf({ limitPerBuyer: 4 }, await world.nowMs());
      expect(await lock('one')).to.equal('locked');
      expect(await world.repair.statusOf([firstBucket(sale)])).to.deep.equal([
        { state: 'repair', epoch: 0, sameServer: false },
      ]);
      expect(await read(), 'not loaded').to.equal(null);
      expect(await world.sales.warm(sale)).to.equal('already_warm');
      expect(await wordsFor('u1')).to.deep.equal(['loading']);
      await stage('one', ['u1/k1', { state: 'ordered', orderId: '101', quantity: 3 }]);
      expect(await swap('one', { epoch: 1 })).to.equal('swapped');
      expect(await read()).to.include({ state: 'open', epoch: 1, unitsLeft: 7 });
      expect(await wordsFor('u1/k1*3', 'u1/new*2')).to.deep.equal(['replayed', 'limit_reached']);
    });

    it('leaves an empty bucket if nothing was staged', async () => {
      await deducted('u1');
      await lock('one');
      await swap('one', { unitsLeft: 10 });
      expect(await world.stock.acceptedBuyerCount(firstBucket(sale))).to.equal(0);
      expect(await wordsFor('u1*4')).to.deep.equal([null]);
    });

    it('requires a new epoch [R6]', async () => {
      sale = await openSale(world, { epoch: 5 });
      await lock('one');
      for (const epoch of [4, 5]) expect(await swap('one', { epoch })).to.equal('superseded');
      expect(await read()).to.include({ state: 'repair', epoch: 5 });
      expect(await swap('one', { epoch: 6 })).to.equal('swapped');
    });
  });

  describe('late command of an older repair [R6]', () => {
    const lateCommands = async (token: string): Promise<string[]> => [
      await stage(token, ['late/k1', held('late')]),
      await world.repair.restoreMarker(batchOf(sale, purchasesOf('late'), `late-${sale.saleId}`), 0, token, true),
      await swap(token, { unitsLeft: 99, epoch: 99 }),
    ];
    const superseded = ['superseded', 'superseded', 'superseded'];

    it('changes nothing when another repair has taken the lease', async () => {
      await lock('one');
      await stage('one', ['u1/k1', held('of-one')]);
      await world.endLease(firstBucket(sale));
      await lock('two');
      expect(await lateCommands('one')).to.deep.equal(superseded);
      await stage('two', ['u2/k1', held('of-two')]);
      expect(await swap('two')).to.equal('swapped');
      expect(await entryOf('u1'), 'its staged rows are gone').to.equal(null);
      expect(await entryOf('u2')).to.deep.equal(held('of-two'));
      expect(await entryOf('late')).to.equal(null);
      expect(await read()).to.include({ unitsLeft: 7, epoch: 2 });
    });

    it('changes nothing when the repair began on another server', async () => {
      await lock('one');
      await world.restart(firstBucket(sale));
      expect(await lateCommands('one')).to.deep.equal(superseded);
      expect(await read()).to.include({ state: 'repair', epoch: 1, unitsLeft: 10 });
    });

    it('changes nothing when the repair is over or never existed', async () => {
      await lock('one');
      await swap('one');
      expect(await lateCommands('one')).to.deep.equal(superseded);
      expect(await lateCommands('never')).to.deep.equal(superseded);
      expect(await read()).to.include({ state: 'open', epoch: 2, unitsLeft: 7 });
      expect(await world.stock.resolve({ ...firstBucket(sale), batchId: `late-${sale.saleId}`, epoch: 2 })).to.equal(
        'aborted',
      );
    });
  });

  it('restoreMarker: writes the marker of a batch with its body, and keeps an existing marker [R6]', async () => {
    const [lost, aborted] = [batchOf(sale, purchasesOf('u1')), batchOf(sale, purchasesOf('u2'))];
    await world.stock.resolve(aborted);
    await lock('one');
    for (const batch of [lost, lost, aborted]) {
      expect(await world.repair.restoreMarker(batch, 0, 'one', false)).to.equal('restored');
    }
    expect(await world.stock.resolve(lost)).to.equal('deducted');
    expect(await world.stock.resolve(aborted)).to.equal('aborted');
    await swap('one');
    expect(await world.batches.unpark(lost)).to.equal('unparked');
    const [pending] = await world.batches.stalePending(firstBucket(sale), 0, 10);
    expect(pending?.body).to.equal(lost.body);
  });

  it('stages more data than one script call can hold', async () => {
    await lock('one');
    const many = Array.from({ length: 2500 }, (_, index): StoredRequest => [`u${index % 500}/k${index}`, held('b')]);
    expect(await stage('one', ...many)).to.equal('staged');
    expect(await stage('one'), 'nothing').to.equal('staged');
    expect(await swap('one', { limitPerBuyer: 5 })).to.equal('swapped');
    expect(await world.stock.acceptedBuyerCount(firstBucket(sale))).to.equal(500);
    expect(await wordsFor('u7/new', 'u499/new', 'u500/new')).to.deep.equal(['limit_reached', 'limit_reached', null]);
  });
});
