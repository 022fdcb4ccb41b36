import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { Batch } from '../../src/core/batch.js';
import type { Sale } from '../../src/core/sale.js';
import { createOrderIdMinter, type OrderIdMinter } from '../../src/orders/order-id-minter.js';
import { recordBatches, type BatchResult } from '../../src/orders/record-batches.js';
import { silentLog } from '../helpers/silent-log.js';
import { reacquiringStore as store } from '../helpers/memory/memory-redis.js';
import { batchOf, purchaseOf, purchasesOf } from '../helpers/sales.js';
import { newSale, WORLDS, type RepositoryWorld } from './repository-worlds.js';
import { onEachWorld } from './on-each-world.js';

const OPTIONS = { paymentWindowMs: 900_000 };

onEachWorld<RepositoryWorld>('record-batches (DB_OK, IDEMPOTENT, BIZ_ERROR_ACK)', WORLDS, (world) => {
  const minters: OrderIdMinter[] = [];

  async function openMinter(): Promise<OrderIdMinter> {
    const { slots, clock } = world;
    const owner = randomBytes(9).toString('base64url');
    const minter = createOrderIdMinter({ slots, clock, log: silentLog }, { owner, leaseMs: 60_000 });
    await minter.renew();
    minters.push(minter);
    return minter;
  }

  before(async () => {
    await openMinter();
  });
  after(async () => {
    await Promise.all(minters.map((minter) => minter.close()));
  });

  const record = (batches: readonly Batch[], minter = minters[0] as OrderIdMinter): Promise<BatchResult[]> =>
    recordBatches(batches, { repository: world.orders, clock: world.clock, minter, store }, OPTIONS);
  const words = (results: readonly BatchResult[]): string[] => results.map(({ outcome }) => outcome);
  const liveKeys = (result: BatchResult | undefined): string[] =>
    result !== undefined && 'orders' in result
      ? result.orders.map(({ userId, requestId }) => `${userId}/${requestId}`)
      : ['none'];
  const orderIdOf = (result: BatchResult | undefined, index = 0): string | undefined =>
    result !== undefined && 'orders' in result ? result.orders[index]?.orderId : undefined;

  async function expectRows(sale: Sale, sold: number, rows: number, batches: readonly Batch[]): Promise<void> {
    expect((await world.sales.find(sale.saleId))?.sold, 'sold').to.equal(sold);
    const purchases = batches.flatMap((batch) => batch.purchases);
    const found = await world.orders.findByPurchases(sale.saleId, purchases);
    expect(found, 'rows').to.have.length(rows);
    expect(await world.violations(sale.saleId)).to.deep.equal([]);
  }

  it('recorded: records several batches of several sales at once, each with its orders', async () => {
    const sales = [await world.sales.create(newSale()), await world.sales.create(newSale())];
    const batches = [
      batchOf(sales[0] as Sale, purchasesOf('ann*2', 'bob')),
      batchOf(sales[1] as Sale, purchasesOf('ann')),
      batchOf(sales[0] as Sale, purchasesOf('cid')),
    ];

    const results = await record(batches);

    expect(words(results)).to.deep.equal(['recorded', 'recorded', 'recorded']);
    expect(results.map(liveKeys)).to.deep.equal([['ann/k1', 'bob/k1'], ['ann/k1'], ['cid/k1']]);
    await expectRows(sales[0] as Sale, 4, 3, batches);
    await expectRows(sales[1] as Sale, 1, 1, batches);
  });

  it('already_recorded: does not count a repeated batch again, alone or together with a new batch [M9]', async () => {
    const sale = await world.sales.create(newSale());
    const batch = batchOf(sale, purchasesOf('ann', 'bob'));
    const [first] = await record([batch]);

    const fresh = batchOf(sale, purchasesOf('cid'));
    const [again, other] = await record([batch, fresh]);

    expect(again?.outcome).to.equal('already_recorded');
    expect(liveKeys(again)).to.have.members(liveKeys(first));
    expect([orderIdOf(first, 0), orderIdOf(first, 1)]).to.include(orderIdOf(again));
    expect(other?.outcome).to.equal('recorded');
    expect((await world.outboxOf(batch.batchId)).recorded).to.have.length(1);
    await expectRows(sale, 3, 3, [batch, fresh]);
  });

  it('writes rows, sold and outbox once when four writers get one batch at once [M5]', async () => {
    const sale = await world.sales.create(newSale({ stock: 1000 }));
    const writers = [minters[0] as OrderIdMinter, await openMinter(), await openMinter(), await openMinter()];
    const rounds = Array.from({ length: 5 }, (_, round) =>
      batchOf(
        sale,
        Array.from({ length: 40 }, (__, i) => purchaseOf(`u${round}-${i}`)),
      ),
    );
    for (const batch of rounds) {
      const results = await Promise.all(writers.map((minter) => record([batch], minter)));
      const all = results.flatMap(words);
      expect(all.filter((word) => word === 'recorded')).to.have.length(1);
      expect(all.filter((word) => word === 'already_recorded')).to.have.length(3);
      expect(new Set(results.map(([result]) => liveKeys(result).sort().join())).size).to.equal(1);
      expect((await world.outboxOf(batch.batchId)).recorded).to.have.length(1);
    }
    await expectRows(sale, 200, 200, rounds);
  });

  it('records a batch once if one receive returns it twice [M5]', async () => {
    const sale = await world.sales.create(newSale());
    const batch = batchOf(sale, purchasesOf('ann'));
    const results = await record([batch, { ...batch }]);
    expect(words(results)).to.deep.equal(['recorded', 'already_recorded']);
    expect(orderIdOf(results[1])).to.equal(orderIdOf(results[0]));
    await expectRows(sale, 1, 1, [batch]);
  });

  it('poison: stops only the batch with a value that MySQL refuses', async () => {
    const sale = await world.sales.create(newSale());
    const poison = batchOf(sale, [{ userId: 'ann', requestId: 'x'.repeat(65), quantity: 1 }]);
    const good = [batchOf(sale, purchasesOf('ann')), batchOf(sale, purchasesOf('bob'))];

    const results = await record([good[0] as Batch, poison, good[1] as Batch]);

    expect(words(results)).to.deep.equal(['recorded', 'retry', 'recorded']);
    expect(results[1]).to.include({ reason: 'poison' });
    await expectRows(sale, 2, 2, [...good, poison]);
  });

  it('fails only the purchase whose value MySQL refuses, and turns all others into orders [G10]', async () => {
    const sale = await world.sales.create(newSale({ stock: 100 }));
    const eve = `eve-${randomBytes(6).toString('hex')}`;
    await world.refuseOrdersOf(eve);
    const neighbours = Array.from({ length: 20 }, (_, index) => purchaseOf(`ann${index}`));
    const mixed = batchOf(sale, [...neighbours.slice(0, 7), purchaseOf(`${eve}*2`), ...neighbours.slice(7)]);
    const good = batchOf(sale, purchasesOf('bob'));

    const results = await record([good, mixed]);

    expect(words(results)).to.deep.equal(['recorded', 'refused']);
    expect(liveKeys(results[1])).to.have.length(20);
    await expectRows(sale, 21, 22, [good, mixed]);
    const [row] = await world.orders.findByPurchases(sale.saleId, [purchaseOf(eve)]);
    expect(row).to.include({ state: 'failed', reason: 'refused_by_database', quantity: 2, expiresAtMs: null });
    const { releases, recorded } = await world.outboxOf(mixed.batchId);
    expect(releases.map(({ userId, withUnits }) => ({ userId, withUnits }))).to.deep.equal([
      { userId: eve, withUnits: true },
    ]);
    expect(recorded.map(({ orders, failed }) => [orders.length, failed])).to.deep.equal([[20, [row?.orderId]]]);
    expect(words(await record([mixed])), 'delivered again').to.deep.equal(['already_recorded']);
  });

  it('retries, and never fails, a single purchase that MySQL refuses [G10]', async () => {
    const sale = await world.sales.create(newSale());
    const eve = `eve-${randomBytes(6).toString('hex')}`;
    await world.refuseOrdersOf(eve);
    const lone = batchOf(sale, [purchaseOf(eve)]);
    expect((await record([lone]))[0]).to.include({ outcome: 'retry', reason: 'poison' });
    await expectRows(sale, 0, 0, [lone]);
  });

  it('sells exactly the stock when many writers have too many purchases [I1]', async () => {
    const sale = await world.sales.create(newSale({ stock: 100 }));
    const writers = [minters[0] as OrderIdMinter, await openMinter(), await openMinter(), await openMinter()];
    const batches = Array.from({ length: 16 }, (_, b) =>
      batchOf(
        sale,
        Array.from({ length: 10 }, (__, i) => purchaseOf(`b${b}u${i}`)),
      ),
    );
    const results = await Promise.all(writers.map((minter, w) => record(batches.slice(w * 4, w * 4 + 4), minter)));
    const live = results.flat().flatMap(liveKeys).length;
    expect(live).to.equal(100);
    await expectRows(sale, 100, 160, batches);
  });
});
