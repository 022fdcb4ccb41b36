import { expect } from 'chai';
import { createAuditLog } from '../../src/mysql/audit-log.js';
import { createJobLeases } from '../../src/mysql/job-leases.js';
import { markRestored } from '../../src/mysql/restored.js';
import { createRuleRepository } from '../../src/mysql/rule-repository.js';
import { createReconcileRuns } from '../../src/operate/reconcile/reconcile-runs.js';
import { newSale, ownMysqlWorld, type MysqlWorld } from './repository-worlds.js';

describe('database restored to an earlier moment', () => {
  let world: MysqlWorld;
  beforeEach(async () => {
    world = await ownMysqlWorld();
  });
  afterEach(() => world?.close());

  const epochOf = async (saleId: string): Promise<number> => (await world.sales.find(saleId))?.epoch ?? Number.NaN;
  const writeEvent = async (): Promise<bigint> => {
    const sql = "INSERT INTO outbox (kind, `key`, payload) VALUES ('orders_moved', 'k', '{}')";
    return BigInt((await world.pool.execute(sql)).insertId);
  };

  it('raises the epoch of every sale far above any epoch that Redis or the broker knows', async () => {
    const draft = await world.sales.create(newSale());
    const open = await world.sales.create(newSale());
    await world.sales.move(open.saleId, 'warm');
    await world.raiseEpoch(open.saleId);
    const retired = await world.sales.create(newSale());
    await world.pool.execute("UPDATE sales SET state = 'closed', retirement = 'done' WHERE id = ?", [retired.saleId]);

    const { sales, epochsRaisedBy } = await markRestored(world.pool, 'ann');
    expect(sales).to.equal(2);
    expect(epochsRaisedBy, 'more than a sale is ever rebuilt').to.be.at.least(1000);
    expect(await epochOf(draft.saleId)).to.equal(1 + epochsRaisedBy);
    expect(await epochOf(open.saleId)).to.equal(2 + epochsRaisedBy);
    expect(await epochOf(retired.saleId), 'the restore was not in progress').to.equal(1);
  });

  it('reuses no id of a sale or an event, even if only the counter remains', async () => {
    const { saleId } = await world.sales.create(newSale());
    const given = await writeEvent();
    await world.pool.execute('DELETE FROM outbox');
    await world.pool.execute('DELETE FROM sales');

    const { nextSaleId, nextOutboxId } = await markRestored(world.pool, 'ann');
    const sale = await world.sales.create(newSale());
    expect(sale.saleId).to.equal(nextSaleId);
    expect(BigInt(sale.saleId) - BigInt(saleId) > 10_000n, 'more sales than a shop has in a year').to.equal(true);
    const event = await writeEvent();
    expect(String(event)).to.equal(nextOutboxId);
    expect(event - given > 10n ** 12n, 'more events than there can have been').to.equal(true);
    const left = await world.pool.query(
      "SELECT id FROM sales WHERE sku = '' UNION ALL SELECT id FROM outbox WHERE kind = 'none'",
    );
    expect(left, 'what moved the counters on').to.deep.equal([]);
  });

  it('frees the leases of programs that ran when the copy was made', async () => {
    const [jobs, runs] = [createJobLeases(world.pool), createReconcileRuns(world.pool, world.clock)];
    const { saleId } = await world.sales.create(newSale());
    expect(await jobs.hold('expire', 'gone', 60_000)).to.equal(true);
    expect(await runs.lease(saleId, 'gone', 60_000)).to.include({ outcome: 'held' });

    await markRestored(world.pool, 'ann');
    expect(await jobs.hold('expire', 'next', 60_000)).to.equal(true);
    expect(await runs.lease(saleId, 'next', 60_000)).to.include({ outcome: 'held' });
  });

  it('publishes the restored rules under a higher version than any API may know', async () => {
    const rules = createRuleRepository(world.pool);
    expect(await markRestored(world.pool, 'ann'), 'no rules').to.include({ rulesVersion: null });
    const { version: none, ...empty } = await rules.current();
    expect(empty).to.deep.equal({ rules: {}, canary: null });

    await rules.store({ limits: { mode: 'off' } }, none, 'ann', { canary: { percent: 1 } });
    const { rulesVersion } = await markRestored(world.pool, 'bob');
    const restored = { version: rulesVersion, rules: { limits: { mode: 'off' } }, canary: null };
    expect(await rules.current(), 'without the canary').to.deep.equal(restored);
    expect(Number(rulesVersion) - none).to.be.above(1000);
    expect((await rules.history(1))[0]).to.include({ actor: 'bob' });
  });

  it('audits its changes, and can be repeated', async () => {
    const first = await markRestored(world.pool, 'ann');
    const second = await markRestored(world.pool, 'ann');
    expect(BigInt(second.nextOutboxId) > BigInt(first.nextOutboxId)).to.equal(true);
    const audited = await createAuditLog(world.pool).list({ subject: 'database' }, { max: 10 });
    expect(audited.map(({ actor, action, after }) => ({ actor, action, after }))).to.deep.equal([
      { actor: 'ann', action: 'database.restored', after: second },
      { actor: 'ann', action: 'database.restored', after: first },
    ]);
  });
});
