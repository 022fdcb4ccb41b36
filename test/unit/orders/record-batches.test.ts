import { expect } from 'chai';
import type { Batch } from '../../../src/core/batch.js';
import { Bug, OperationalError } from '../../../src/core/errors.js';
import type { Sale } from '../../../src/core/sale.js';
import { createOrderIdMinter, type OrderIdMinter } from '../../../src/orders/order-id-minter.js';
import { recordBatches, type BatchResult } from '../../../src/orders/record-batches.js';
import { silentLog } from '../../helpers/silent-log.js';
import type { OrderRepository, WriteOutcome, WritePlan } from '../../../src/core/ports/order-repository.js';
import { reacquiringStore as store } from '../../helpers/memory/memory-redis.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryRepositories } from '../../helpers/memory/memory-repositories.js';
import { MemoryWorkerSlots } from '../../helpers/memory/memory-worker-slots.js';
import { batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';
import { withWrite } from './worker-world.js';

const OPTIONS = { paymentWindowMs: 900_000 };
const words = (results: readonly BatchResult[]): string[] =>
  results.map((result) => (result.outcome === 'retry' ? `retry ${result.reason}` : result.outcome));

describe('record-batches', () => {
  let clock: ManualClock;
  let mysql: MemoryRepositories;
  let minter: OrderIdMinter;
  let sale: Sale;
  beforeEach(async () => {
    clock = new ManualClock();
    mysql = new MemoryRepositories({ clock });
    const slots = new MemoryWorkerSlots(clock);
    minter = createOrderIdMinter({ slots, clock, log: silentLog }, { owner: 'test', leaseMs: 60_000 });
    await minter.renew();
    sale = saleOf();
    mysql.putSale(sale);
  });

  /** MySQL with the first answers of `write` replaced. Records every plan. */
  function scripted(...answers: WriteOutcome[]): { repository: OrderRepository; plans: WritePlan[] } {
    const plans: WritePlan[] = [];
    const repository = withWrite(mysql, async (plan) => {
      plans.push(plan);
      return answers.shift() ?? mysql.write(plan);
    });
    return { repository, plans };
  }
  const record = (batches: readonly Batch[], repository: OrderRepository = mysql): Promise<BatchResult[]> =>
    recordBatches(batches, { repository, clock, minter, store }, OPTIONS);
  const idsOf = (plan: WritePlan | undefined): string[] => plan?.orders.map(({ orderId }) => orderId) ?? [];

  it('keeps the deadline of an order if the window of its sale changes meanwhile', async () => {
    mysql.putSale({ ...sale, paymentWindowMs: 60_000 });
    const batch = batchOf(sale, purchasesOf('ann'));
    await record([batch]);
    const [{ createdAtMs = 0, expiresAtMs = 0 } = {}] = mysql.allOrders;
    expect((expiresAtMs ?? 0) - createdAtMs).to.equal(60_000);
    mysql.putSale({ ...sale, paymentWindowMs: 1000 });
    clock.advance(10_000);
    expect(words(await record([batch]))).to.deep.equal(['already_recorded']);
    expect(mysql.allOrders.map((order) => order.expiresAtMs)).to.deep.equal([expiresAtMs]);
  });

  it('writes the same rows with new ids a moment later after `again` [D3]', async () => {
    const { repository, plans } = scripted({ outcome: 'again' }, { outcome: 'again' });
    const startedMs = clock.nowMs();
    const results = await record([batchOf(sale, purchasesOf('ann', 'bob'))], repository);
    expect(words(results)).to.deep.equal(['recorded']);
    expect(plans).to.have.length(3);
    expect(clock.nowMs()).to.be.greaterThan(startedMs);
    expect(new Set(plans.flatMap(idsOf)).size, 'ids minted for each attempt').to.equal(6);
  });

  it('takes new ids without a look-up after order_id_taken [D7]', async () => {
    const { repository, plans } = scripted({ outcome: 'order_id_taken' });
    repository.findByPurchases = async () => expect.fail('nothing to look up');
    const results = await record([batchOf(sale, purchasesOf('ann'))], repository);
    expect(words(results)).to.deep.equal(['recorded']);
    expect(idsOf(plans[1])).not.to.deep.equal(idsOf(plans[0]));
  });

  it('writes only the refused sale order by order after `oversold` [D6]', async () => {
    const other = saleOf();
    mysql.putSale(other);
    mysql.putSale({ ...sale, stock: 1 });
    const { repository, plans } = scripted();
    const batches = [batchOf(sale, purchasesOf('ann', 'bob')), batchOf(other, purchasesOf('ann'))];
    expect(words(await record(batches, repository))).to.deep.equal(['refused', 'recorded']);
    expect(plans.map(({ oneByOne }) => [...oneByOne])).to.deep.equal([[], [sale.saleId]]);
  });

  it('reports a sale as unknown if it is missing when its epoch is read again', async () => {
    const { repository } = scripted({ outcome: 'epoch_changed' });
    let reads = 0;
    repository.termsOf = async (saleIds) => (reads++ === 0 ? mysql.termsOf(saleIds) : new Map());
    const results = await record([batchOf(sale, purchasesOf('ann'))], repository);
    expect(words(results)).to.deep.equal(['unknown_sale']);
  });

  it('gives up after a limited number of attempts', async () => {
    const { repository, plans } = scripted(...Array.from({ length: 50 }, () => ({ outcome: 'again' }) as const));
    const batches = [batchOf(sale, purchasesOf('ann')), batchOf(sale, purchasesOf('bob'))];
    const results = await record(batches, repository);
    expect(words(results)).to.deep.equal(['retry contended', 'retry contended']);
    expect(plans).to.have.length(8);
  });

  it('writes nothing without order ids [D8]', async () => {
    const { repository, plans } = scripted();
    await minter.close();
    const results = await record([batchOf(sale, purchasesOf('ann'))], repository);
    expect(words(results)).to.deep.equal(['retry no_order_ids']);
    expect(plans).to.deep.equal([]);
  });

  it('does not count an outage against a batch, and returns the reason [D1]', async () => {
    mysql.breakNext('write_fails');
    const batches = [batchOf(sale, purchasesOf('ann')), batchOf(sale, purchasesOf('bob'))];
    const results = await record(batches);
    expect(words(results)).to.deep.equal(['retry unavailable', 'retry unavailable']);
    expect(results[0]?.outcome === 'retry' && results[0].error).to.be.instanceOf(OperationalError);
    expect(mysql.allOrders).to.deep.equal([]);
  });

  it('finds the rows and counts nothing twice if the reply to COMMIT is lost [D4]', async () => {
    mysql.breakNext('write_reply_lost');
    const batch = batchOf(sale, purchasesOf('ann*2'));
    expect(words(await record([batch]))).to.deep.equal(['retry unavailable']);
    const [result] = await record([batch]);
    expect(result).to.deep.include({ outcome: 'already_recorded' });
    expect((await mysql.find(sale.saleId))?.sold).to.equal(2);
    expect(mysql.outboxRows).to.have.length(1);
  });

  it('throws a `Bug` instead of retrying', async () => {
    const { repository } = scripted();
    repository.write = async () => {
      throw new Bug('a bug');
    };
    const error = await record([batchOf(sale, purchasesOf('ann'))], repository).catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(Bug);
  });

  it('does nothing without batches', async () => {
    expect(await record([])).to.deep.equal([]);
  });
});
