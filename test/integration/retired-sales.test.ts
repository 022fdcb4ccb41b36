import { expect } from 'chai';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { expectInvariants } from '../helpers/invariants.js';
import { useSystem } from '../helpers/system.js';

const KEEPER_TIMES = { KEEPER_EVERY_MS: '100', OUTBOX_EVERY_MS: '100', RECONCILE_EVERY_MS: '0' };

describe('retired sales', () => {
  let api: Program;
  const system = useSystem(async ({ programs }) => {
    [api] = await Promise.all([
      programs.start('api', { env: { PAYMENT_PROVIDER: 'simulator' } }),
      programs.start('keeper', { env: KEEPER_TIMES }),
      programs.start('worker'),
    ]);
  });

  const sql = (text: string, ...values: string[]) => system.stack.mysql.execute(text, values);
  const keysOf = (saleId: string): Promise<string[]> => system.stack.redis.redis.keys(`sk:{${saleId}:*`);
  const stateOf = async (saleId: string): Promise<string> => {
    const rows = await system.stack.mysql.query<{ retirement: string }>('SELECT retirement FROM sales WHERE id = ?', [
      saleId,
    ]);
    return rows[0]?.retirement ?? '';
  };

  it('leave Redis long after their end, and MySQL then gives the answers that Redis gave', async () => {
    const { saleId } = await openSale(system.stack, { stock: 100, buckets: 2 });
    const buyers = new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
    const users = Array.from({ length: 20 }, (_, index) => `r${index + 1}`);
    for (const answer of await buyers.rush(users, 10)) expect(answer?.status).to.equal(202);
    for (const user of users)
      await until('it is ordered', async () => (await buyers.status(user)).json.status === 'ordered');
    const before = (await buyers.status('r1')).json;
    const token = buyers.token('root', ['admin']);
    expect(
      (await ask(`${api.operatorsUrl}/admin/v1/sales/${saleId}/close`, { method: 'POST', token })).status,
    ).to.equal(200);

    // now, because the keeper retries to retire a sale only after minutes
    await until('its outbox is done', async () => {
      const undone = 'SELECT id FROM outbox WHERE done_at IS NULL AND payload LIKE ?';
      return (await system.stack.mysql.query(undone, [`%"saleId":"${saleId}"%`])).length === 0;
    });
    await sql('UPDATE sales SET closed_at = closed_at - INTERVAL 8 DAY WHERE id = ?', saleId);
    await until('it is retired', async () => (await stateOf(saleId)) === 'begun');
    expect(await keysOf(saleId), 'an api may still ask').not.to.deep.equal([]);
    await sql('UPDATE sales SET retired_at = retired_at - INTERVAL 1 HOUR WHERE id = ?', saleId);
    await until('Redis has forgotten it', async () => (await stateOf(saleId)) === 'done');
    const rest = (await keysOf(saleId)).filter((key) => !key.includes(':tx:'));
    expect(rest, 'markers end by themselves').to.deep.equal([]);

    await until('the api knows', async () => (await buyers.buy('late'))?.json.code === 'closed');
    expect((await buyers.status('r1')).json).to.deep.equal(before);
    const again = await buyers.buy('r1');
    expect([again?.status, again?.json.orderId]).to.deep.equal([200, before.orderId]);
    expect((await buyers.status('late')).status).to.equal(404);
    expect((await buyers.order('r1', String(before.orderId))).status).to.equal(200);
    const page = await ask(`${api.url}/v1/sales/${saleId}`, { token: buyers.token('r1') });
    expect([page.status, page.json.state]).to.deep.equal([200, 'closed']);
    const shown = await ask(`${api.operatorsUrl}/admin/v1/sales/${saleId}`, { token });
    expect(shown.json.retiredAt).to.be.a('string');
    const closed = await ask(`${api.operatorsUrl}/admin/v1/sales/${saleId}/close`, { method: 'POST', token });
    expect(closed.status, 'again').to.equal(200);

    // A buyer who cancels now changes only MySQL.
    expect((await buyers.move('cancel', 'r2', String((await buyers.status('r2')).json.orderId)))?.status).to.equal(200);
    await until('its release is done', async () => {
      const pattern = `%"saleId":"${saleId}"%`;
      const undone = 'SELECT id FROM outbox WHERE done_at IS NULL AND payload LIKE ?';
      return (await system.stack.mysql.query(undone, [pattern])).length === 0;
    });
    expect((await keysOf(saleId)).filter((key) => !key.includes(':tx:'))).to.deep.equal([]);
    await expectInvariants(system.stack, saleId, buyers.opLog);

    // A week later, all orders except an unpaid order are archived.
    const orderIdOf = async (user: string): Promise<string> => String((await buyers.status(user)).json.orderId);
    const paid = users.filter((user) => user !== 'r2' && user !== 'r3');
    for (const user of paid) expect((await buyers.move('pay', user, await orderIdOf(user)))?.status).to.equal(200);
    // answers about retired sales are cached for some seconds
    await until('it is seen as paid', async () => (await buyers.status('r1')).json.orderState === 'paid');
    const mine = async (): Promise<unknown> =>
      (await ask(`${api.url}/v1/me/orders`, { token: buyers.token('r1') })).json;
    await sql('UPDATE orders SET created_at = created_at - INTERVAL 2 HOUR WHERE sale_id = ?', saleId);
    const [status, order, list] = [(await buyers.status('r1')).json, await orderIdOf('r1'), await mine()];
    await sql('UPDATE sales SET retired_at = retired_at - INTERVAL 8 DAY WHERE id = ?', saleId);
    const left = async (): Promise<string[]> =>
      (
        await system.stack.mysql.query<{ user_id: string }>('SELECT user_id FROM orders WHERE sale_id = ?', [saleId])
      ).map((row) => row.user_id);
    await until('they are in the archive', async () => (await left()).length === 1);
    expect(await left()).to.deep.equal(['r3']);
    expect((await buyers.status('r1')).json).to.deep.equal(status);
    expect((await buyers.order('r1', order)).status).to.equal(200);
    expect(await mine()).to.deep.equal(list);
    const repeated = await buyers.buy('r1');
    expect([repeated?.status, repeated?.json.orderId], 'no second order').to.deep.equal([200, order]);
    expect((await buyers.move('cancel', 'r1', order))?.status, 'it is paid').to.equal(409);
    expect((await buyers.move('cancel', 'r3', await orderIdOf('r3')))?.status).to.equal(200);
    const exported = await ask(`${api.operatorsUrl}/admin/v1/orders?sale=${saleId}`, { token });
    expect((exported.json.orders as unknown[]).length, 'across both').to.equal(users.length);
    await expectInvariants(system.stack, saleId, buyers.opLog);
  });
});
