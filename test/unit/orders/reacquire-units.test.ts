import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { Batch } from '../../../src/core/batch.js';
import type { Sale } from '../../../src/core/sale.js';
import { failPurchases } from '../../../src/orders/fail-purchases.js';
import { createOrderIdMinter, type OrderIdMinter } from '../../../src/orders/order-id-minter.js';
import { recordBatches, type BatchResult } from '../../../src/orders/record-batches.js';
import { silentLog } from '../../helpers/silent-log.js';
import type { Reacquired } from '../../../src/core/ports/batch-store.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryRepositories } from '../../helpers/memory/memory-repositories.js';
import { MemoryWorkerSlots } from '../../helpers/memory/memory-worker-slots.js';
import { batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';

const OPTIONS = { paymentWindowMs: 900_000 };
const words = (results: readonly BatchResult[]): string[] =>
  results.map((result) => (result.outcome === 'retry' ? `retry ${result.reason}` : result.outcome));

describe('claim-late', () => {
  let mysql: MemoryRepositories;
  let minter: OrderIdMinter;
  let sale: Sale;
  let clock: ManualClock;
  /** Calls of reacquire, and its answer: the keys that are lost, or another outcome. */
  let asked: { readonly batch: Batch; readonly epoch: number; readonly recorded: readonly string[] }[];
  let answer: (batch: Batch) => Promise<Reacquired>;

  beforeEach(async () => {
    clock = new ManualClock();
    mysql = new MemoryRepositories({ clock });
    minter = createOrderIdMinter(
      { slots: new MemoryWorkerSlots(clock), clock, log: silentLog },
      { owner: 'test', leaseMs: 60_000 },
    );
    await minter.renew();
    sale = saleOf({ epoch: 2 });
    mysql.putSale(sale);
    asked = [];
    answer = async () => losing();
  });
  const losing = (...keys: string[]): Reacquired => ({
    outcome: 'claimed',
    lost: new Set(keys),
    elsewhere: new Set(),
  });
  const late = (...texts: string[]): Batch => batchOf({ ...sale, epoch: 1 }, purchasesOf(...texts));
  const timely = (...texts: string[]): Batch => batchOf(sale, purchasesOf(...texts));
  const record = (...batches: Batch[]): Promise<BatchResult[]> => {
    const store = {
      reacquire: (batch: Batch, epoch: number, recorded: ReadonlySet<string>): Promise<Reacquired> => {
        asked.push({ batch, epoch, recorded: [...recorded] });
        return answer(batch);
      },
    };
    return recordBatches(batches, { repository: mysql, clock, minter, store }, OPTIONS);
  };
  const rows = (): string[] =>
    mysql.allOrders.map(({ userId, state, reason }) => `${userId} ${reason ?? state}`).sort();
  const releases = (): unknown[] => mysql.outbox.undone('release').flatMap(({ payload }) => payload as unknown[]);

  it('a late batch of a retired sale: what has no row is lost, and Redis is not asked', async () => {
    mysql.putSale({ ...sale, state: 'closed', retiredAtMs: clock.nowMs() });
    expect(words(await record(late('ann', 'bob')))).to.deep.equal(['refused']);
    expect(asked).to.deep.equal([]);
    expect(rows()).to.deep.equal(['ann units_lost', 'bob units_lost']);
    expect((await mysql.find(sale.saleId))?.sold).to.equal(0);
  });

  it('a late batch claims in the epoch of the sale: what is lost fails with its release, the rest is an order [R3]', async () => {
    answer = async () => losing('bob/k1');
    const batch = late('ann', 'bob');
    const results = await record(batch);
    expect(words(results)).to.deep.equal(['refused']);
    expect(asked).to.deep.equal([{ batch, epoch: 2, recorded: [] }]);
    expect(rows()).to.deep.equal(['ann pending_payment', 'bob units_lost']);
    expect(releases()).to.have.length(1);
    expect(releases()[0]).to.include({ userId: 'bob', batchId: batch.batchId, withUnits: true });
    expect((await mysql.find(sale.saleId))?.sold).to.equal(1);
  });

  it('a batch of this epoch needs no call of Redis and no look-up', async () => {
    mysql.findByPurchases = async () => expect.fail('the usual batch pays for no look-up');
    answer = async () => expect.fail('nothing to claim');
    expect(words(await record(timely('ann')))).to.deep.equal(['recorded']);
  });

  it('a batch that is already recorded needs none either; one that is partly recorded names its rows [R4]', async () => {
    const batch = late('ann', 'bob');
    await record(batch);
    asked = [];
    expect(words(await record(batch))).to.deep.equal(['already_recorded']);
    expect(asked).to.deep.equal([]);
    const survivor = late('bob', 'cid');
    expect(words(await record(survivor))).to.deep.equal(['recorded']);
    expect(asked.map(({ recorded }) => recorded)).to.deep.equal([['bob/k1']]);
    expect(rows()).to.have.length(3);
  });

  it('while the sale is locked only its older batches wait; the others of the same delivery are written [R3]', async () => {
    answer = async () => ({ outcome: 'unavailable' });
    expect(words(await record(late('ann'), timely('bob'), late('cid')))).to.deep.equal([
      'retry repairing',
      'recorded',
      'retry repairing',
    ]);
    expect(rows()).to.deep.equal(['bob pending_payment']);
  });

  it('a batch with which the script fails is alone with that: it becomes a dead letter, and no other waits [G14]', async () => {
    answer = async (batch) => {
      if (batch.purchases.length === 2) throw new OperationalError('redis', 'it failed', { retryable: false });
      return losing();
    };
    expect(words(await record(late('ann'), late('bob', 'bad'), late('cid')))).to.deep.equal([
      'recorded',
      'retry poison',
      'recorded',
    ]);
    expect(rows()).to.deep.equal(['ann pending_payment', 'cid pending_payment']);
  });

  it('Redis that does not answer is no outage of MySQL: the batch waits as for a repair [R8]', async () => {
    answer = async () => Promise.reject(new OperationalError('redis', 'silent', { retryable: true }));
    const [result] = await record(late('ann'));
    expect(result).to.deep.equal({ outcome: 'retry', reason: 'repairing', error: null });
    answer = async () => ({ outcome: 'not_warmed' });
    expect(words(await record(late('ann')))).to.deep.equal(['retry not_warmed']);
  });

  it('rebuilt between terms and COMMIT: the terms are read again, and what is late now claims [R3]', async () => {
    const batch = timely('ann');
    const { termsOf } = mysql;
    mysql.termsOf = async (saleIds) => {
      const terms = await termsOf.call(mysql, saleIds);
      if (asked.length === 0) mysql.putSale({ ...sale, epoch: 3 });
      return terms;
    };
    expect(words(await record(batch))).to.deep.equal(['recorded']);
    expect(asked.map(({ epoch }) => epoch)).to.deep.equal([3]);
  });

  it('one late batch delivered twice: each purchase has one row [M5]', async () => {
    const batch = late('ann', 'bob');
    expect(words(await record(batch, batch))).to.deep.equal(['recorded', 'already_recorded']);
    expect(rows()).to.have.length(2);
  });

  it('a purchase that another batch holds gets no row from this one, which is retried until the other is recorded [R4, S2]', async () => {
    const elsewhere = new Set(['ann/k1']);
    answer = async ({ purchases: [first] }) => ({
      outcome: 'claimed',
      lost: new Set(),
      elsewhere: first?.quantity === 2 ? elsewhere : new Set(),
    });
    const [mixed, alone, holder] = [late('ann*2', 'bob'), late('ann*2'), late('ann')];
    const heldElsewhere = { outcome: 'retry', reason: 'held_elsewhere', error: null };
    expect(await record(mixed)).to.deep.equal([heldElsewhere]);
    expect(rows(), 'the others do not wait').to.deep.equal(['bob pending_payment']);
    expect(await record(mixed), 'again').to.deep.equal([heldElsewhere]);
    expect(await record(alone)).to.deep.equal([heldElsewhere]);
    expect(words(await record(holder))).to.deep.equal(['recorded']);
    expect(words(await record(mixed))).to.deep.equal(['already_recorded']);
    expect(words(await record(alone))).to.deep.equal(['already_recorded']);
    expect(mysql.allOrders.map(({ userId, quantity }) => `${userId} ${quantity}`).sort()).to.deep.equal([
      'ann 1',
      'bob 1',
    ]);
  });

  it('a lost purchase takes no place under the limit of one', async () => {
    sale = { ...sale, limitPerBuyer: 1 };
    mysql.putSale(sale);
    answer = async () => losing('ann/k1');
    expect(words(await record(late('ann/k1', 'ann/k2')))).to.deep.equal(['refused']);
    expect(rows()).to.deep.equal(['ann pending_payment', 'ann units_lost']);
  });

  it('an order that its buyer cancels while the batch reacquires does not block it', async () => {
    sale = { ...sale, limitPerBuyer: 1 };
    mysql.putSale(sale);
    await record(timely('ann/k1'));
    answer = async () => {
      mysql.allOrders.forEach(({ orderId }) => mysql.endOrder(orderId, 'cancelled'));
      return losing();
    };
    expect(words(await record(late('ann/k2')))).to.deep.equal(['recorded']);
    expect(rows()).to.deep.equal(['ann cancelled', 'ann pending_payment']);
  });

  it('a live order blocks it: the row of the older batch has the reason', async () => {
    sale = { ...sale, limitPerBuyer: 1 };
    mysql.putSale(sale);
    await record(timely('ann/k1'));
    expect(words(await record(late('ann/k2')))).to.deep.equal(['refused']);
    expect(rows()).to.deep.equal(['ann limit_reached', 'ann pending_payment']);
  });

  it('discarded while it reacquires, after the release of its row: the reacquired units are released', async () => {
    const batch = late('ann/k1');
    answer = async () => {
      await failPurchases(batch, 'discarded', { repository: mysql, minter, clock });
      return losing();
    };
    expect(words(await record(batch))).to.deep.equal(['already_recorded']);
    expect(rows()).to.deep.equal(['ann discarded']);
    expect(releases(), 'of the row, and of the claim behind it').to.have.length(2);
    // a worker that dies behind its claim is followed by the re-drive, whose worker need not claim
    answer = async () => expect.fail('nothing to claim');
    expect(words(await record(batch))).to.deep.equal(['already_recorded']);
    expect(releases()).to.have.length(3);
  });
});
