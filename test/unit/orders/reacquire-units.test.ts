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
import { partial } from '../../helpers/partial.js';

const OPTIONS = { paymentWindowMs: 900_000 };
const words = (results: readonly BatchResult[]): string[] =>
  results.map((result) => (result.outcome === 'retry' ? `retry ${result.reason}` : result.outcome));

describe('reacquire-units', () => {
  let mysql: MemoryRepositories;
  let minter: OrderIdMinter;
  let sale: Sale;
  let clock: ManualClock;
  /** Calls of reacquire. */
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
    return recordBatches(batches, { repository: mysql, clock, minter, store: partial(store) }, OPTIONS);
  };
  const rows = (): string[] =>
    mysql.allOrders.map(({ userId, state, reason }) => `${userId} ${reason ?? state}`).sort();
  const releases = (): unknown[] => mysql.outbox.undone('release').flatMap(({ payload }) => payload as unknown[]);

  it('refuses purchases without a row in a retired sale, and does not ask Redis', async () => {
    mysql.putSale({ ...sale, state: 'closed', retiredAtMs: clock.nowMs() });
    expect(words(await record(late('ann', 'bob')))).to.deep.equal(['refused']);
    expect(asked).to.deep.equal([]);
    expect(rows()).to.deep.equal(['ann units_lost', 'bob units_lost']);
    expect((await mysql.find(sale.saleId))?.sold).to.equal(0);
  });

  it('claims in the epoch of the sale, and fails and releases lost purchases [R3]', async () => {
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

  it('makes no Redis call and no look-up for a batch of the current epoch', async () => {
    mysql.findByPurchases = async () => expect.fail('the usual batch pays for no look-up');
    answer = async () => expect.fail('nothing to claim');
    expect(words(await record(timely('ann')))).to.deep.equal(['recorded']);
  });

  it('makes no Redis call for a recorded batch, and names the rows of another batch [R4]', async () => {
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

  it('makes only older batches wait while the sale is locked [R3]', async () => {
    answer = async () => ({ outcome: 'unavailable' });
    expect(words(await record(late('ann'), timely('bob'), late('cid')))).to.deep.equal([
      'retry repairing',
      'recorded',
      'retry repairing',
    ]);
    expect(rows()).to.deep.equal(['bob pending_payment']);
  });

  it('turns a batch that breaks the script into a dead letter [G14]', async () => {
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

  it('waits as for a repair if Redis does not answer [R8]', async () => {
    answer = async () => Promise.reject(new OperationalError('redis', 'silent', { retryable: true }));
    const [result] = await record(late('ann'));
    expect(result).to.deep.equal({ outcome: 'retry', reason: 'repairing', error: null });
    answer = async () => ({ outcome: 'not_warmed' });
    expect(words(await record(late('ann')))).to.deep.equal(['retry not_warmed']);
  });

  it('reads the terms again if the sale is rebuilt before COMMIT [R3]', async () => {
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

  it('writes one row per purchase if a late batch arrives twice [M5]', async () => {
    const batch = late('ann', 'bob');
    expect(words(await record(batch, batch))).to.deep.equal(['recorded', 'already_recorded']);
    expect(rows()).to.have.length(2);
  });

  it('retries a purchase that another batch holds until that batch is recorded [R4, S2]', async () => {
    const elsewhere = new Set(['ann/k1']);
    answer = async ({ purchases: [first] }) => ({
      outcome: 'claimed',
      lost: new Set(),
      elsewhere: first?.quantity === 2 ? elsewhere : new Set(),
    });
    const [mixed, alone, holder] = [late('ann*2', 'bob'), late('ann*2'), late('ann')];
    const heldElsewhere = { outcome: 'retry', reason: 'held_elsewhere', error: null };
    expect(await record(mixed)).to.deep.equal([heldElsewhere]);
    expect(rows(), 'other purchases do not wait').to.deep.equal(['bob pending_payment']);
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

  it('counts no lost purchase against a limit of one', async () => {
    sale = { ...sale, limitPerBuyer: 1 };
    mysql.putSale(sale);
    answer = async () => losing('ann/k1');
    expect(words(await record(late('ann/k1', 'ann/k2')))).to.deep.equal(['refused']);
    expect(rows()).to.deep.equal(['ann pending_payment', 'ann units_lost']);
  });

  it('is not blocked by an order that is cancelled during the claim', async () => {
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

  it('refuses a late purchase with limit_reached if the buyer has a live order', async () => {
    sale = { ...sale, limitPerBuyer: 1 };
    mysql.putSale(sale);
    await record(timely('ann/k1'));
    expect(words(await record(late('ann/k2')))).to.deep.equal(['refused']);
    expect(rows()).to.deep.equal(['ann limit_reached', 'ann pending_payment']);
  });

  it('releases the reacquired units if the batch was discarded during the claim', async () => {
    const batch = late('ann/k1');
    answer = async () => {
      await failPurchases(batch, 'discarded', { repository: mysql, minter, clock });
      return losing();
    };
    expect(words(await record(batch))).to.deep.equal(['already_recorded']);
    expect(rows()).to.deep.equal(['ann discarded']);
    expect(releases(), 'one of the row and one of the claim').to.have.length(2);
    // If a worker dies after its claim, the next worker need not claim again.
    answer = async () => expect.fail('nothing to claim');
    expect(words(await record(batch))).to.deep.equal(['already_recorded']);
    expect(releases()).to.have.length(3);
  });
});
