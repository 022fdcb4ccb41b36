import { expect } from 'chai';
import type { Sale } from '../../../src/domain/sale.js';
import { OPTIONS, ReconcileWorld } from './reconcile-world.js';

describe('compare-sale (P5 RC0 MATCH, RC1 LEAK, RC2 OVER_SELL)', () => {
  let world: ReconcileWorld;
  let sale: Sale;
  beforeEach(async () => {
    world = new ReconcileWorld();
    sale = await world.openSale({ stock: 100, limitPerBuyer: 5 });
  });
  const bucket = () => world.ledger.bucket({ saleId: sale.saleId, bucket: 0 });
  const age = (ms = OPTIONS.safeAgeMs): void => world.clock.advance(ms);
  const found = (): Promise<string[]> => world.found(sale.saleId);

  it('C5 a batch is judged when it is old: then it is a leak', async () => {
    await world.deducted(sale, ['u1', 'u2*2']);
    expect(await found()).to.deep.equal([]);
    expect(world.runsBook.runs[0]).to.deep.include({ outcome: 'match' });
    expect(world.runsBook.runs[0]?.figures).to.include({ requests: 2, young: 2 });
    age();
    expect(await found()).to.deep.equal(['leak u1', 'leak u2']);
  });

  it('a batch that nobody can find in pending is a leak at once, but not one whose letter is parked', async () => {
    const gone = await world.deducted(sale, ['u1']);
    await world.ledger.park(gone);
    await world.parkedBatch(sale, ['u2']);
    expect(await found()).to.deep.equal(['leak u1']);
    expect(world.runsBook.runs[0]?.figures).to.include({ parked: 1 });
  });

  for (const look of [2, 3]) {
    it(`C5 what look ${look} explains is no finding`, async () => {
      const batch = await world.deducted(sale, ['u1']);
      age();
      let looks = 0;
      world.read.onLook = async () => {
        if (++looks === look) await world.work(batch); // a worker, between our looks
      };
      expect(await found()).to.deep.equal([]);
      expect(looks, 'the fault happened').to.be.at.least(look);
    });
  }

  it('unsettled and unreleased are judged by the age of the row', async () => {
    const [live, ended] = [await world.deducted(sale, ['u1']), await world.deducted(sale, ['u2'])];
    await world.recorded(live);
    await world.recorded(ended, ['u2']);
    expect(await found()).to.deep.equal([]);
    age();
    expect(await found()).to.have.members(['unsettled u1', 'unreleased u2']);
  });

  it('D5 an order without a row, and a live row that Redis knows nothing of, are told', async () => {
    const batch = await world.deducted(sale, ['u1', 'u2']);
    await world.work(batch);
    bucket().requests.delete('u1/k1');
    bucket().unitsLeft++;
    bucket().requests.set('u3/k1', { state: 'ordered', orderId: '99', quantity: 1 });
    bucket().unitsLeft--;
    age();
    expect(await found()).to.have.members(['unheld u1', 'order_lost u3']);
  });

  it('D6 drift is told when nothing is on its way, else the sale is moving', async () => {
    bucket().unitsLeft += 2;
    expect(await found()).to.deep.equal(['drift -2']);
    bucket().unitsLeft -= 5;
    expect(await found()).to.deep.equal(['drift 3']);
    const batch = await world.deducted(sale, ['u1']);
    expect(await found()).to.deep.equal([]);
    expect(world.runsBook.runs.at(-1)?.figures).to.include({ moving: 1 });
    await world.work(batch);
    world.books.outbox.add('release', 'b', [
      ...[
        { saleId: sale.saleId, bucket: 0, userId: 'u9', requestId: 'k1', orderId: '1', batchId: '', withUnits: true },
      ],
    ]);
    expect(await found(), 'a release is on its way').to.deep.equal([]);
  });

  it('D6 oversell: rows that the last guard refused, and a count above the stock', async () => {
    world.books.putSale({ ...sale, sold: 101 });
    expect(await found()).to.deep.equal(['oversell 1']);
  });

  it('C7 markers of a closed sale are stale when their rows are old, and never while it may sell', async () => {
    await world.work(await world.deducted(sale, ['u1']));
    await world.publishNews();
    age(OPTIONS.markerAgeMs);
    expect(await found()).to.deep.equal([]);
    world.books.putSale({ ...(world.books.saleOf(sale.saleId) as Sale), state: 'closed' });
    await world.ledger.gate(sale, 'closed');
    expect(await found()).to.deep.equal(['stale_marker']);
  });

  it('C1 a sale that somebody else reconciles is left alone', async () => {
    await world.runsBook.lease(sale.saleId, 'bob', 60_000);
    const results: string[] = [];
    const request = { saleId: sale.saleId, apply: true, waitMs: 0, actor: 'ann' };
    const run = await world.reconcile.run(request, ({ outcome }) => results.push(outcome));
    expect([results, run.salesTaken]).to.deep.equal([['taken'], 1]);
  });

  it('without a sale, it takes those that may sell and those that closed lately', async () => {
    const old = await world.openSale({ closesAtMs: 1 });
    world.books.putSale({ ...old, state: 'closed' });
    const run = await world.reconcile.run({ apply: false, waitMs: 0, actor: 'keeper' });
    expect(run).to.include({ salesCompared: 1, outcome: 'match' });
  });
});
