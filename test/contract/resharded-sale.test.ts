import { expect } from 'chai';
import type { Batch } from '../../src/core/batch.js';
import { type Sale } from '../../src/core/sale.js';
import { bucketRefsOf, homeBucket } from '../../src/core/bucket.js';
import { RebuiltRequests } from '../../src/recovery/repair/rebuilt-requests.js';
import { batchOf, liveOrderOf, purchasesOf } from '../helpers/sales.js';
import { firstBucket, openSale, STORE_WORLDS, type StoreWorld } from './store-worlds.js';
import { onEachWorld } from './on-each-world.js';

const BUCKETS = 4;
/** A buyer who stays in bucket 0 of four, and one who moves to another bucket. */
const [STAYS, MOVES] = ['u1', 'u2', 'u3', 'u4', 'u5'].reduce<[string, string]>(
  ([stays, moves], userId) => (homeBucket(userId, BUCKETS) === 0 ? [userId, moves] : [stays, userId]),
  ['', ''],
);
const HOME = homeBucket(MOVES, BUCKETS);

onEachWorld<StoreWorld>('contract resharded sale', STORE_WORLDS, (world) => {
  let oneBucket: Sale;
  let sale: Sale;
  beforeEach(async () => {
    oneBucket = await openSale(world, { stock: 8, limitPerBuyer: 2 });
    sale = { ...oneBucket, buckets: BUCKETS, epoch: 2 };
  });

  const deducted = async (...texts: string[]): Promise<Batch> => {
    const batch = batchOf(oneBucket, purchasesOf(...texts));
    expect(await world.stock.deduct(batch)).to.deep.equal({ outcome: 'deducted' });
    return batch;
  };
  const home = (userId: string) => ({
    saleId: sale.saleId,
    bucket: homeBucket(userId, BUCKETS),
    buckets: BUCKETS,
  });
  const entryOf = (userId: string) => world.stock.findRequest(home(userId), userId, 'k1');
  const pendingIn = async (): Promise<number[]> =>
    (await world.batches.withPending(bucketRefsOf(sale))).refs.map(({ bucket }) => bucket);
  const unitsLeft = async (): Promise<number> => {
    const states = await Promise.all(bucketRefsOf(sale).map((ref) => world.stock.readSale(ref)));
    return states.reduce((sum, state) => sum + (state?.unitsLeft ?? 0), 0);
  };
  const order = liveOrderOf;

  /** Reshards as the repair does. @param pending batches in `pending` */
  const reshard = async (...pending: Batch[]): Promise<void> => {
    const rebuiltRequests = new RebuiltRequests(sale);
    const refs = bucketRefsOf(sale);
    for (const ref of refs) expect(await world.repair.lock(ref, 'one', 60_000)).to.equal('locked');
    for await (const requests of world.repair.requestsWithUnits(firstBucket(oneBucket)))
      rebuiltRequests.addUnrecorded(requests);
    const entries = rebuiltRequests.takeUnstaged();
    for (const ref of refs) await world.repair.stage(ref, 'one', entries[ref.bucket] ?? []);
    expect(await world.repair.pendingBodies(firstBucket(oneBucket))).to.have.members(pending.map(({ body }) => body));
    for (const batch of pending) {
      for (const bucket of rebuiltRequests.homesOfHeld(batch)) {
        if (bucket !== 0) expect(await world.repair.restoreMarker(batch, bucket, 'one', true)).to.equal('restored');
      }
    }
    for (const ref of refs) {
      const { epoch, opensAtMs, closesAtMs, limitPerBuyer, buckets } = sale;
      const terms = { state: 'open', epoch, opensAtMs, closesAtMs, limitPerBuyer, buckets } as const;
      const rebuilt = { ...terms, unitsLeft: rebuiltRequests.unitsLeft[ref.bucket] ?? 0 };
      expect(await world.repair.swap(ref, 'one', rebuilt)).to.equal('swapped');
    }
  };

  it('refuses a purchase with an old snapshot, and returns the current number of buckets', async () => {
    await reshard();
    const old = { ...firstBucket(oneBucket), buckets: 1 };
    const verdict = await world.stock.precheck(old, purchasesOf(MOVES));
    expect(verdict).to.deep.equal({ epoch: 2, unitsLeft: null, buckets: 4, answers: [{ outcome: 'loading' }] });
    expect(await world.stock.findRequest(old, MOVES, 'k1')).to.equal('unsure');
    expect(await world.stock.readSale(old)).to.equal(null);
    expect(await world.transfers.read(firstBucket(oneBucket), 1)).to.equal(null);
    const fresh = await world.stock.precheck(home(MOVES), purchasesOf(MOVES));
    expect(fresh).to.deep.equal({ epoch: 2, unitsLeft: 2, buckets: 4, answers: [null] });
  });

  it('answers accepted keys from the present bucket of their buyers, where the limit counts too', async () => {
    const batch = await deducted(`${STAYS}*2`, `${MOVES}*2`);
    await reshard(batch);
    for (const userId of [STAYS, MOVES]) {
      const { answers } = await world.stock.precheck(home(userId), purchasesOf(`${userId}/k1*2`, `${userId}/k2`));
      const entry = { state: 'held', batchId: batch.batchId, quantity: 2 };
      expect(answers).to.deep.equal([{ outcome: 'replayed', entry }, { outcome: 'limit_reached' }]);
    }
    expect(await unitsLeft()).to.equal(4);
  });

  it('marks an older batch recorded in every bucket that holds its buyers', async () => {
    const batch = await deducted(STAYS, MOVES);
    await reshard(batch);
    expect(await pendingIn()).to.have.members([0, HOME]);
    await world.batches.markRecorded([{ batch, orders: [order(STAYS, '11'), order(MOVES, '12')] }]);
    expect(await pendingIn()).to.deep.equal([]);
    expect(await entryOf(STAYS)).to.deep.equal({ state: 'ordered', orderId: '11', quantity: 1 });
    expect(await entryOf(MOVES)).to.deep.equal({ state: 'ordered', orderId: '12', quantity: 1 });
  });

  it('releases units of an older batch once, to the present bucket of the buyer', async () => {
    const batch = await deducted(MOVES);
    await reshard(batch);
    const there = async (): Promise<number> => (await world.stock.readSale(home(MOVES)))?.unitsLeft ?? 0;
    const unitsThere = await there();
    const release = { ...firstBucket(oneBucket), ...order(MOVES, '12'), batchId: batch.batchId, withUnits: true };
    expect(await world.batches.release([release])).to.deep.equal(['released']);
    expect(await world.batches.release([release])).to.deep.equal(['nothing']);
    expect(await unitsLeft()).to.equal(8);
    expect(await there()).to.equal(unitsThere + 1);
  });

  it("reacquires units of an older batch once, for each buyer in that buyer's present bucket", async () => {
    await reshard();
    const late = batchOf(oneBucket, purchasesOf(`${STAYS}*2`, `${MOVES}*2`));
    for (const time of ['first', 'again']) {
      const answer = await world.batches.reacquire(late, 2, new Set());
      expect(answer, time).to.deep.equal({ outcome: 'claimed', lost: new Set(), elsewhere: new Set() });
      expect(await unitsLeft(), time).to.equal(4);
    }
    const entry = { state: 'held', batchId: late.batchId, quantity: 2 };
    expect([await entryOf(STAYS), await entryOf(MOVES)]).to.deep.equal([entry, entry]);
    expect(await pendingIn()).to.have.members([0, HOME]);
    expect(await world.stock.resolve(late)).to.equal('claimed');
  });

  it('reacquire: names lost keys in any bucket, and waits until the epoch is that of MySQL', async () => {
    await reshard();
    const late = batchOf(oneBucket, purchasesOf(`${STAYS}*2`, `${MOVES}*3`));
    expect(await world.batches.reacquire(late, 3, new Set())).to.deep.equal({ outcome: 'unavailable' });
    expect(await unitsLeft()).to.equal(8);
    const lost = new Set([`${MOVES}/k1`]); // The limit is two.
    const elsewhere = new Set();
    expect(await world.batches.reacquire(late, 2, new Set())).to.deep.equal({
      outcome: 'claimed',
      lost,
      elsewhere,
    });
    expect(await unitsLeft()).to.equal(6);
  });

  it('reacquire: names keys held by another batch in any bucket', async () => {
    const holder = await deducted(STAYS, MOVES);
    await reshard(holder);
    const late = batchOf(oneBucket, purchasesOf(`${STAYS}*2`, `${MOVES}*2`));
    const elsewhere = new Set([`${STAYS}/k1`, `${MOVES}/k1`]);
    const answer = await world.batches.reacquire(late, 2, new Set());
    expect(answer).to.deep.equal({ outcome: 'claimed', lost: new Set(), elsewhere });
  });

  it('removes a parked batch from `pending` in every bucket, and returns it to every bucket', async () => {
    const batch = await deducted(STAYS, MOVES);
    await reshard(batch);
    await world.batches.park(batch);
    expect(await pendingIn()).to.deep.equal([]);
    expect(await world.batches.unpark(batch)).to.equal('unparked');
    expect(await pendingIn()).to.have.members([0, HOME]);
    expect(await world.batches.unpark(batch)).to.equal('already_pending');
  });
});
