import { expect } from 'chai';
import { createOrderAudit, type AuditedRow, type AuditOptions } from '../invariants/order-audit.js';
import type { MysqlPool } from '../../src/mysql/pool.js';
import { draftSale } from '../chaos/harness/sales.js';
import { mysqlWorld } from './repository-worlds.js';
import { useWorld } from './on-each-world.js';

describe('order audit in MySQL', () => {
  const world = useWorld(() => mysqlWorld(2));

  const newSale = async (): Promise<string> => (await draftSale({ admin: world.sales })).saleId;
  const insert = (orderId: string, saleId: string, userId: string): Promise<unknown> =>
    world.pool.execute(
      'INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, state, one_per_buyer)' +
        " VALUES (?, ?, ?, 'k1', 'batch-1', 2, 100, 'pending_payment', 0)",
      [orderId, saleId, userId],
    );
  const readAll = async (saleId: string, options: AuditOptions): Promise<AuditedRow[]> => {
    const rows: AuditedRow[] = [];
    for await (const chunk of createOrderAudit(world.pool, options).orders(saleId)) rows.push(...chunk);
    return rows;
  };

  it('reads every row of the sale once, across windows, among other sales and above 2^53', async () => {
    const [saleId, other] = [await newSale(), await newSale()];
    // Ids that a double cannot distinguish, and that no other run has.
    const base = BigInt(saleId) * 1000n + (1n << 60n);
    for (let i = 0n; i < 7n; i++) await insert(String(base + i), i % 3n === 2n ? other : saleId, `u${i}`);

    for (const windowRows of [1, 2, 3, 7, 20_000]) {
      const rows = await readAll(saleId, { windowRows });
      expect(
        rows.map((row) => row.userId),
        `windows of ${windowRows}`,
      ).to.deep.equal(['u0', 'u1', 'u3', 'u4', 'u6']);
      expect(rows[0]).to.deep.equal({
        orderId: String(base),
        userId: 'u0',
        requestId: 'k1',
        batchId: 'batch-1',
        quantity: 2,
        state: 'pending_payment',
        reason: null,
        paidAtMs: null,
      });
    }
  });

  it('reads only the rows in the ranges, and each row once when ranges overlap', async () => {
    const [saleId, other] = [await newSale(), await newSale()];
    const base = BigInt(saleId) * 1000n + (1n << 60n);
    for (let i = 0n; i < 9n; i++) await insert(String(base + i), i % 3n === 2n ? other : saleId, `u${i}`);
    const ranges = [
      [0n, 1n], // Rows of the sale itself.
      [1n, 4n], // Contains a row of the other sale, and overlaps another range.
      [3n, 3n], // Inside the previous range.
      [6n, 7n],
    ];
    for (const [first = 0n, last = 0n] of ranges) {
      const sql = 'INSERT INTO order_ranges (sale_id, first_id, last_id, orders) VALUES (?, ?, ?, 2)';
      await world.pool.execute(sql, [saleId, String(base + first), String(base + last)]);
    }
    await world.pool.execute('UPDATE sales SET sold = 12 WHERE id = ?', [saleId]);
    let statements = 0;
    const counting = {
      ...world.pool,
      query: (...args: Parameters<MysqlPool['query']>) => (statements++, world.pool.query(...args)),
    };
    const rows: string[] = [];
    for await (const chunk of createOrderAudit(counting as MysqlPool, { searchAll: false }).orders(saleId)) {
      rows.push(...chunk.map(({ userId }) => userId));
    }
    const all = ['u0', 'u1', 'u3', 'u4', 'u6', 'u7'];
    expect(rows).to.deep.equal(all);
    expect(statements, 'ranges, rows, the archive, the sale').to.equal(4);
    for (const windowRows of [1, 2, 3]) {
      expect((await readAll(saleId, { windowRows })).map(({ userId }) => userId)).to.deep.equal(all);
    }

    await insert(String(base + 100n), saleId, 'unlisted');
    const users = async (options: AuditOptions) => (await readAll(saleId, options)).map(({ userId }) => userId);
    expect(await users({ searchAll: false }), '`sold` says that nothing is missing').to.deep.equal(all);
    expect(await users({})).to.deep.equal([...all, 'unlisted']);
    await world.pool.execute('UPDATE sales SET sold = 14 WHERE id = ?', [saleId]);
    expect(await users({ searchAll: false })).to.deep.equal([...all, 'unlisted']);
  });

  it('counts only unfinished releases of the sale', async () => {
    const saleId = await newSale();
    const longer = `${saleId}1`;
    const release = (sale: string): string => JSON.stringify([{ saleId: sale, bucket: 0, userId: saleId }]);
    const write = async (kind: string, payload: string, ofSale: string | null = null): Promise<string> => {
      const sql = "INSERT INTO outbox (kind, `key`, payload, sale_id) VALUES (?, 'b', ?, ?)";
      return (await world.pool.execute(sql, [kind, payload, ofSale])).insertId;
    };
    const audit = createOrderAudit(world.pool);
    expect(await audit.undoneReleases(saleId)).to.equal(0);

    await write('release', release(longer));
    const ofOtherKind = await write('batch_recorded', release(saleId));
    const done = await write('release', release(saleId));
    expect(await audit.undoneReleases(saleId), 'of the release before, which names no sale').to.equal(1);
    const named = [await write('release', release(longer), saleId), await write('release', release(longer), saleId)];
    const ofOtherSale = await write('release', release(saleId), longer);
    expect(await audit.undoneReleases(saleId), 'the column decides').to.equal(3);
    await world.pool.execute('DELETE FROM outbox WHERE id IN (?)', [[...named, ofOtherSale]]);

    await world.pool.execute('UPDATE outbox SET done_at = UTC_TIMESTAMP(3) WHERE id = ? OR payload = ?', [
      done,
      release(longer),
    ]);
    expect(await audit.undoneReleases(saleId)).to.equal(0);
    // A later test expects no error in the log, but no keeper can read this row.
    await world.pool.execute('DELETE FROM outbox WHERE id = ?', [ofOtherKind]);
  });

  it('finds a sale, or reports that it does not exist', async () => {
    const saleId = await newSale();
    expect(await createOrderAudit(world.pool).findSale(saleId)).to.include({ saleId, state: 'draft' });
    expect(await createOrderAudit(world.pool).findSale('999999999999999')).to.equal(null);
  });
});
