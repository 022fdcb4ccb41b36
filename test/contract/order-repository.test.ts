import { expect } from 'chai';
import { sealBatch, type Batch } from '../../src/core/batch.js';
import { composeOrderId } from '../../src/core/order-id.js';
import type { FailureReason } from '../../src/core/order.js';
import type { Sale } from '../../src/core/sale.js';
import type { NewOrder, WriteOutcome, WritePlan } from '../../src/core/ports/order-repository.js';
import { batchOf, purchaseOf, purchasesOf, releaseOf } from '../helpers/sales.js';
import { newSale, WORLDS, type RepositoryWorld } from './repository-worlds.js';
import { onEachWorld } from './on-each-world.js';

const WINDOW_MS = 900_000;
let minted = 0;
/** Time, a random slot and a counter make ids that no other run has. */
const slot = Math.floor(Math.random() * 256);
function orderId({ clock }: Pick<RepositoryWorld, 'clock'>): string {
  minted++;
  return composeOrderId(clock.nowMs() + (minted >> 8), slot, 'any buyer', minted & 255);
}

onEachWorld<RepositoryWorld>('contract OrderRepository', WORLDS, (world) => {
  const rowsOf = (batch: Batch, failure: FailureReason | null = null): NewOrder[] =>
    batch.purchases.map((purchase) => ({ orderId: orderId(world), batch, purchase, failure }));

  async function planOf(orders: readonly NewOrder[], parts: Partial<WritePlan> = {}): Promise<WritePlan> {
    const terms = await world.orders.termsOf([...new Set(orders.map(({ batch }) => batch.saleId))]);
    return { terms, orders, releases: [], oneByOne: new Set(), paymentWindowMs: WINDOW_MS, ...parts };
  }

  async function write(orders: readonly NewOrder[], parts: Partial<WritePlan> = {}): Promise<WriteOutcome> {
    return world.orders.write(await planOf(orders, parts));
  }

  async function expectNothingOf(sale: Sale, batch: Batch): Promise<void> {
    expect(await world.orders.findByPurchases(sale.saleId, batch.purchases)).to.deep.equal([]);
    expect((await world.sales.find(sale.saleId))?.sold).to.equal(sale.sold);
    expect(await world.outboxOf(batch.batchId)).to.deep.equal({ recorded: [], releases: [] });
  }

  const sold = async (sale: Sale): Promise<number | undefined> => (await world.sales.find(sale.saleId))?.sold;

  it('terms: returns the terms of each existing sale, and omits unknown sales', async () => {
    const sale = await world.sales.create(newSale({ priceCents: 4_294_967_295, limitPerBuyer: 3 }));
    const terms = await world.orders.termsOf([sale.saleId, '999999999999999999']);
    expect([...terms]).to.deep.equal([
      [
        sale.saleId,
        {
          saleId: sale.saleId,
          epoch: 1,
          priceCents: 4_294_967_295,
          limitPerBuyer: 3,
          paymentWindowMs: null,
          retired: false,
        },
      ],
    ]);
    expect((await world.orders.termsOf([])).size).to.equal(0);
  });

  it('written: writes rows, amounts, deadline, sold and one outbox row for the batch', async () => {
    const sale = await world.sales.create(newSale());
    const batch = batchOf(sale, purchasesOf('ann*2', 'bob'));
    const rows = rowsOf(batch);
    const beforeMs = world.clock.nowMs();

    expect(await write(rows)).to.deep.equal({ outcome: 'written', surplus: new Set() });

    const [ann] = await world.orders.findByPurchases(sale.saleId, [purchaseOf('ann')]);
    const { createdAtMs = 0, expiresAtMs = 0, ...rest } = ann ?? {};
    expect(rest).to.deep.equal({
      orderId: rows[0]?.orderId,
      userId: 'ann',
      saleId: sale.saleId,
      requestId: 'k1',
      batchId: batch.batchId,
      quantity: 2,
      amountCents: 3998,
      state: 'pending_payment',
      reason: null,
      paidAtMs: null,
      refundedCents: 0,
    });
    expect(createdAtMs).to.be.within(beforeMs - 2000, world.clock.nowMs() + 2000);
    expect(expiresAtMs).to.be.within(createdAtMs + WINDOW_MS - 1000, createdAtMs + WINDOW_MS + 1000);
    expect(await sold(sale)).to.equal(3);
    const { recorded, releases } = await world.outboxOf(batch.batchId);
    const { batchId, saleId } = batch;
    const orders = rows.map((row) => row.orderId);
    expect(recorded).to.deep.equal([{ batchId, saleId, orders, failed: [], paymentWindowMs: WINDOW_MS }]);
    expect(releases).to.deep.equal([]);
    expect(await world.violations(sale.saleId)).to.deep.equal([]);
  });

  it('stores the payment window of the sale in its orders and in the outbox', async () => {
    const [short, usual] = [
      await world.sales.create(newSale({ paymentWindowMs: 5000 })),
      await world.sales.create(newSale()),
    ];
    const batches = [short, usual].map((sale) => batchOf(sale, purchasesOf('ann', 'bob')));
    await write(batches.flatMap((batch) => rowsOf(batch)));
    for (const [index, windowMs] of [5000, WINDOW_MS].entries()) {
      const { saleId, batchId, purchases } = batches[index] as Batch;
      const orders = await world.orders.findByPurchases(saleId, purchases);
      expect(orders).to.have.length(2);
      for (const { createdAtMs, expiresAtMs } of orders)
        expect(expiresAtMs).to.be.within(createdAtMs + windowMs - 1000, createdAtMs + windowMs + 1000);
      expect((await world.outboxOf(batchId)).recorded).to.have.nested.property('[0].paymentWindowMs', windowMs);
    }
  });

  it('stores metadata in row, view and outbox, and accepts rows without metadata', async () => {
    const sale = await world.sales.create(newSale({ limitPerBuyer: 1, currency: 'USD' }));
    const metadata = {
      cart: '42',
      note: `it's "q\\uoted" \u0000 é 漢 \u{1f389} \ud800 \u202e; -- ${'x'.repeat(300)}`,
    };
    const batch = batchOf(sale, [purchaseOf('ann'), { ...purchaseOf('bob'), metadata }]);
    const [ann, bob] = rowsOf(batch) as [NewOrder, NewOrder];
    expect((await write([ann, bob])).outcome).to.equal('written');
    expect(await world.orders.findOrder(ann.orderId)).to.include({ userId: 'ann', currency: 'USD', metadata: null });
    expect(await world.orders.findOrder(bob.orderId)).to.deep.include({ userId: 'bob', currency: 'USD', metadata });
    const [row] = await world.orders.findByPurchases(sale.saleId, [purchaseOf('bob')]);
    expect(row, 'the look-ups of the main path do not read it').not.to.have.property('metadata');

    const again = batchOf(sale, [{ ...purchaseOf('ann/k2'), metadata }, purchaseOf('bob/k2')]);
    const failed = rowsOf(again, 'limit_reached') as [NewOrder, NewOrder];
    expect((await write(failed)).outcome).to.equal('written');
    expect(await world.orders.findOrder(failed[0].orderId)).to.deep.include({ state: 'failed', metadata });
    expect(await world.orders.findOrder(failed[1].orderId)).to.deep.include({ state: 'failed', metadata: null });

    const text = JSON.stringify(metadata);
    expect((await world.outboxOf(batch.batchId)).recorded[0]?.metadata).to.deep.equal({ [bob.orderId]: text });
    expect((await world.outboxOf(again.batchId)).recorded[0]?.metadata).to.deep.equal({ [failed[0].orderId]: text });
  });

  it('names a recorded trace in the outbox for later publishers', async () => {
    const sale = await world.sales.create(newSale({ limitPerBuyer: 3 }));
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const traced = sealBatch({ ...batchOf(sale, purchasesOf('ann', 'bob')), traceparent });
    const other = batchOf(sale, purchasesOf('cid'));
    expect((await write([...rowsOf(traced), ...rowsOf(other)])).outcome).to.equal('written');
    expect((await world.outboxOf(traced.batchId)).recorded[0]?.traceparent).to.equal(traceparent);
    expect((await world.outboxOf(other.batchId)).recorded[0]).not.to.have.property('traceparent');
  });

  it('stores the longest metadata in the row', async () => {
    const sale = await world.sales.create(newSale({ limitPerBuyer: 3 }));
    const longest = [{ a: 'x'.repeat(504) }, { a: '"'.repeat(252) }, { a: 'é'.repeat(252) }];
    const batch = batchOf(
      sale,
      longest.map((metadata, index) => ({ ...purchaseOf(`ann/k${index}`), metadata })),
    );
    const rows = rowsOf(batch);
    expect((await write(rows)).outcome).to.equal('written');
    for (const [index, { orderId }] of rows.entries()) {
      expect((await world.orders.findOrder(orderId))?.metadata).to.deep.equal(longest[index]);
    }
  });

  it('written: counts nothing for a failed row and returns its units', async () => {
    const sale = await world.sales.create(newSale());
    const batch = batchOf({ saleId: sale.saleId, bucket: 3 }, purchasesOf('ann*2'));
    const rows = rowsOf(batch, 'limit_reached');

    expect((await write(rows)).outcome).to.equal('written');

    const [row] = await world.orders.findByPurchases(sale.saleId, batch.purchases);
    expect(row).to.include({ state: 'failed', reason: 'limit_reached', expiresAtMs: null });
    expect(await sold(sale)).to.equal(0);
    const { recorded, releases } = await world.outboxOf(batch.batchId);
    expect(recorded[0]).to.deep.include({ orders: [], failed: [rows[0]?.orderId] });
    const { bucket, batchId } = batch;
    const orderId = rows[0]?.orderId ?? '';
    expect(releases).to.deep.equal([releaseOf({ saleId: sale.saleId, bucket }, 'ann', orderId, { batchId })]);
  });

  it('written: writes several batches and sales in one transaction', async () => {
    const sales = [await world.sales.create(newSale()), await world.sales.create(newSale())];
    const batches = [sales[1], sales[0], sales[1]].map((sale, i) => batchOf(sale as Sale, purchasesOf(`ann/k${i}`)));

    expect((await write(batches.flatMap((batch) => rowsOf(batch)))).outcome).to.equal('written');

    expect(await Promise.all(sales.map(sold))).to.deep.equal([1, 2]);
    for (const batch of batches) expect((await world.outboxOf(batch.batchId)).recorded).to.have.length(1);
  });

  it('row_exists: keeps one row per request, whatever its batch, and writes nothing else of the plan', async () => {
    const sale = await world.sales.create(newSale());
    await write(rowsOf(batchOf(sale, purchasesOf('ann'))));
    const other = batchOf(sale, purchasesOf('ann', 'bob'));

    expect(await write(rowsOf(other))).to.deep.equal({ outcome: 'row_exists' });

    expect(await world.orders.findByPurchases(sale.saleId, [purchaseOf('bob')])).to.deep.equal([]);
    expect(await sold(sale)).to.equal(1);
    expect((await world.outboxOf(other.batchId)).recorded).to.deep.equal([]);
  });

  it('row_exists: treats ids that differ only in case as two buyers and two requests', async () => {
    const sale = await world.sales.create(newSale());
    const batch = batchOf(sale, purchasesOf('ann/k', 'Ann/k', 'ann/K'));

    expect((await write(rowsOf(batch))).outcome).to.equal('written');

    expect(await world.orders.findByPurchases(sale.saleId, [purchaseOf('ANN/k')])).to.deep.equal([]);
    expect(await world.orders.findByPurchases(sale.saleId, batch.purchases)).to.have.length(3);
  });

  it('answers `row_exists` to a second live order of a buyer when the limit is one (active_key) [D7]', async () => {
    const sale = await world.sales.create(newSale({ limitPerBuyer: 1 }));
    const [row] = rowsOf(batchOf(sale, purchasesOf('ann/k1')));
    await write([row as NewOrder]);
    const second = batchOf(sale, purchasesOf('ann/k2'));

    expect(await write(rowsOf(second))).to.deep.equal({ outcome: 'row_exists' });
    expect([...(await world.orders.liveBuyers(sale.saleId, ['ann', 'bob']))]).to.deep.equal(['ann']);

    expect((await write(rowsOf(second, 'limit_reached'))).outcome, 'a failed row does not count').to.equal('written');
    expect(await world.orders.countCancelled(sale.saleId, 'ann'), 'one lives, one failed').to.equal(0);
    await world.cancelOrder((row as NewOrder).orderId);
    expect((await world.orders.liveBuyers(sale.saleId, ['ann'])).size).to.equal(0);
    const other = await world.sales.create(newSale());
    const counted = [
      [sale.saleId, 'ann'],
      [sale.saleId, 'bob'],
      [other.saleId, 'ann'],
    ] as const;
    const counts = await Promise.all(counted.map(([saleId, userId]) => world.orders.countCancelled(saleId, userId)));
    expect(counts).to.deep.equal([1, 0, 0]);
    expect((await write(rowsOf(batchOf(sale, purchasesOf('ann/k3'))))).outcome, 'free again').to.equal('written');
    expect(await world.violations(sale.saleId)).to.deep.equal([]);
  });

  it('counts expired unpaid orders of buyers and returns their last payment deadline', async () => {
    const [sale, other] = [await world.sales.create(newSale()), await world.sales.create(newSale())];
    const expire = async (of: Sale, key: string, paymentWindowMs: number): Promise<void> => {
      const rows = rowsOf(batchOf(of, purchasesOf(key)));
      await write(rows, { paymentWindowMs });
      await world.expireOrder((rows[0] as NewOrder).orderId);
    };
    await expire(sale, 'ann/k1', -600_000);
    await expire(sale, 'ann/k2', -60_000);
    await expire(other, 'ann/k1', -1000);
    await expire(sale, 'Ann/k1', -1000);
    const cancelled = rowsOf(batchOf(sale, purchasesOf('bob/k1')));
    await write(cancelled);
    await world.cancelOrder((cancelled[0] as NewOrder).orderId);

    const found = await world.orders.expiredOf(sale.saleId, ['ann', 'bob', 'eve']);
    expect([...found.keys()]).to.deep.equal(['ann']);
    expect(found.get('ann')?.count).to.equal(2);
    expect(found.get('ann')?.lastAgoMs).to.be.within(60_000, 120_000);
    expect(await world.orders.expiredOf(sale.saleId, [])).to.deep.equal(new Map());
  });

  it('row_exists: does not apply when the limit is higher [D7]', async () => {
    const sale = await world.sales.create(newSale({ limitPerBuyer: 2 }));
    const batch = batchOf(sale, purchasesOf('ann/k1', 'ann/k2'));
    expect((await write(rowsOf(batch))).outcome).to.equal('written');
  });

  it('order_id_taken: does not take an equal order id as proof of a row [D7]', async () => {
    const sale = await world.sales.create(newSale());
    const [first] = rowsOf(batchOf(sale, purchasesOf('ann')));
    await write([first as NewOrder]);
    const other = batchOf(sale, purchasesOf('bob'));
    const [second] = rowsOf(other);

    const outcome = await write([{ ...(second as NewOrder), orderId: (first as NewOrder).orderId }]);

    expect(outcome).to.deep.equal({ outcome: 'order_id_taken' });
    await expectNothingOf({ ...sale, sold: 1 }, other);
  });

  it('oversold: writes nothing for any sale in the plan [D6]', async () => {
    const full = await world.sales.create(newSale({ stock: 2 }));
    const free = await world.sales.create(newSale());
    const tooMuch = batchOf(full, purchasesOf('ann', 'bob', 'cid'));
    const fine = batchOf(free, purchasesOf('ann'));

    const outcome = await write([...rowsOf(fine), ...rowsOf(tooMuch)]);

    expect(outcome).to.deep.equal({ outcome: 'oversold', saleIds: [full.saleId] });
    await expectNothingOf(full, tooMuch);
    await expectNothingOf(free, fine);
  });

  it('one by one: fails exactly the surplus in batch order, and closes its requests [D6]', async () => {
    const sale = await world.sales.create(newSale({ stock: 5 }));
    const batch = batchOf(sale, purchasesOf('zoe*2', 'bob*2', 'ann*2', 'cid', 'eve'));
    const rows = rowsOf(batch);

    const outcome = await write(rows, { oneByOne: new Set([sale.saleId]) });

    const refused = [rows[2]?.orderId, rows[4]?.orderId] as string[];
    expect(outcome).to.deep.equal({ outcome: 'written', surplus: new Set(refused) });
    expect(await sold(sale)).to.equal(5);
    const found = await world.orders.findByPurchases(sale.saleId, batch.purchases);
    const failed = found.filter(({ state }) => state === 'failed');
    expect(failed.map(({ orderId: id }) => id)).to.have.members(refused);
    for (const row of failed) expect(row).to.include({ reason: 'oversold_guard', expiresAtMs: null });
    const { recorded, releases } = await world.outboxOf(batch.batchId);
    expect(recorded[0]?.failed).to.deep.equal(refused);
    expect(releases.map(({ orderId: id, withUnits }) => [id, withUnits])).to.have.deep.members(
      refused.map((id) => [id, false]),
    );
    expect(await world.violations(sale.saleId)).to.deep.equal([]);
  });

  it('one by one: writes every order if there is no surplus, even together with another sale', async () => {
    const sales = [await world.sales.create(newSale({ stock: 1 })), await world.sales.create(newSale())];
    const batches = sales.map((sale) => batchOf(sale, purchasesOf('ann')));

    const outcome = await write(
      batches.flatMap((batch) => rowsOf(batch)),
      { oneByOne: new Set([(sales[0] as Sale).saleId]) },
    );

    expect(outcome).to.deep.equal({ outcome: 'written', surplus: new Set() });
    expect(await Promise.all(sales.map(sold))).to.deep.equal([1, 1]);
  });

  for (const oneByOne of [false, true]) {
    it(`epoch_changed: refuses a plan whose sale was rebuilt after its terms were read${oneByOne ? ', one by one' : ''}`, async () => {
      const sale = await world.sales.create(newSale({ stock: 1 }));
      const batch = batchOf(sale, purchasesOf(oneByOne ? 'ann*2' : 'ann')); // leaves the guard no rows to count
      const plan = await planOf(rowsOf(batch), { oneByOne: new Set(oneByOne ? [sale.saleId] : []) });
      await world.raiseEpoch(sale.saleId);

      expect(await world.orders.write(plan)).to.deep.equal({ outcome: 'epoch_changed' });

      await expectNothingOf(sale, batch);
    });
  }

  it('epoch_changed: refuses a plan of failed rows, whose reasons belong to the old epoch [R3]', async () => {
    const sale = await world.sales.create(newSale());
    const batch = batchOf(sale, purchasesOf('ann'));
    const plan = await planOf(rowsOf(batch).map((row) => ({ ...row, failure: 'units_lost' as const })));
    await world.raiseEpoch(sale.saleId);

    expect(await world.orders.write(plan)).to.deep.equal({ outcome: 'epoch_changed' });

    await expectNothingOf(sale, batch);
  });

  it('writes the releases of a plan without rows to the outbox', async () => {
    const sale = await world.sales.create(newSale());
    const { saleId } = sale;
    const batch = batchOf(sale, purchasesOf('ann'));
    const { batchId } = batch;
    const release = releaseOf({ saleId, bucket: 0 }, 'ann', orderId(world), { batchId });

    const plan = await planOf([], { releases: [release], terms: await world.orders.termsOf([saleId]) });
    expect((await world.orders.write(plan)).outcome).to.equal('written');

    expect((await world.outboxOf(batchId)).releases).to.deep.equal([release]);
  });

  it('names the batches that have a row', async () => {
    const sale = await world.sales.create(newSale());
    const [written, other, third] = ['ann', 'bob', 'cid'].map((user) => batchOf(sale, purchasesOf(user, `${user}2`)));
    if (!written || !other || !third) throw new Error('three batches are needed');
    await write(rowsOf(written));
    await write(rowsOf(other).slice(0, 1));
    const asked = [third, written, other].map(({ batchId }) => batchId);
    expect(await world.orders.writtenBatches(asked)).to.deep.equal(new Set([written.batchId, other.batchId]));
    expect(await world.orders.writtenBatches([])).to.deep.equal(new Set());
    expect(await world.orders.writtenBatches([third.batchId])).to.deep.equal(new Set());
  });

  it('finds a row under any batch, but only in its own sale', async () => {
    const [sale, other] = [await world.sales.create(newSale()), await world.sales.create(newSale())];
    const rows = rowsOf(batchOf(sale, purchasesOf('ann/k1', 'ann/k2')));
    await write(rows);

    expect(await world.orders.findByPurchases(other.saleId, [purchaseOf('ann/k1')])).to.deep.equal([]);
    expect(await world.orders.findByPurchases(sale.saleId, [])).to.deep.equal([]);
    const found = await world.orders.findByPurchases(sale.saleId, purchasesOf('ann/k2', 'bob/k2'));
    expect(found.map(({ orderId: id }) => id)).to.deep.equal([rows[1]?.orderId]);
    expect((await world.orders.findOrder(rows[0]?.orderId as string))?.requestId).to.equal('k1');
    expect(await world.orders.findOrder('1')).to.equal(null);
  });
});
