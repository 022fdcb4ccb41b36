import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { Batch } from '../../src/core/batch.js';
import { openMysqlPool, type MysqlPool } from '../../src/mysql/pool.js';
import { createShadowStore } from '../../src/mysql/shadow-store.js';
import { createOrderIdMinter, type OrderIdMinter } from '../../src/orders/order-id-minter.js';
import { recordBatches } from '../../src/orders/record-batches.js';
import { Shadow } from '../../src/orders/shadow.js';
import { reacquiringStore } from '../helpers/memory/memory-redis.js';
import { partial } from '../helpers/partial.js';
import { batchOf, purchaseOf, purchasesOf } from '../helpers/sales.js';
import { mysqlIn } from '../helpers/servers.js';
import { silentLog } from '../helpers/silent-log.js';
import { stackEnv } from '../helpers/stack-env.js';
import { useWorld } from './on-each-world.js';
import { mysqlWorld, newSale } from './repository-worlds.js';

const OPTIONS = { paymentWindowMs: 900_000 };

describe('a shadow of the workers on MySQL', () => {
  const world = useWorld(() => mysqlWorld(2));
  let minter: OrderIdMinter;
  let readOnly: MysqlPool;
  before(async () => {
    readOnly = openMysqlPool({ ...mysqlIn(stackEnv()), isReadOnly: true, poolMax: 2, queryTimeoutMs: 5000 });
    const owner = randomBytes(9).toString('base64url');
    const { slots, clock } = world;
    minter = createOrderIdMinter({ slots, clock, log: silentLog }, { owner, leaseMs: 60_000 });
    await minter.renew();
  });
  after(async () => {
    await minter.close();
    await readOnly.close();
  });

  const record = (...batches: Batch[]) =>
    recordBatches(batches, { repository: world.orders, clock: world.clock, minter, store: reacquiringStore }, OPTIONS);

  /** Returns the fields that differ, and the purchases compared. */
  async function compare(...batches: Batch[]): Promise<{ fields: string[]; purchases: number }> {
    const fields: string[] = [];
    const shadow = new Shadow(
      {
        source: partial({}),
        store: createShadowStore(readOnly),
        wrap: (repository) => repository,
        clock: { ...world.clock, nowMs: () => 0 },
        metrics: { compared: () => undefined, differed: (field) => void fields.push(field), skipped: () => undefined },
        log: silentLog,
      },
      { loops: 1, receiveMax: 1, ...OPTIONS },
    );
    for (const { body, batchId } of batches) {
      await shadow.compare(partial({ body, messageId: batchId }), new AbortController().signal);
    }
    return { fields, purchases: shadow.result.purchases };
  }

  it('plans the rows that the workers wrote, whatever the result of each purchase', async () => {
    const [plain, single, small] = [
      await world.sales.create(newSale({ limitPerBuyer: 5 })),
      await world.sales.create(newSale({ limitPerBuyer: 1 })),
      await world.sales.create(newSale({ stock: 1, limitPerBuyer: 5 })),
    ];
    const refused = `refused-${randomBytes(6).toString('hex')}`;
    await world.refuseOrdersOf(refused);
    const told = { ...purchaseOf('ann*2'), metadata: { size: 'L', note: 'Ünï "\\' } };
    const batches = [
      batchOf(plain, [told, ...purchasesOf('bob')]),
      batchOf(plain, [told, ...purchasesOf('cid')]), // ann is in another batch
      batchOf(single, purchasesOf('ann')),
      batchOf(single, [{ userId: 'ann', requestId: 'k2', quantity: 1 }, ...purchasesOf('bob')]), // over the limit
      batchOf(single, [purchaseOf('dan'), { userId: 'dan', requestId: 'k2', quantity: 1 }]),
      batchOf(small, purchasesOf('ann', 'bob', 'cid')), // two are oversold
      batchOf(plain, [purchaseOf('eve'), purchaseOf(refused)]),
    ];
    for (const batch of batches) await record(batch);
    const reasons = await world.pool.query<{ reason: string }>(
      'SELECT DISTINCT reason FROM orders WHERE sale_id IN (?) AND reason IS NOT NULL ORDER BY reason',
      [[plain.saleId, single.saleId, small.saleId]],
    );
    expect(reasons.map(({ reason }) => reason)).to.deep.equal([
      'limit_reached',
      'oversold_guard',
      'refused_by_database',
    ]);
    expect(await compare(...batches)).to.deep.equal({ fields: [], purchases: 14 });
  });

  it('names the differing fields of a row, and a missing row', async () => {
    const sale = await world.sales.create(newSale({ limitPerBuyer: 5 }));
    const batch = batchOf(sale, [{ ...purchaseOf('ann'), metadata: { size: 'L' } }, ...purchasesOf('bob', 'cid')]);
    await record(batch);
    const change = (set: string, userId: string) =>
      world.pool.execute(`UPDATE orders SET ${set} WHERE sale_id = ? AND user_id = ?`, [sale.saleId, userId]);
    await world.pool.execute('DELETE FROM order_metadata WHERE sale_id = ?', [sale.saleId]);
    await change('amount_cents = amount_cents + 1, quantity = quantity + 1', 'bob');
    await change("state = 'failed', reason = 'limit_reached', expires_at = NULL", 'cid');
    expect((await compare(batch)).fields).to.have.members(['metadata', 'quantity', 'amount', 'outcome']);
    await change('expires_at = expires_at + INTERVAL 1 HOUR', 'ann');
    await change("batch_id = 'another'", 'bob');
    expect((await compare(batch)).fields).to.include.members(['deadline']);
  });

  it('cannot write', async () => {
    const sale = await world.sales.create(newSale());
    const change = readOnly.execute('UPDATE sales SET sold = 1 WHERE id = ?', [sale.saleId]);
    expect(await change.then(() => 'written', String)).to.match(/READ ONLY/i);
    expect((await world.sales.find(sale.saleId))?.sold).to.equal(0);
  });
});
