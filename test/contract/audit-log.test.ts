import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { createAuditLog, insertAudit } from '../../src/mysql/audit-log.js';
import { mysqlWorld } from './repository-worlds.js';
import { useWorld } from './on-each-world.js';

describe('audit log', () => {
  const world = useWorld(() => mysqlWorld(2));

  it('lists entries unchanged, newest first and page by page, with every filter', async () => {
    const actor = `ann-${randomBytes(6).toString('hex')}`;
    const log = createAuditLog(world.pool);
    const write = (action: string, subject: string, before: unknown, after: unknown) =>
      world.pool.transaction((tx) => insertAudit(tx, { actor, action, subject, before, after }));
    await write('sale.created', 'sale:900000001', null, { title: 'Ünïcode 🎉' });
    await write('sale.warmed', 'sale:900000001', { state: 'draft' }, { state: 'warm' });
    await log.append({ actor, action: 'sale.created', subject: 'sale:900000002', before: null, after: {} });

    const startMs = Date.now() - 60_000;
    const all = await log.list({ actor }, { max: 10 });
    expect(all.map(({ action, subject }) => `${action} ${subject}`)).to.deep.equal([
      'sale.created sale:900000002',
      'sale.warmed sale:900000001',
      'sale.created sale:900000001',
    ]);
    expect(all[2]).to.deep.include({ actor, before: null, after: { title: 'Ünïcode 🎉' } });
    expect(all[2]?.atMs).to.be.within(startMs, Date.now() + 60_000);

    const subjects = async (filter: object): Promise<number> =>
      (await log.list({ actor, ...filter }, { max: 10 })).length;
    expect(await subjects({ subject: 'sale:900000001' })).to.equal(2);
    expect(await subjects({ action: 'sale.created' })).to.equal(2);
    expect(await subjects({ action: 'sale.created', subject: 'sale:900000001' })).to.equal(1);
    expect(await subjects({ sinceMs: startMs })).to.equal(3);
    expect(await subjects({ sinceMs: Date.now() + 3_600_000 })).to.equal(0);

    const [first] = await log.list({ actor }, { max: 1 });
    const rest = await log.list({ actor }, { max: 10, beforeId: first?.auditId });
    expect([first, ...rest]).to.deep.equal(all);
  });

  it('shows old names as current names, and finds entries by either name', async () => {
    const actor = `cid-${randomBytes(6).toString('hex')}`;
    const log = createAuditLog(world.pool);
    const sql = 'INSERT INTO audit_log (actor, action, subject) VALUES (?, ?, ?)';
    await world.pool.execute(sql, [actor, 'sale.scattered', 'sale:900000003']); // by an earlier release
    await log.append({ actor, action: 'refund.claimed', subject: 'refund:p1', before: null, after: null });
    await log.append({ actor, action: 'rules.published', subject: 'rules:admission', before: null, after: null });
    const found = async (filter: object): Promise<string[]> =>
      (await log.list({ actor, ...filter }, { max: 10 })).map(({ action, subject }) => `${action} ${subject}`);
    const [rules, refund, sale] = [
      'rules.published rules:admission',
      'refund.claimed refund:p1',
      'sale.resharded sale:900000003',
    ];
    expect(await found({})).to.deep.equal([rules, refund, sale]);
    for (const action of ['sale.resharded', 'sale.scattered']) expect(await found({ action })).to.deep.equal([sale]);
    for (const subject of ['rules:admission', 'rules:entry']) expect(await found({ subject })).to.deep.equal([rules]);
    expect(await found({ action: 'refund.claimed' })).to.deep.equal([refund]);
  });

  it('shows a row unchanged when it was written by hand', async () => {
    const actor = `bob-${randomBytes(6).toString('hex')}`;
    const sql = 'INSERT INTO audit_log (actor, action, subject, before_json, after_json) VALUES (?, ?, ?, ?, NULL)';
    await world.pool.execute(sql, [actor, 'by.hand', 'x', 'no json']);
    const [entry] = await createAuditLog(world.pool).list({ actor }, { max: 1 });
    expect(entry).to.deep.include({ before: 'no json', after: null });
  });
});
