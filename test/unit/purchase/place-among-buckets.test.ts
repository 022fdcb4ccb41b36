import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import { homeBucket, type Sale } from '../../../src/core/sale.js';
import type { PurchaseChannel } from '../../../src/core/ports/channels.js';
import { placeAmongBuckets } from '../../../src/purchase/place-among-buckets.js';
import type { PlacedBatch } from '../../../src/purchase/place-batch.js';
import { UnitFetcher } from '../../../src/sales/stock/gather-units.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryBroker } from '../../helpers/memory/memory-broker.js';
import { MemoryStore } from '../../helpers/memory/memory-store.js';
import { MemoryTransfers } from '../../helpers/memory/memory-transfers.js';
import { purchasesOf, saleOf } from '../../helpers/sales.js';

interface Placed extends PlacedBatch {
  readonly answers: readonly (string | undefined)[];
}

/** Buyers of the first of two buckets. */
const [ANN = '', BOB = '', CID = ''] = Array.from({ length: 40 }, (_, at) => `u${at}`).filter(
  (user) => homeBucket(user, 2) === 0,
);

describe('place-among-buckets (P2 R3 BUCKET_EMPTY, R4 BUCKET_ALL_EMPTY)', () => {
  let clock: ManualClock;
  let store: MemoryStore;
  let transfers: MemoryTransfers;
  let units: Pick<UnitFetcher, 'fetch'>;
  let channel: PurchaseChannel;
  let sale: Sale;

  beforeEach(() => {
    clock = new ManualClock();
    store = new MemoryStore({ clock });
    transfers = new MemoryTransfers(store);
    units = new UnitFetcher(transfers);
    channel = new MemoryBroker({ clock }).purchaseChannel(async () => 'no_answer');
  });
  const bucket = (index: number) => store.bucket({ saleId: sale.saleId, bucket: index });
  const openSale = async (...left: readonly [number, number]): Promise<void> => {
    sale = saleOf({ stock: 2, buckets: 2, limitPerBuyer: 9 }, clock.nowMs());
    await store.warm(sale);
    await store.setState(sale, 'open');
    left.forEach((count, index) => (bucket(index).unitsLeft = count));
  };
  const place = async (...texts: string[]): Promise<Placed> => {
    const answers: (string | undefined)[] = texts.map(() => undefined);
    const home = { saleId: sale.saleId, bucket: 0, buckets: 2 };
    const reply = (index: number, { outcome }: { outcome: string }): void => {
      expect(answers[index], 'one answer each').to.equal(undefined);
      answers[index] = outcome;
    };
    const placed = await placeAmongBuckets(home, purchasesOf(...texts), '', reply, { store, channel, units, clock });
    return { ...placed, answers };
  };

  it('bucket_empty: the units of the other bucket come, and the purchase goes again [R12]', async () => {
    await openSale(0, 4);
    expect(await place(ANN)).to.deep.equal({
      ...{ verdict: 'bucket_empty', again: [0], unitsLeft: null, answers: [undefined] },
    });
    expect([bucket(0).unitsLeft, bucket(1).unitsLeft]).to.deep.equal([2, 2]);
    expect((await place(ANN)).answers).to.deep.equal(['accepted']);
  });

  it('those whose units are there do not wait for the others', async () => {
    await openSale(1, 1);
    expect(await place(ANN, BOB)).to.deep.equal({
      ...{ verdict: 'accepted', again: [1], unitsLeft: 1, answers: ['accepted', undefined] },
    });
    expect((await place(BOB)).answers).to.deep.equal(['accepted']);
  });

  it('sold_out only after every bucket, and only then the flag may be armed [R12]', async () => {
    await openSale(0, 0);
    expect(await place(ANN, BOB)).to.deep.equal({
      ...{ verdict: 'all_answered_by_precheck', again: [], unitsLeft: 0, answers: ['sold_out', 'sold_out'] },
    });
  });

  it('a purchase of more than there is hears sold_out; a smaller one goes on', async () => {
    await openSale(0, 2);
    const placed = await place(`${ANN}*3`, `${BOB}*2`, CID);
    expect([placed.answers, placed.again]).to.deep.equal([
      [undefined, undefined, undefined],
      [0, 1, 2],
    ]);
    const { answers, again, unitsLeft } = await place(`${ANN}*3`);
    expect([answers, again, unitsLeft]).to.deep.equal([['sold_out'], [], 2]);
    expect(await place(`${BOB}*2`), 'now the second unit comes').to.deep.include({
      verdict: 'bucket_empty',
      again: [0],
    });
    expect((await place(`${BOB}*2`)).answers).to.deep.equal(['accepted']);
  });

  it('units between two buckets are no sold_out', async () => {
    await openSale(0, 1);
    await transfers.transferOut({ saleId: sale.saleId, bucket: 1 }, 0, 1, 1); // and its process died
    expect(await place(ANN)).to.include({ verdict: 'bucket_empty' });
    expect((await place(ANN)).answers).to.deep.equal(['accepted']);
  });

  it('who has won and asks again hears how it stands, and zero units in his bucket say nothing of the sale', async () => {
    await openSale(1, 1);
    await place(ANN);
    expect(await place(ANN))
      .to.include({ unitsLeft: null })
      .and.to.deep.include({ answers: ['replayed'] });
  });

  it('what cannot be counted is never sold_out: loading, overloaded, unavailable', async () => {
    for (const [word, outcome] of [['unsure', 'loading'] as const, ['moving', 'overloaded'] as const]) {
      await openSale(0, 0);
      units = { fetch: async () => ({ outcome: word }) };
      const placed = await place(ANN, BOB);
      expect([placed.answers, placed.again, placed.unitsLeft]).to.deep.equal([[outcome, outcome], [], null]);
    }
    units = { fetch: () => Promise.reject(new OperationalError('redis', 'away', { retryable: true })) };
    await openSale(1, 0);
    expect((await place(ANN, BOB)).answers).to.deep.equal(['accepted', 'unavailable']);
    units = { fetch: () => Promise.reject(new TypeError('a bug')) };
    const bug = await place(CID).catch((error: unknown) => error);
    expect(bug).to.be.instanceOf(TypeError);
  });
});
