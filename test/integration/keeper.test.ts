import { expect } from 'chai';
import { systemClock } from '../../src/process/system-clock.js';
import { newBatchId, sealBatch, type Batch } from '../../src/core/batch.js';
import { composeOrderId } from '../../src/core/order-id.js';
import { createOrderRepository } from '../../src/mysql/order-repository.js';
import { silentLog } from '../helpers/silent-log.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { userIds } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import { OpLog } from '../chaos/harness/op-log.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

describe('keeper: recovery after a process dies', () => {
  let keeper: Program;
  const system = useSystem(async ({ programs }) => {
    const env = { KEEPER_EVERY_MS: '500', REDRIVE_AFTER_MS: '1000' };
    keeper = await programs.start('keeper', { env });
  });

  const store = () => createStockStore(system.stack.redis, silentLog);
  const metric = async (name: string): Promise<number> => {
    const { text } = await ask(`${keeper.operatorsUrl}/metrics`);
    return Number(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  };

  /** Deducts a batch as an API does that dies before it sends or commits. */
  async function deducted(saleId: string, size: number): Promise<Batch> {
    const purchases = userIds(size).map((userId) => ({ userId, requestId: 'k1', quantity: 1 }));
    const batch = sealBatch({
      batchId: newBatchId(),
      saleId,
      bucket: 0,
      epoch: 1,
      createdAtMs: Date.now(),
      traceparent: '',
      purchases,
    });
    expect(await store().deduct(batch)).to.deep.equal({ outcome: 'deducted' });
    return batch;
  }

  it('marks batches as recorded that a worker wrote before it died, while no worker runs [M9]', async () => {
    const { saleId } = await openSale(system.stack, { stock: 20 });
    const before = await metric('seckill_marked_late_batches_total');
    const batch = await deducted(saleId, 3);
    const repository = createOrderRepository(system.stack.mysql);
    const terms = await repository.termsOf([saleId]);
    const nowMs = systemClock.nowMs();
    const orders = batch.purchases.map((purchase, index) => ({
      orderId: composeOrderId(nowMs, 255, purchase.userId, index),
      batch,
      purchase,
      failure: null,
    }));
    const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 900_000 };
    expect((await repository.write(plan)).outcome).to.equal('written'); // the row is written, but the batch is not marked as recorded

    const figures = await expectInvariants(system.stack, saleId);
    expect(figures).to.include({ sold: 3, rows: 3, unitsLeft: 17 });
    await until('it counts the batch', async () => (await metric('seckill_marked_late_batches_total')) > before);
  });

  it('re-drives a batch whose message was lost, and the worker records it [M2]', async () => {
    const { saleId } = await openSale(system.stack, { stock: 20 });
    const before = await metric('seckill_redriven_batches_total');
    await system.programs.start('worker');
    const { purchases } = await deducted(saleId, 7);

    const opLog = new OpLog();
    for (const { userId } of purchases) opLog.entries.set(`${userId}/k1`, 'ok');
    const figures = await expectInvariants(system.stack, saleId, opLog);
    expect(figures).to.include({ sold: 7, rows: 7, unitsLeft: 13 });
    await until('it counts the batch', async () => (await metric('seckill_redriven_batches_total')) > before);
  });

  it('returns units once, however often the outbox row is published [C3]', async () => {
    const { saleId } = await openSale(system.stack, { stock: 20 });
    const batch = await deducted(saleId, 2);
    const figuresBefore = await expectInvariants(system.stack, saleId);
    expect(figuresBefore).to.include({ sold: 2, unitsLeft: 18 });
    const { mysql } = system.stack;
    const [row] = await mysql.query<{ id: string; user_id: string }>(
      'SELECT id, user_id FROM orders WHERE batch_id = ? ORDER BY id LIMIT 1',
      [batch.batchId],
    );
    const release = {
      saleId,
      bucket: 0,
      userId: row?.user_id ?? '',
      requestId: 'k1',
      orderId: row?.id ?? '',
      batchId: batch.batchId,
      withUnits: true,
    };
    await mysql.transaction(async (tx) => {
      await tx.execute("UPDATE orders SET state = 'expired' WHERE id = ?", [release.orderId]);
      await tx.execute('UPDATE sales SET sold = sold - 1 WHERE id = ?', [saleId]);
      const payload = JSON.stringify([release]);
      for (let i = 0; i < 3; i++) {
        await tx.execute("INSERT INTO outbox (kind, `key`, payload) VALUES ('release', 'thrice', ?)", [payload]);
      }
    });

    const figures = await expectInvariants(system.stack, saleId);
    expect(figures).to.include({ sold: 1, unitsLeft: 19, rows: 2 });
    expect(await createBatchStore(system.stack.redis).release([release])).to.deep.equal(['nothing']);
    expect((await expectInvariants(system.stack, saleId)).unitsLeft).to.equal(19);
  });

  it('shows the contents of RocketMQ from one of two keepers, and from the other after its death', async () => {
    await system.stack.mysql.execute('DELETE FROM job_leases', []); // removes the lease of a keeper from earlier tests
    const other = await system.programs.start('keeper');
    const isShown = async (one: Program): Promise<boolean> => {
      const { text } = await ask(`${one.operatorsUrl}/metrics`);
      return /^seckill_mq_half_open\b/m.test(text) && /^seckill_mq_lag\{/m.test(text);
    };
    const shownBy = async (): Promise<Program[]> => {
      const shown = await Promise.all([keeper, other].map(isShown));
      return [keeper, other].filter((_one, index) => shown[index]);
    };
    await until('one shows it', async () => (await shownBy()).length === 1);
    const [first] = await shownBy();
    await first?.crash();
    await system.stack.mysql.execute('UPDATE job_leases SET leased_until = UTC_TIMESTAMP(3)', []);
    const second = first === keeper ? other : keeper;
    await until('the other one shows it', () => isShown(second));
  });
});
