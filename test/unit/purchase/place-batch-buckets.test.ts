import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import { type Sale } from '../../../src/core/sale.js';
import { homeBucket } from '../../../src/core/bucket.js';
import type { PurchaseChannel } from '../../../src/core/ports/channels.js';
import { placeBatch, type Deliver } from '../../../src/purchase/place-batch.js';
import { UnitFetcher } from '../../../src/sales/stock/gather-units.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryBroker } from '../../helpers/memory/memory-broker.js';
import { MemoryRedis } from '../../helpers/memory/memory-redis.js';
import { MemoryTransferStore } from '../../helpers/memory/memory-transfer-store.js';
import { purchasesOf, saleOf } from '../../helpers/sales.js';
import { silentLog } from '../../helpers/silent-log.js';
import { partial } from '../../helpers/partial.js';

interface Placed {
  readonly verdict: string;
  /** The result of each purchase. */
  readonly results: readonly string[];
  /** Units left, as reported to the sold-out flags. */
  readonly unitsLeft: number | null | undefined;
}

/** Buyers of the first of two buckets. */
const [ANN = '', BOB = '', CID = ''] = Array.from({ length: 40 }, (_, at) => `u${at}`).filter(
  (user) => homeBucket(user, 2) === 0,
);

describe('place-batch in a sale with several buckets', () => {
  let clock: ManualClock;
  let store: MemoryRedis;
  let transfers: MemoryTransferStore;
  let units: Pick<UnitFetcher, 'fetch'>;
  let channel: PurchaseChannel;
  let sale: Sale;

  beforeEach(() => {
    clock = new ManualClock();
    store = new MemoryRedis({ clock });
    transfers = new MemoryTransferStore(store);
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
    const results: string[] = [];
    const home = { saleId: sale.saleId, bucket: 0, buckets: 2 };
    const deliver: Deliver = (index, { outcome }) => {
      expect(results[index], 'one result each').to.equal(undefined);
      results[index] = outcome;
    };
    let unitsLeft: number | null | undefined;
    const verdict = await placeBatch(home, purchasesOf(...texts), '', deliver, {
      store,
      channel,
      units: partial(units),
      flags: partial({ observe: (_, seen) => void (unitsLeft = seen) }),
      snapshots: partial({ forget: async () => undefined }),
      log: silentLog,
      clock,
    });
    return { verdict, results, unitsLeft };
  };

  it('fetches units from the other bucket and places the purchase again [R12]', async () => {
    await openSale(0, 4);
    expect(await place(ANN)).to.deep.equal({
      verdict: 'bucket_empty',
      results: ['again'],
      unitsLeft: null,
    });
    expect([bucket(0).unitsLeft, bucket(1).unitsLeft]).to.deep.equal([2, 2]);
    expect((await place(ANN)).results).to.deep.equal(['accepted']);
  });

  it('answers purchases that find enough units in their bucket without waiting for the others', async () => {
    await openSale(1, 1);
    expect(await place(ANN, BOB)).to.deep.equal({
      verdict: 'accepted',
      results: ['accepted', 'again'],
      unitsLeft: 1,
    });
    expect((await place(BOB)).results).to.deep.equal(['accepted']);
  });

  it('returns sold_out and sets the flag only if every bucket is empty [R12]', async () => {
    await openSale(0, 0);
    expect(await place(ANN, BOB)).to.deep.equal({
      verdict: 'all_answered_by_precheck',
      results: ['sold_out', 'sold_out'],
      unitsLeft: 0,
    });
  });

  it('returns not_enough_left for more units than are left, and places a smaller purchase again', async () => {
    await openSale(0, 2);
    expect((await place(`${ANN}*3`, `${BOB}*2`, CID)).results).to.deep.equal(['again', 'again', 'again']);
    expect(await place(`${ANN}*3`)).to.deep.include({ results: ['not_enough_left'], unitsLeft: 2 });
    expect(await place(`${BOB}*2`), 'now the second unit comes').to.deep.include({
      verdict: 'bucket_empty',
      results: ['again'],
    });
    expect((await place(`${BOB}*2`)).results).to.deep.equal(['accepted']);
  });

  it('does not treat units in transit between two buckets as sold out', async () => {
    await openSale(0, 1);
    await transfers.transferOut({ saleId: sale.saleId, bucket: 1 }, 0, 1, 1); // the process died
    expect(await place(ANN)).to.include({ verdict: 'bucket_empty' });
    expect((await place(ANN)).results).to.deep.equal(['accepted']);
  });

  it('replays an accepted purchase even if its bucket is empty', async () => {
    await openSale(1, 1);
    await place(ANN);
    expect(await place(ANN))
      .to.include({ unitsLeft: null })
      .and.to.deep.include({ results: ['replayed'] });
  });

  it('never returns sold_out for an unknown count, but loading, overloaded or unavailable', async () => {
    for (const [word, outcome] of [['unsure', 'loading'] as const, ['moving', 'overloaded'] as const]) {
      await openSale(0, 0);
      units = { fetch: async () => ({ outcome: word }) };
      const placed = await place(ANN, BOB);
      expect([placed.results, placed.unitsLeft]).to.deep.equal([[outcome, outcome], null]);
    }
    units = { fetch: () => Promise.reject(new OperationalError('redis', 'away', { retryable: true })) };
    await openSale(1, 0);
    expect((await place(ANN, BOB)).results).to.deep.equal(['accepted', 'unavailable']);
    units = { fetch: () => Promise.reject(new TypeError('a bug')) };
    const bug = await place(CID).catch((error: unknown) => error);
    expect(bug).to.be.instanceOf(TypeError);
  });
});
