import { expect } from 'chai';
import { until } from '../chaos/harness/wait.js';
import type { Batch } from '../../src/core/batch.js';
import type { Sale } from '../../src/core/sale.js';
import { batchOf, certainEntry, liveOrderOf, purchasesOf, saleOf, lostIn, releaseOf } from '../helpers/sales.js';
import { firstBucket, openSale, STORE_WORLDS, type StoreWorld } from './store-worlds.js';
import { onEachWorld } from './on-each-world.js';

onEachWorld<StoreWorld>('contract BatchStore', STORE_WORLDS, (world) => {
  let sale: Sale;
  beforeEach(async () => {
    sale = await openSale(world, { stock: 10, limitPerBuyer: 4 });
  });

  const deducted = async (...texts: string[]): Promise<Batch> => {
    const batch = batchOf(sale, purchasesOf(...texts));
    expect(await world.stock.deduct(batch)).to.deep.equal({ outcome: 'deducted' });
    return batch;
  };
  const entryOf = (userId: string, requestId = 'k1') =>
    certainEntry(world.stock.findRequest(firstBucket(sale), userId, requestId));
  const unitsLeft = async () => (await world.stock.readSale(firstBucket(sale)))?.unitsLeft;
  const order = liveOrderOf;
  /**
   * Subscribes to the purchase `k1` of each buyer, and waits for the subscription.
   * @returns a function that unsubscribes
   */
  const listen = async (userIds: string[], onNotification: (notification: unknown) => void): Promise<() => void> => {
    const { saleId } = sale;
    let isReady = false;
    const ends = [
      world.notifications.listen({ saleId, userId: 'other', requestId: 'k1' }, () => (isReady = true)),
      ...userIds.map((userId) =>
        world.notifications.listen({ saleId, userId, requestId: 'k1' }, (notification) => {
          if (notification !== null) onNotification(notification);
        }),
      ),
    ];
    await until('the subscription is ready', () => isReady);
    return () => ends.forEach((end) => end());
  };

  describe('markRecorded', () => {
    it('turns held purchases into orders and removes the batch from `pending` (DB_OK)', async () => {
      const batch = await deducted('u1*2', 'u2');
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101'), order('u2', '102')] }]);
      expect(await entryOf('u1')).to.deep.equal({ state: 'ordered', orderId: '101', quantity: 2 });
      expect(await entryOf('u2')).to.deep.equal({ state: 'ordered', orderId: '102', quantity: 1 });
      expect(await world.batches.pendingSummary(firstBucket(sale))).to.deep.equal({ batches: 0, oldestMs: 0 });
      expect(await unitsLeft()).to.equal(7);
    });

    it('notifies waiting buyers in the same write that makes their orders readable', async () => {
      const batch = await deducted('u1', 'u2');
      const received: unknown[] = [];
      const states: (string | undefined)[] = [];
      const end = await listen(['u1'], (notification) => {
        received.push(notification);
        void entryOf('u1').then((entry) => states.push(entry?.state));
      });
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101'), order('u2', '102')] }]);
      await until('it has come', () => states.length > 0);
      expect(received).to.deep.equal([{ ...order('u1', '101'), reason: null }]);
      expect(states).to.deep.equal(['ordered']);
      end();
    });

    it('sends no notification for a batch that is already recorded or partly released', async () => {
      const [again, partly, last] = [await deducted('u1'), await deducted('u2', 'u3'), await deducted('u9')];
      await world.batches.markRecorded([{ batch: again, orders: [order('u1', '101')] }]);
      await world.batches.release([releaseOf(firstBucket(sale), 'u2', '102', { batchId: partly.batchId })]);
      const received: unknown[] = [];
      const end = await listen(['u1', 'u2', 'u3', 'u9'], (notification) => received.push(notification));
      await world.batches.markRecorded([{ batch: again, orders: [order('u1', '101')] }]);
      await world.batches.markRecorded([{ batch: partly, orders: [order('u2', '102'), order('u3', '103')] }]);
      await world.batches.markRecorded([{ batch: last, orders: [order('u9', '109')] }]);
      await until('the last one has come', () => received.length > 0);
      expect(received, 'one channel keeps the order').to.deep.equal([{ ...order('u9', '109'), reason: null }]);
      end();
    });

    it('changes nothing on a second call, even with other order ids (IDEMPOTENT)', async () => {
      const batch = await deducted('u1');
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101')] }]);
      await world.batches.markRecorded([{ batch, orders: [order('u1', '999')] }]);
      expect(await entryOf('u1')).to.deep.equal({ state: 'ordered', orderId: '101', quantity: 1 });
    });

    it('reports a `failed` purchase as absent, and holds its units until its release', async () => {
      const batch = await deducted('u1', 'u2');
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101')] }]);
      expect((await entryOf('u2'))?.state).to.equal('held');
      await world.batches.markRecorded([{ batch, orders: [] }]);
      expect((await entryOf('u2'))?.state).to.equal('held');
    });

    it('keeps `released` purchases released, and leaves purchases of another batch held [C6]', async () => {
      const batch = await deducted('u1');
      const other = await deducted('u2');
      await world.batches.release([releaseOf(firstBucket(sale), 'u1', '101', { batchId: batch.batchId })]);
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101'), order('u2', '102'), order('u3', '1')] }]);
      expect((await entryOf('u1'))?.state).to.equal('released');
      expect(await entryOf('u2')).to.deep.equal({ state: 'held', batchId: other.batchId, quantity: 1 });
      expect(await entryOf('u3')).to.equal(null);
    });

    it('keeps the verdict of the marker, and removes its body', async () => {
      const batch = await deducted('u1');
      const [pending] = await world.batches.stalePending(firstBucket(sale), 0, 10);
      expect(pending?.body).to.equal(batch.body);
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101')] }]);
      expect(await world.stock.resolve(batch)).to.equal('deducted');
      expect(await world.stock.deduct(batch)).to.deep.equal({ outcome: 'already_deducted' });
    });

    it('accepts many batches at once, or no batch', async () => {
      const batches = [await deducted('u1'), await deducted('u2'), await deducted('u3')];
      await world.batches.markRecorded([]);
      await world.batches.markRecorded(
        batches.map((batch, index) => ({ batch, orders: [order(`u${index + 1}`, `10${index}`)] })),
      );
      expect((await world.batches.pendingSummary(firstBucket(sale))).batches).to.equal(0);
      expect((await entryOf('u3'))?.state).to.equal('ordered');
    });
  });

  describe('reacquire', () => {
    const olderBatch = (...texts: string[]): Batch => batchOf({ ...sale, epoch: 1 }, purchasesOf(...texts));
    const reacquire = (batch: Batch, ...recorded: string[]) => world.batches.reacquire(batch, 2, new Set(recorded));
    const claimed = (...lost: string[]) => ({ outcome: 'claimed', lost: new Set(lost), elsewhere: new Set() });
    beforeEach(async () => {
      sale = await openSale(world, { stock: 10, limitPerBuyer: 4, epoch: 2 });
    });

    it('holds units for purchases without a row or entry, and claims the marker of their batch [R4]', async () => {
      const batch = olderBatch('u1*2', 'u2', 'u3*4');
      expect(await reacquire(batch, 'u2/k1')).to.deep.equal(claimed());
      expect(await entryOf('u1')).to.deep.equal({ state: 'held', batchId: batch.batchId, quantity: 2 });
      expect(await entryOf('u2'), 'it has a row').to.equal(null);
      expect(await unitsLeft()).to.equal(4);
      expect(await world.stock.resolve(batch)).to.equal('claimed');
      expect(await world.stock.deduct(batch), 'a copy that comes late').to.deep.equal({ outcome: 'claimed' });
      const [pending] = await world.batches.stalePending(firstBucket(sale), 0, 10);
      expect(pending).to.include({ batchId: batch.batchId, body: batch.body });
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101'), order('u3', '103')] }]);
      expect((await entryOf('u3'))?.state).to.equal('ordered');
      expect((await world.batches.pendingSummary(firstBucket(sale))).batches).to.equal(0);
      expect(await world.stock.resolve(batch)).to.equal('claimed');
    });

    it('names purchases without units or beyond the limit, as counted within the batch [R3]', async () => {
      expect(await world.stock.deduct(batchOf(sale, purchasesOf('u1*3', 'u9*3')))).to.deep.equal({
        outcome: 'deducted',
      });
      const batch = olderBatch('u1/a*2', 'u2/a*3', 'u2/b*2', 'u3/a*2', 'u1/b');
      expect(await reacquire(batch)).to.deep.equal(claimed('u1/a', 'u2/b', 'u3/a'));
      expect(await unitsLeft()).to.equal(0);
      expect(await entryOf('u1', 'b')).to.deep.equal({ state: 'held', batchId: batch.batchId, quantity: 1 });
      const { answers } = await world.stock.precheck(firstBucket(sale), purchasesOf('u1/new', 'u4'));
      expect(answers.map((answer) => answer?.outcome)).to.deep.equal(['limit_reached', 'sold_out']);
    });

    it('names purchases held by another batch and leaves them unchanged, even if their quantity differs', async () => {
      const holder = batchOf(sale, purchasesOf('u1', 'u2*2'));
      await world.stock.deduct(holder);
      const late = olderBatch('u1*3', 'u2*2', 'u3');
      const expected = { outcome: 'claimed', lost: new Set(), elsewhere: new Set(['u1/k1', 'u2/k1']) };
      expect(await reacquire(late)).to.deep.equal(expected);
      expect(await reacquire(late), 'again').to.deep.equal(expected);
      expect(await entryOf('u1')).to.deep.equal({ state: 'held', batchId: holder.batchId, quantity: 1 });
      expect(await unitsLeft()).to.equal(6);
      await world.batches.markRecorded([{ batch: late, orders: [order('u1', '101'), order('u3', '103')] }]);
      expect((await entryOf('u1'))?.state, 'not its own').to.equal('held');
    });

    it('changes nothing on a second call, even if everything was lost before the first', async () => {
      const batch = olderBatch('u1*4', 'u2*4', 'u3*4');
      expect(await reacquire(batch)).to.deep.equal(claimed('u3/k1'));
      expect(await reacquire(batch)).to.deep.equal(claimed('u3/k1'));
      const late = olderBatch('u5*4');
      expect(await reacquire(late)).to.deep.equal(claimed('u5/k1'));
      expect(await world.stock.resolve(late)).to.equal('claimed');
      expect(await unitsLeft()).to.equal(2);
      expect((await world.batches.pendingSummary(firstBucket(sale))).batches).to.equal(2);
    });

    it('refuses the key of a lost purchase permanently, even if units are released later', async () => {
      const [winner, loser] = [batchOf(sale, purchasesOf('u1*4', 'u2*4', 'u4*2')), olderBatch('u3')];
      await world.stock.deduct(winner);
      expect(await reacquire(loser)).to.deep.equal(claimed('u3/k1'));
      const entry = { state: 'released', orderId: lostIn(loser.batchId), quantity: 1 };
      expect(await entryOf('u3'), 'it names the batch whose row it waits for').to.deep.equal(entry);
      expect(await world.stock.acceptedBuyerCount(firstBucket(sale)), 'a repeat is not answered from memory').to.equal(
        4,
      );
      await world.batches.release([releaseOf(firstBucket(sale), 'u1', '1')]);
      expect(await reacquire(loser), 'named again').to.deep.equal(claimed('u3/k1'));
      const { answers } = await world.stock.precheck(firstBucket(sale), purchasesOf('u3'));
      expect(answers.map((answer) => answer?.outcome)).to.deep.equal(['replayed']);
      expect(await unitsLeft()).to.equal(4);
    });

    it('leaves accepted purchases and the marker unchanged', async () => {
      const older = olderBatch('u1*2');
      sale = await openSale(world, { stock: 10, limitPerBuyer: 4 });
      const batch = { ...older, saleId: sale.saleId };
      await world.stock.deduct(batchOf(sale, purchasesOf('u1*2'), batch.batchId));
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101')] }]);
      expect(await world.batches.reacquire(batch, 1, new Set())).to.deep.equal(claimed());
      expect((await entryOf('u1'))?.state).to.equal('ordered');
      expect(await world.stock.resolve(batch)).to.equal('deducted');
      expect((await world.batches.pendingSummary(firstBucket(sale))).batches, 'it is recorded').to.equal(0);
      expect(await unitsLeft()).to.equal(8);
    });

    it('works in a paused or closed sale too', async () => {
      for (const state of ['paused', 'closed'] as const) {
        await world.sales.setState(sale, state);
        expect(await reacquire(olderBatch(`${state}*2`)), state).to.deep.equal(claimed());
      }
    });

    it('returns `unavailable` in another epoch or server and `not_warmed` without a sale, and writes nothing [R10]', async () => {
      const batch = olderBatch('u1');
      expect(await world.batches.reacquire(batch, 3, new Set())).to.deep.equal({ outcome: 'unavailable' });
      expect(await world.batches.reacquire(batch, 1, new Set())).to.deep.equal({ outcome: 'unavailable' });
      expect(await unitsLeft()).to.equal(10);
      expect(await world.stock.resolve(batch)).to.equal('outlived');
      await world.restart(firstBucket(sale));
      expect(await reacquire(batch)).to.deep.equal({ outcome: 'unavailable' });
      const nowhere = batchOf(saleOf(), purchasesOf('u1'));
      expect(await reacquire(nowhere)).to.deep.equal({ outcome: 'not_warmed' });
    });
  });

  it('still records and releases on another server, because a rebuild takes the orders from MySQL [R1]', async () => {
    const [one, two] = [await deducted('u1'), await deducted('u2')];
    await world.restart(firstBucket(sale));
    await world.batches.markRecorded([{ batch: one, orders: [order('u1', '101')] }]);
    const release = releaseOf(firstBucket(sale), 'u2', '102', { batchId: two.batchId });
    expect(await world.batches.release([release, release])).to.deep.equal(['released', 'nothing']);
    expect((await world.batches.pendingSummary(firstBucket(sale))).batches).to.equal(1);
  });

  describe('release', () => {
    it('returns the units of an ended order once for any number of calls [C3]', async () => {
      const batch = await deducted('u1*3');
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101')] }]);
      const release = releaseOf(firstBucket(sale), 'u1', '101');
      expect(await world.batches.release([release, release])).to.deep.equal(['released', 'nothing']);
      expect(await world.batches.release([release])).to.deep.equal(['nothing']);
      expect(await unitsLeft()).to.equal(10);
      expect(await entryOf('u1')).to.deep.equal({ state: 'released', orderId: '101', quantity: 3 });
    });

    it('lets the buyer buy again with a new key, but not with the old key', async () => {
      await deducted('u1*4');
      await world.batches.release([releaseOf(firstBucket(sale), 'u1', '101')]);
      const { answers } = await world.stock.precheck(firstBucket(sale), purchasesOf('u1/k1*4', 'u1/k2*4'));
      expect(answers[0]?.outcome).to.equal('replayed');
      expect(answers[1]).to.equal(null);
    });

    it('closes the request and lowers the count of the buyer when there are no units to return [D6]', async () => {
      await deducted('u1*4');
      expect(
        await world.batches.release([releaseOf(firstBucket(sale), 'u1', '101', { withUnits: false })]),
      ).to.deep.equal(['released']);
      expect(await unitsLeft()).to.equal(6);
      const { answers } = await world.stock.precheck(firstBucket(sale), purchasesOf('u1/k2*4'));
      expect(answers).to.deep.equal([null]);
    });

    it('releases an order of the request whatever its id, because a rewritten row has another id', async () => {
      const batch = await deducted('u1');
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101')] }]);
      expect(await world.batches.release([releaseOf(firstBucket(sale), 'u1', '999')])).to.deep.equal(['released']);
      expect(await entryOf('u1')).to.deep.equal({ state: 'released', orderId: '999', quantity: 1 });
      expect(await unitsLeft()).to.equal(10);
    });

    it('does nothing for another batch, or for a request that was never accepted', async () => {
      const batch = await deducted('u1', 'u2');
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101')] }]);
      const releases = [
        releaseOf(firstBucket(sale), 'u2', '102', { batchId: 'another-batch' }),
        releaseOf(firstBucket(sale), 'u3', '103'),
        releaseOf(firstBucket(sale), 'u1', '101', { requestId: 'k2' }),
      ];
      expect(await world.batches.release(releases)).to.deep.equal(['nothing', 'nothing', 'nothing']);
      expect(await unitsLeft()).to.equal(8);
    });

    it('returns one result per release, in order, and an empty list for no releases', async () => {
      const { batchId } = await deducted('u1', 'u2');
      const releases = [
        releaseOf(firstBucket(sale), 'u9', '1'),
        releaseOf(firstBucket(sale), 'u2', '102', { batchId }),
        releaseOf(firstBucket(sale), 'u1', '101'),
      ];
      expect(await world.batches.release(releases)).to.deep.equal(['nothing', 'released', 'released']);
      expect(await world.batches.release([])).to.deep.equal([]);
    });
  });

  describe('pending', () => {
    it('lists a limited number of old batches, oldest first, with age and body', async () => {
      const batches = [];
      for (const user of ['u1', 'u2', 'u3']) {
        batches.push(await deducted(user));
        await world.elapse(5);
      }
      const all = await world.batches.stalePending(firstBucket(sale), 0, 10);
      expect(all.map(({ batchId }) => batchId)).to.deep.equal(batches.map(({ batchId }) => batchId));
      expect(all.map(({ body }) => body)).to.deep.equal(batches.map(({ body }) => body));
      for (const { ageMs } of all) expect(ageMs).to.be.within(4, 60_000);
      const two = await world.batches.stalePending(firstBucket(sale), 0, 2);
      expect(two.map(({ batchId }) => batchId)).to.deep.equal(batches.slice(0, 2).map(({ batchId }) => batchId));
      const behind = await world.batches.stalePending(firstBucket(sale), 0, 10, undefined, 2);
      expect(behind.map(({ batchId }) => batchId)).to.deep.equal([batches[2]?.batchId]);
      expect(await world.batches.stalePending(firstBucket(sale), 3_600_000, 10)).to.deep.equal([]);
    });

    it('lists only selected batches, and asks for no selection without batches', async () => {
      const never = async (): Promise<Set<string>> => expect.fail('there are none to ask about');
      expect(await world.batches.stalePending(firstBucket(sale), 0, 10, never)).to.deep.equal([]);
      const [first, second, third] = [await deducted('u1'), await deducted('u2'), await deducted('u3')];
      await world.elapse(5);
      const asked: string[][] = [];
      const found = await world.batches.stalePending(firstBucket(sale), 0, 10, async (batchIds) => {
        asked.push([...batchIds]);
        return new Set([second.batchId, 'another']);
      });
      expect(asked.map((ids) => ids.toSorted())).to.deep.equal([
        [first, second, third].map(({ batchId }) => batchId).toSorted(),
      ]);
      expect(found.map(({ batchId, body }) => [batchId, body])).to.deep.equal([[second.batchId, second.body]]);
      const broken = async (): Promise<Set<string>> => Promise.reject(new Error('not of Redis'));
      const error = await world.batches.stalePending(firstBucket(sale), 0, 10, broken).catch((one: Error) => one);
      expect(error).to.include({ message: 'not of Redis' });
    });

    it('names the buckets with a pending batch, for any number of buckets', async () => {
      const other = await openSale(world, { buckets: 2 });
      const refs = [
        ...Array.from({ length: 1000 }, (_, bucket) => ({ saleId: other.saleId, bucket })),
        { saleId: sale.saleId, bucket: 0 },
      ];
      const none = { refs: [], faults: [] };
      expect(await world.batches.withPending(refs)).to.deep.equal(none);
      expect(await world.batches.withPending([])).to.deep.equal(none);
      const batch = await deducted('u1');
      expect(await world.batches.withPending(refs)).to.deep.equal({
        refs: [{ saleId: sale.saleId, bucket: 0 }],
        faults: [],
      });
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101')] }]);
      expect(await world.batches.withPending(refs)).to.deep.equal(none);
    });

    it('returns the number of batches and the age of the oldest', async () => {
      expect(await world.batches.pendingSummary(firstBucket(sale))).to.deep.equal({ batches: 0, oldestMs: 0 });
      await deducted('u1');
      await world.elapse(10);
      await deducted('u2');
      const { batches, oldestMs } = await world.batches.pendingSummary(firstBucket(sale));
      expect(batches).to.equal(2);
      expect(oldestMs).to.be.within(9, 60_000);
    });

    it('returns the number of overdue batches and their delay', async () => {
      expect(await world.batches.overduePending(firstBucket(sale), 0)).to.deep.equal({ batches: 0, oldestMs: 0 });
      await deducted('u1');
      await world.elapse(2_500);
      await deducted('u2');
      const { batches, oldestMs } = await world.batches.overduePending(firstBucket(sale), 2_000);
      expect(batches).to.equal(1);
      expect(oldestMs).to.be.within(499, 60_000);
      expect(await world.batches.overduePending(firstBucket(sale), 600_000)).to.deep.equal({
        batches: 0,
        oldestMs: 0,
      });
    });

    it('moves a parked batch out of `pending`, even repeatedly, and keeps its units [M8]', async () => {
      const batch = await deducted('u1*2');
      await world.batches.park(batch);
      await world.batches.park(batch);
      expect((await world.batches.pendingSummary(firstBucket(sale))).batches).to.equal(0);
      expect(await entryOf('u1')).to.deep.equal({ state: 'held', batchId: batch.batchId, quantity: 2 });
      expect(await unitsLeft()).to.equal(8);
      expect(await world.stock.resolve(batch)).to.equal('deducted');
    });
  });

  describe('takeDue and leaveAlone', () => {
    const LEASE_MS = 2_000;
    const takeAll = (max = 10, fromMs = 0, olderThanMs = 0) =>
      world.batches.takeDue(firstBucket(sale), { olderThanMs, leaseMs: LEASE_MS, max, fromMs });
    const taken = async (...args: Parameters<typeof takeAll>): Promise<string[]> =>
      (await takeAll(...args)).batches.map(({ batchId }) => batchId);
    const three = async (): Promise<string[]> => {
      const batchIds: string[] = [];
      for (const user of ['u1', 'u2', 'u3']) {
        batchIds.push((await deducted(user)).batchId);
        await world.elapse(5);
      }
      return batchIds;
    };

    it('takes the oldest batches with age and body, each only once per lease', async () => {
      const batch = await deducted('u1');
      await world.elapse(5);
      const second = await deducted('u2');
      const { batches, more } = await takeAll(1);
      expect(batches.map(({ batchId, body }) => [batchId, body])).to.deep.equal([[batch.batchId, batch.body]]);
      expect(batches[0]?.ageMs).to.be.within(4, 60_000);
      expect(more).to.equal(true);
      expect(await taken()).to.deep.equal([second.batchId]);
      expect(await taken()).to.deep.equal([]);
      await world.elapse(LEASE_MS + 20);
      expect(await taken()).to.have.members([batch.batchId, second.batchId]);
    });

    it('skips young, recorded and parked batches', async () => {
      const [recorded, parked] = [await deducted('u1'), await deducted('u2')];
      await world.batches.markRecorded([{ batch: recorded, orders: [order('u1', '101')] }]);
      await world.batches.park(parked);
      await deducted('u3');
      expect(await taken(10, 0, 3_600_000)).to.deep.equal([]);
      expect(await taken()).to.have.length(1);
    });

    it('forgets a taken batch that has been recorded since', async () => {
      const batch = await deducted('u1');
      await takeAll();
      await world.batches.markRecorded([{ batch, orders: [order('u1', '101')] }]);
      await world.elapse(LEASE_MS + 20);
      expect(await taken()).to.deep.equal([]);
    });

    it('returns every new batch when a caller continues after its last call', async () => {
      const batchIds = await three();
      const first = await takeAll(2);
      expect(first.batches.map(({ batchId }) => batchId)).to.deep.equal(batchIds.slice(0, 2));
      const second = await takeAll(2, first.nextFromMs);
      expect(second.batches.map(({ batchId }) => batchId)).to.deep.equal(batchIds.slice(2));
      const { batchId } = await deducted('u4');
      expect(await taken(2, second.nextFromMs)).to.deep.equal([batchId]);
    });

    it('honours the longest delay that is set before or after a batch is first taken', async () => {
      const { batchId } = await deducted('u1');
      await world.batches.leaveAlone(firstBucket(sale), [{ batchId, forMs: 3_000 }]);
      await world.batches.leaveAlone(firstBucket(sale), [{ batchId, forMs: 1 }]);
      await world.elapse(50);
      expect(await taken()).to.deep.equal([]);
      await world.elapse(3_000);
      expect(await taken()).to.deep.equal([batchId]);
      await world.batches.leaveAlone(firstBucket(sale), [{ batchId, forMs: 3_600_000 }]);
      await world.elapse(LEASE_MS + 20);
      expect(await taken()).to.deep.equal([]);
    });

    it('resets the delay of a batch that was parked and put back into `pending`', async () => {
      const batch = await deducted('u1');
      await world.batches.leaveAlone(firstBucket(sale), [{ batchId: batch.batchId, forMs: 3_600_000 }]);
      await world.batches.park(batch);
      await world.batches.unpark(batch);
      expect(await taken()).to.deep.equal([batch.batchId]);
    });
  });

  it('heldElsewhere: names only purchases that another batch holds', async () => {
    const [own, other] = [await deducted('u1', 'u2'), await deducted('u3', 'u4')];
    await world.batches.markRecorded([{ batch: other, orders: [order('u4', '104')] }]);
    const asked = batchOf(sale, [...own.purchases, ...other.purchases, ...purchasesOf('u5')], own.batchId);
    expect([...(await world.batches.heldElsewhere(asked))]).to.deep.equal(['u3/k1']);
  });

  describe('unpark', () => {
    it('puts a parked batch back into `pending` as a young batch, in any state of the sale [M8]', async () => {
      const batch = await deducted('u1*2');
      await world.batches.park(batch);
      await world.sales.setState(sale, 'closed');
      expect(await world.batches.unpark(batch)).to.equal('unparked');
      expect(await world.batches.unpark(batch)).to.equal('already_pending');
      const [pending, ...others] = await world.batches.stalePending(firstBucket(sale), 0, 10);
      expect([pending?.batchId, pending?.body, others]).to.deep.equal([batch.batchId, batch.body, []]);
      expect(await world.batches.stalePending(firstBucket(sale), 3_600_000, 10)).to.deep.equal([]);
      expect(await unitsLeft()).to.equal(8);
    });

    it('does not put back a batch that is recorded, never deducted or without a marker', async () => {
      const recorded = await deducted('u1');
      await world.batches.markRecorded([{ batch: recorded, orders: [order('u1', '101')] }]);
      const [aborted, unknown] = [batchOf(sale, purchasesOf('u2')), batchOf(sale, purchasesOf('u3'))];
      await world.stock.resolve(aborted);
      expect(await world.batches.unpark(recorded)).to.equal('recorded');
      expect(await world.batches.unpark(aborted)).to.equal('aborted');
      expect(await world.batches.unpark(unknown)).to.equal('unknown');
      expect((await world.batches.pendingSummary(firstBucket(sale))).batches).to.equal(0);
    });
  });
});
