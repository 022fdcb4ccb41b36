import { expect } from 'chai';
import type { Sale } from '../../src/core/sale.js';
import { openTransfers, unitsInTransit, type UnitTransfer } from '../../src/core/bucket.js';
import type { BucketState } from '../../src/core/ports/transfer-store.js';
import { STORE_WORLDS, openSale, type StoreWorld } from './store-worlds.js';
import { onEachWorld } from './on-each-world.js';

const [FROM, TO] = [0, 1];
const LEASE_MS = 60_000;

onEachWorld<StoreWorld>('contract TransferStore', STORE_WORLDS, (world) => {
  const refOf = ({ saleId }: Sale, bucket: number) => ({ saleId, bucket });
  const statesOf = async (sale: Sale): Promise<BucketState[]> => {
    const all = Array.from({ length: sale.buckets }, (_, bucket) => bucket);
    const states = await Promise.all(all.map((bucket) => world.transfers.read(refOf(sale, bucket), sale.buckets)));
    return states.filter((state): state is BucketState => state !== null);
  };
  const unitsOf = async (sale: Sale): Promise<number[]> => (await statesOf(sale)).map(({ unitsLeft }) => unitsLeft);
  const transferOut = (sale: Sale, { to = TO, least = 1, from = FROM, epoch = sale.epoch } = {}) =>
    world.transfers.transferOut(refOf(sale, from), to, epoch, least);
  const transferred = async (sale: Sale, parts: Parameters<typeof transferOut>[1] = {}): Promise<UnitTransfer> => {
    const answer = await transferOut(sale, parts);
    if (answer.outcome !== 'transferred') throw new Error(`transferOut: ${answer.outcome}`);
    return { from: parts?.from ?? FROM, to: parts?.to ?? TO, seq: answer.seq, units: answer.units };
  };

  it('moves units between two buckets in three steps, and counts the units at each step [R12]', async () => {
    const sale = await openSale(world, { stock: 20, buckets: 2 });
    expect((await statesOf(sale)).map(({ outgoing: out, incoming }) => [out, incoming.size])).to.deep.equal([
      [[], 0],
      [[], 0],
    ]);
    const transfer = await transferred(sale);
    expect(transfer).to.deep.equal({ from: FROM, to: TO, seq: 1, units: 5 });
    const inTransit = await statesOf(sale);
    expect(inTransit.map(({ unitsLeft }) => unitsLeft)).to.deep.equal([5, 10]);
    expect(unitsInTransit(inTransit)).to.equal(5);
    expect(await world.transfers.transferIn(sale.saleId, transfer, 1)).to.deep.equal({
      outcome: 'received',
      unitsLeft: 15,
    });
    const arrived = await statesOf(sale);
    expect([unitsInTransit(arrived), openTransfers(arrived).length]).to.deep.equal([0, 1]);
    expect(await world.transfers.endTransfer(sale.saleId, transfer, 1)).to.equal('ended');
    expect(openTransfers(await statesOf(sale))).to.deep.equal([]);
    expect(await unitsOf(sale)).to.deep.equal([5, 15]);
  });

  it('transferOut: moves half of the units, or more if needed and available', async () => {
    for (const [stock, least, units] of [
      [9, 1, 5] as const,
      [9, 7, 7] as const,
      [9, 20, 9] as const,
      [1, 1, 1] as const,
    ]) {
      const sale = await openSale(world, { stock: 2 * stock, buckets: 2 });
      expect((await transferred(sale, { least })).units, `${least} of ${stock}`).to.equal(units);
      expect(await unitsOf(sale)).to.deep.equal([stock - units, stock]);
    }
  });

  it('transferOut: repeats an open transfer of a pair of buckets, and serves another pair', async () => {
    const sale = await openSale(world, { stock: 30, buckets: 3 });
    const first = await transferred(sale);
    expect(await transferred(sale, { least: 4 })).to.deep.equal(first);
    expect(await unitsOf(sale)).to.deep.equal([5, 10, 10]);
    expect(await transferred(sale, { to: 2 })).to.include({ to: 2, seq: 1, units: 3 });
    expect(await unitsOf(sale)).to.deep.equal([2, 10, 10]);
    await world.transfers.transferIn(sale.saleId, first, 1);
    expect(await transferred(sale), 'not before the sending bucket has ended it').to.deep.equal(first);
    await world.transfers.endTransfer(sale.saleId, first, 1);
    expect(await transferred(sale)).to.include({ seq: 2, units: 1 });
  });

  it('empty: transfers nothing from a bucket without units, and stores nothing', async () => {
    const sale = await openSale(world, { stock: 1, buckets: 2 });
    expect(await transferOut(sale, { from: 1, to: 0 })).to.deep.equal({ outcome: 'empty' });
    expect((await statesOf(sale))[1]?.outgoing).to.deep.equal([]);
  });

  it('already_received: accepts a transfer only once, whether repeated or late', async () => {
    const sale = await openSale(world, { stock: 20, buckets: 2 });
    const first = await transferred(sale);
    await world.transfers.transferIn(sale.saleId, first, 1);
    const again = await world.transfers.transferIn(sale.saleId, first, 1);
    expect(again).to.deep.equal({ outcome: 'already_received', unitsLeft: 15 });
    await world.transfers.endTransfer(sale.saleId, first, 1);
    const second = await transferred(sale);
    await world.transfers.transferIn(sale.saleId, second, 1);
    expect(await world.transfers.transferIn(sale.saleId, first, 1)).to.include({ outcome: 'already_received' });
    expect(await unitsOf(sale)).to.deep.equal([2, 18]);
  });

  it('already_ended: does not end the current transfer by a late call for an earlier transfer', async () => {
    const sale = await openSale(world, { stock: 20, buckets: 2 });
    const first = await transferred(sale);
    await world.transfers.transferIn(sale.saleId, first, 1);
    await world.transfers.endTransfer(sale.saleId, first, 1);
    expect(await world.transfers.endTransfer(sale.saleId, first, 1)).to.equal('already_ended');
    const second = await transferred(sale);
    expect(await world.transfers.endTransfer(sale.saleId, first, 1)).to.equal('already_ended');
    expect(openTransfers(await statesOf(sale))).to.have.length(1);
    expect(await transferred(sale)).to.deep.equal(second);
  });

  it('unavailable: moves nothing for a bucket that is not loaded, in another epoch, in repair or on another server', async () => {
    const sale = await openSale(world, { stock: 20, buckets: 2 });
    const transfer = await transferred(sale);
    const before = await statesOf(sale);
    const expectUnavailable = async (epoch: number): Promise<void> => {
      expect(await transferOut(sale, { epoch })).to.deep.equal({ outcome: 'unavailable' });
      expect(await world.transfers.transferIn(sale.saleId, transfer, epoch)).to.deep.equal({
        outcome: 'unavailable',
      });
      expect(await world.transfers.endTransfer(sale.saleId, transfer, epoch)).to.equal('unavailable');
    };
    for (const epoch of [0, 2]) await expectUnavailable(epoch);
    const strip = (states: BucketState[]) =>
      states.map(({ outgoing: out, ...state }) => ({ ...state, out: out.length }));
    expect(strip(await statesOf(sale))).to.deep.equal(strip(before));
    await expectUnavailableOfMissing(sale, transfer);
    for (const bucket of [FROM, TO]) await world.repair.lock(refOf(sale, bucket), 'a-token', LEASE_MS);
    await expectUnavailable(1);
    expect(await statesOf(sale), 'units in repair are not counted').to.deep.equal([]);
    const restarted = await openSale(world, { stock: 20, buckets: 2 });
    for (const bucket of [FROM, TO]) await world.restart(refOf(restarted, bucket));
    expect(await transferOut(restarted)).to.deep.equal({ outcome: 'unavailable' });
    expect(await world.transfers.transferIn(restarted.saleId, transfer, 1)).to.deep.equal({ outcome: 'unavailable' });
    expect(await world.transfers.endTransfer(restarted.saleId, transfer, 1)).to.equal('unavailable');
    expect(await statesOf(restarted)).to.deep.equal([]);
  });

  const expectUnavailableOfMissing = async (sale: Sale, transfer: UnitTransfer): Promise<void> => {
    expect(await transferOut(sale, { from: 7 })).to.deep.equal({ outcome: 'unavailable' });
    const notLoaded = { ...transfer, from: 7, to: 7 };
    expect(await world.transfers.transferIn(sale.saleId, notLoaded, 1)).to.deep.equal({ outcome: 'unavailable' });
    expect(await world.transfers.endTransfer(sale.saleId, notLoaded, 1)).to.equal('unavailable');
    expect(await world.transfers.read(refOf(sale, 7), 2)).to.equal(null);
  };

  it('moves nothing in a rebuilt bucket on a late call from before the repair [R10]', async () => {
    const sale = await openSale(world, { stock: 20, buckets: 2 });
    const late = await transferred(sale);
    const { opensAtMs, closesAtMs, limitPerBuyer, buckets } = sale;
    const terms = { state: 'open', opensAtMs, closesAtMs, limitPerBuyer, buckets } as const;
    const rebuilt = { ...terms, epoch: 2, unitsLeft: 10 };
    for (const bucket of [FROM, TO]) {
      await world.repair.lock(refOf(sale, bucket), 'a-token', LEASE_MS);
      expect(await world.repair.swap(refOf(sale, bucket), 'a-token', rebuilt)).to.equal('swapped');
    }
    expect(await world.transfers.transferIn(sale.saleId, late, 1)).to.deep.equal({ outcome: 'unavailable' });
    expect(await world.transfers.endTransfer(sale.saleId, late, 1)).to.equal('unavailable');
    expect(await transferOut(sale)).to.deep.equal({ outcome: 'unavailable' });
    const states = await statesOf(sale);
    expect(states.map(({ epoch, unitsLeft, outgoing: out }) => [epoch, unitsLeft, out])).to.deep.equal([
      [2, 10, []] as const,
      [2, 10, []] as const,
    ]);
    expect(await transferred(sale, { epoch: 2 })).to.include({ seq: 1, units: 5 });
  });

  it('returns how long ago the units of a transfer left', async () => {
    const sale = await openSale(world, { stock: 20, buckets: 2 });
    await transferred(sale);
    await world.elapse(30);
    const [open] = openTransfers(await statesOf(sale));
    expect(open?.ageMs).to.be.within(29, 10_000);
  });
});
