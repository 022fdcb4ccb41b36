import { expect } from 'chai';
import type { NewSale, Sale } from '../../src/core/sale.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import { newSale, WORLDS, type RepositoryWorld } from './repository-worlds.js';
import { onEachWorld } from './on-each-world.js';

const DAY_MS = 86_400_000;

onEachWorld<RepositoryWorld>('contract RetirementRepository', WORLDS, (world) => {
  const closedSale = async (parts: Partial<NewSale> = {}): Promise<Sale> => {
    const { saleId } = await world.sales.create(newSale(parts));
    await world.sales.move(saleId, 'warm');
    return (await world.sales.move(saleId, 'closed'))?.sale as Sale;
  };
  const over = (days: number): Pick<NewSale, 'opensAtMs' | 'closesAtMs'> => {
    const closesAtMs = world.clock.nowMs() - days * DAY_MS;
    return { opensAtMs: closesAtMs - 1000, closesAtMs };
  };
  const found = async (list: Promise<Sale[]>, ...sales: Sale[]): Promise<number[]> => {
    const ids = (await list).map(({ saleId }) => saleId);
    return sales.map(({ saleId }) => ids.indexOf(saleId)).filter((index) => index >= 0);
  };

  it('due: returns closed sales that ended long enough ago, earliest first, and never an open sale', async () => {
    const [young, old, oldest] = [await closedSale(over(6)), await closedSale(over(8)), await closedSale(over(9))];
    const open = await world.sales.create(newSale(over(20)));
    await world.sales.move(open.saleId, 'warm');
    const due = world.retirement.due(7 * DAY_MS, 10_000);
    expect(await found(due, young, open)).to.deep.equal([]);
    const [second, first] = await found(due, old, oldest);
    expect(first).to.be.lessThan(second as number);
  });

  it('due: counts from the closing of a sale that closed before its window ended', async () => {
    const early = await closedSale({
      opensAtMs: world.clock.nowMs(),
      closesAtMs: world.clock.nowMs() + 400 * DAY_MS,
    });
    expect(await found(world.retirement.due(60_000, 10_000), early)).to.deep.equal([]);
    await world.clock.sleep(20);
    expect(await found(world.retirement.due(10, 10_000), early)).to.have.length(1);
  });

  it('retire: retires and unlists a closed sale once, only in the compared epoch [R10]', async () => {
    const sale = await closedSale(over(8));
    const draft = await world.sales.create(newSale(over(8)));
    expect(await world.retirement.retire(draft, 'keeper')).to.equal(false);
    expect(await world.retirement.retire({ ...sale, epoch: 2 }, 'keeper')).to.equal(false);
    expect(await found(world.sales.list({ states: ['closed'], retired: false, max: 10_000 }), sale)).to.have.length(1);

    expect(await world.retirement.retire(sale, 'keeper')).to.equal(true);
    expect(await world.retirement.retire(sale, 'keeper')).to.equal(false);
    const retired = await world.sales.find(sale.saleId);
    expect(retired?.state).to.equal('closed');
    expect(retired?.retiredAtMs).to.be.within(world.clock.nowMs() - 60_000, world.clock.nowMs() + 60_000);
    expect(await found(world.sales.list({ states: ['closed'], retired: false, max: 10_000 }), sale)).to.deep.equal([]);
    expect(await found(world.sales.list({ states: ['closed'], max: 10_000 }), sale)).to.have.length(1);
    expect(await found(world.retirement.due(7 * DAY_MS, 10_000), sale)).to.deep.equal([]);
    const actions = (await world.auditOf(`sale:${sale.saleId}`)).map(({ actor, action }) => `${actor} ${action}`);
    expect(actions.at(-1)).to.equal('keeper sale.retired');
    expect((await world.orders.termsOf([sale.saleId])).get(sale.saleId)?.retired).to.equal(true);
  });

  it('lets no repair raise the epoch of a retired sale', async () => {
    const sale = await closedSale(over(8));
    await world.retirement.retire(sale, 'keeper');
    expect(await world.repair.raiseEpoch(sale.saleId, 1, 'keeper')).to.equal(null);
    expect((await world.sales.find(sale.saleId))?.epoch).to.equal(1);
  });

  it('toForget: returns sales retired long enough ago, until they are forgotten', async () => {
    const sale = await closedSale(over(8));
    await world.retirement.retire(sale, 'keeper');
    expect(await found(world.retirement.toForget(60_000, 10_000), sale)).to.deep.equal([]);
    expect(await found(world.retirement.toForget(0, 10_000), sale)).to.have.length(1);
    await world.retirement.forgotten(sale.saleId);
    expect(await found(world.retirement.toForget(0, 10_000), sale)).to.deep.equal([]);
  });

  it('finds the orders of a retired sale as before', async () => {
    const sale = await closedSale(over(8));
    const batch = batchOf(sale, purchasesOf('u1'));
    const terms = await world.orders.termsOf([sale.saleId]);
    const orderId = String(BigInt(Date.now()) * 1_000_000n + BigInt(sale.saleId));
    const orders = [{ orderId, batch, purchase: batch.purchases[0]!, failure: null }];
    const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 60_000 };
    expect((await world.orders.write(plan)).outcome).to.equal('written');
    await world.retirement.retire(sale, 'keeper');
    expect(await world.orders.findByPurchases(sale.saleId, batch.purchases)).to.have.length(1);
  });
});
