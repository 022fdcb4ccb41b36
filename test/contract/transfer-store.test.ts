import { expect } from 'chai';
import type { Sale } from '../../src/core/sale.js';
import { openTransfers, unitsInTransit, type UnitTransfer } from '../../src/core/bucket.js';
import type { BucketState } from '../../src/core/ports/transfer-store.js';
import { WORLD_TIMEOUT_MS } from '../helpers/redis-cluster.js';
import { STORE_WORLDS, openSale, type StoreWorld } from './store-worlds.js';

const [FROM, TO] = [0, 1];
const LEASE_MS = 60_000;

for (const [name, createWorld] of STORE_WORLDS) {
  describe(`contract TransferStore on ${name}`, () => {
    let world: StoreWorld;
    before(async function () {
      this.timeout(WORLD_TIMEOUT_MS);
      world = await createWorld();
    });
    after(() => world?.close());

    const refOf = ({ saleId }: Sale, bucket: number) => ({ saleId, bucket });
    const looksAt = async (sale: Sale): Promise<BucketState[]> => {
      const all = Array.from({ length: sale.buckets }, (_, bucket) => bucket);
      const looks = await Promise.all(all.map((bucket) => world.transfers.read(refOf(sale, bucket), sale.buckets)));
      return looks.filter((look): look is BucketState => look !== null);
    };
    const unitsOf = async (sale: Sale): Promise<number[]> => (await looksAt(sale)).map(({ unitsLeft }) => unitsLeft);
    const lend = (sale: Sale, { to = TO, least = 1, from = FROM, epoch = sale.epoch } = {}) =>
      world.transfers.transferOut(refOf(sale, from), to, epoch, least);
    const lent = async (sale: Sale, parts: Parameters<typeof lend>[1] = {}): Promise<UnitTransfer> => {
      const said = await lend(sale, parts);
      if (said.outcome !== 'transferred') throw new Error(`lend: ${said.outcome}`);
      return { from: parts?.from ?? FROM, to: parts?.to ?? TO, seq: said.seq, units: said.units };
    };

    it('units go from one bucket to the other in three steps, and are counted at each [R12]', async () => {
      const sale = await openSale(world, { stock: 20, buckets: 2 });
      expect((await looksAt(sale)).map(({ outgoing: out, incoming }) => [out, incoming.size])).to.deep.equal([
        [[], 0],
        [[], 0],
      ]);
      const transfer = await lent(sale);
      expect(transfer).to.deep.equal({ from: FROM, to: TO, seq: 1, units: 5 });
      const under = await looksAt(sale);
      expect(under.map(({ unitsLeft }) => unitsLeft)).to.deep.equal([5, 10]);
      expect(unitsInTransit(under)).to.equal(5);
      expect(await world.transfers.transferIn(sale.saleId, transfer, 1)).to.deep.equal({
        outcome: 'received',
        unitsLeft: 15,
      });
      const there = await looksAt(sale);
      expect([unitsInTransit(there), openTransfers(there).length]).to.deep.equal([0, 1]);
      expect(await world.transfers.endTransfer(sale.saleId, transfer, 1)).to.equal('ended');
      expect(openTransfers(await looksAt(sale))).to.deep.equal([]);
      expect(await unitsOf(sale)).to.deep.equal([5, 15]);
    });

    it('transferOut: half, rounded up; so many as are needed where that is more; never more than there are', async () => {
      for (const [stock, least, units] of [
        [9, 1, 5] as const,
        [9, 7, 7] as const,
        [9, 20, 9] as const,
        [1, 1, 1] as const,
      ]) {
        const sale = await openSale(world, { stock: 2 * stock, buckets: 2 });
        expect((await lent(sale, { least })).units, `${least} of ${stock}`).to.equal(units);
        expect(await unitsOf(sale)).to.deep.equal([stock - units, stock]);
      }
    });

    it('transferOut of a pair that is open names the same units, and takes no others; of another pair it does', async () => {
      const sale = await openSale(world, { stock: 30, buckets: 3 });
      const first = await lent(sale);
      expect(await lent(sale, { least: 4 })).to.deep.equal(first);
      expect(await unitsOf(sale)).to.deep.equal([5, 10, 10]);
      expect(await lent(sale, { to: 2 })).to.include({ to: 2, seq: 1, units: 3 });
      expect(await unitsOf(sale)).to.deep.equal([2, 10, 10]);
      await world.transfers.transferIn(sale.saleId, first, 1);
      expect(await lent(sale), 'not before the lender knows').to.deep.equal(first);
      await world.transfers.endTransfer(sale.saleId, first, 1);
      expect(await lent(sale)).to.include({ seq: 2, units: 1 });
    });

    it('empty: a bucket without units lends none, and remembers nothing', async () => {
      const sale = await openSale(world, { stock: 1, buckets: 2 });
      expect(await lend(sale, { from: 1, to: 0 })).to.deep.equal({ outcome: 'empty' });
      expect((await looksAt(sale))[1]?.outgoing).to.deep.equal([]);
    });

    it('already_received: a transfer arrives once, repeated or late, for ever', async () => {
      const sale = await openSale(world, { stock: 20, buckets: 2 });
      const first = await lent(sale);
      await world.transfers.transferIn(sale.saleId, first, 1);
      const again = await world.transfers.transferIn(sale.saleId, first, 1);
      expect(again).to.deep.equal({ outcome: 'already_received', unitsLeft: 15 });
      await world.transfers.endTransfer(sale.saleId, first, 1);
      const second = await lent(sale);
      await world.transfers.transferIn(sale.saleId, second, 1);
      expect(await world.transfers.transferIn(sale.saleId, first, 1)).to.include({ outcome: 'already_received' });
      expect(await unitsOf(sale)).to.deep.equal([2, 18]);
    });

    it('already_confirmed: a late word of an earlier transfer does not end the present one', async () => {
      const sale = await openSale(world, { stock: 20, buckets: 2 });
      const first = await lent(sale);
      await world.transfers.transferIn(sale.saleId, first, 1);
      await world.transfers.endTransfer(sale.saleId, first, 1);
      expect(await world.transfers.endTransfer(sale.saleId, first, 1)).to.equal('already_ended');
      const second = await lent(sale);
      expect(await world.transfers.endTransfer(sale.saleId, first, 1)).to.equal('already_ended');
      expect(openTransfers(await looksAt(sale))).to.have.length(1);
      expect(await lent(sale)).to.deep.equal(second);
    });

    it('unavailable: a bucket that is not loaded, of another epoch, in repair or on another server moves nothing', async () => {
      const sale = await openSale(world, { stock: 20, buckets: 2 });
      const transfer = await lent(sale);
      const before = await looksAt(sale);
      const expectShut = async (epoch: number): Promise<void> => {
        expect(await lend(sale, { epoch })).to.deep.equal({ outcome: 'unavailable' });
        expect(await world.transfers.transferIn(sale.saleId, transfer, epoch)).to.deep.equal({
          outcome: 'unavailable',
        });
        expect(await world.transfers.endTransfer(sale.saleId, transfer, epoch)).to.equal('unavailable');
      };
      for (const epoch of [0, 2]) await expectShut(epoch);
      const strip = (looks: BucketState[]) => looks.map(({ outgoing: out, ...look }) => ({ ...look, out: out.length }));
      expect(strip(await looksAt(sale))).to.deep.equal(strip(before));
      await expectShutOfMissing(sale, transfer);
      for (const bucket of [FROM, TO]) await world.repair.lock(refOf(sale, bucket), 'a-token', LEASE_MS);
      await expectShut(1);
      expect(await looksAt(sale), 'nobody may count it').to.deep.equal([]);
      const restarted = await openSale(world, { stock: 20, buckets: 2 });
      for (const bucket of [FROM, TO]) await world.restart(refOf(restarted, bucket));
      expect(await lend(restarted)).to.deep.equal({ outcome: 'unavailable' });
      expect(await world.transfers.transferIn(restarted.saleId, transfer, 1)).to.deep.equal({ outcome: 'unavailable' });
      expect(await world.transfers.endTransfer(restarted.saleId, transfer, 1)).to.equal('unavailable');
      expect(await looksAt(restarted)).to.deep.equal([]);
    });

    const expectShutOfMissing = async (sale: Sale, transfer: UnitTransfer): Promise<void> => {
      expect(await lend(sale, { from: 7 })).to.deep.equal({ outcome: 'unavailable' });
      const astray = { ...transfer, from: 7, to: 7 };
      expect(await world.transfers.transferIn(sale.saleId, astray, 1)).to.deep.equal({ outcome: 'unavailable' });
      expect(await world.transfers.endTransfer(sale.saleId, astray, 1)).to.equal('unavailable');
      expect(await world.transfers.read(refOf(sale, 7), 2)).to.equal(null);
    };

    it('a rebuilt bucket begins anew: what came late from before the repair moves nothing [R10]', async () => {
      const sale = await openSale(world, { stock: 20, buckets: 2 });
      const late = await lent(sale);
      const { opensAtMs, closesAtMs, limitPerBuyer, buckets } = sale;
      const terms = { state: 'open', opensAtMs, closesAtMs, limitPerBuyer, buckets } as const;
      const rebuilt = { ...terms, epoch: 2, unitsLeft: 10 };
      for (const bucket of [FROM, TO]) {
        await world.repair.lock(refOf(sale, bucket), 'a-token', LEASE_MS);
        expect(await world.repair.swap(refOf(sale, bucket), 'a-token', rebuilt)).to.equal('swapped');
      }
      expect(await world.transfers.transferIn(sale.saleId, late, 1)).to.deep.equal({ outcome: 'unavailable' });
      expect(await world.transfers.endTransfer(sale.saleId, late, 1)).to.equal('unavailable');
      expect(await lend(sale)).to.deep.equal({ outcome: 'unavailable' });
      const looks = await looksAt(sale);
      expect(looks.map(({ epoch, unitsLeft, outgoing: out }) => [epoch, unitsLeft, out])).to.deep.equal([
        [2, 10, []] as const,
        [2, 10, []] as const,
      ]);
      expect(await lent(sale, { epoch: 2 })).to.include({ seq: 1, units: 5 });
    });

    it('a transfer has the time since its units left', async () => {
      const sale = await openSale(world, { stock: 20, buckets: 2 });
      await lent(sale);
      await world.elapse(30);
      const [open] = openTransfers(await looksAt(sale));
      expect(open?.ageMs).to.be.within(29, 10_000);
    });
  });
}
