import { expect } from 'chai';
import { createOverdueRepository } from '../../src/mysql/overdue-repository.js';
import type { AgedState } from '../../src/core/waiting-states.js';
import { ownMysqlWorld } from './repository-worlds.js';
import { useWorld } from './on-each-world.js';

const AGO = 'UTC_TIMESTAMP(3) - INTERVAL 100 SECOND';

const orderDue = (id: number, state: string, expiresAt: string): string =>
  'INSERT INTO orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer, state,' +
  ` expires_at) VALUES (${id}, 1, 'u${id}', 'r', 'b', 1, 5, 0, '${state}', ${expiresAt})`;

/** In each state: two rows that have waited for 100 s, and one row that has ended. */
const ROWS: Record<AgedState, readonly string[]> = {
  pending_payment: ['pending_payment', 'pending_payment', 'expired'].map((state, index) =>
    orderDue(index + 1, state, AGO),
  ),
  outbox: [
    `INSERT INTO outbox (kind, \`key\`, payload, created_at) VALUES ('release', 'a', '[]', ${AGO})`,
    `INSERT INTO outbox (kind, \`key\`, payload, created_at) VALUES ('orders_moved', 'a', '[]', ${AGO})`,
    `INSERT INTO outbox (kind, \`key\`, payload, created_at, done_at) VALUES ('release', 'b', '[]', ${AGO}, ${AGO})`,
  ],
  dead_letter: ['parked', 'parked', 'discarded'].map(
    (state, index) =>
      'INSERT INTO dead_letters (message_id, consumer_group, origin_topic, body, reason, detail, state, attempts,' +
      ` created_at) VALUES ('m${index}', 'g', 't', '', 'undecodable', '', '${state}', 1, ${AGO})`,
  ),
  refund: ['due', 'refunded'].flatMap((state, index) => [
    'INSERT INTO refunds (payment_id, order_id, amount_cents, reason, state, created_at)' +
      ` VALUES ('p${index}', 1, 5, 'wrong_amount', '${state}', ${AGO})`,
    'INSERT INTO order_refunds (order_id, payment_id, `key`, amount_cents, restock, reason, actor, state, created_at)' +
      ` VALUES (1, 'p', 'k${index}', 5, 0, '', 'ann', '${state}', ${AGO})`,
  ]),
  payment_open: ['open', 'open', 'charged'].map(
    (state, index) =>
      'INSERT INTO payment_attempts (order_id, `key`, amount_cents, state, opened_at)' +
      ` VALUES (1, 'k${index}', 5, '${state}', ${AGO})`,
  ),
  payment_case: ['open', 'open', 'closed'].map(
    (state, index) =>
      'INSERT INTO payment_cases (kind, subject, detail, state, created_at)' +
      ` VALUES ('disputed', 'd${index}', '', '${state}', ${AGO})`,
  ),
  compensation: ['pending', 'pending', 'compensated'].map(
    (state, index) =>
      'INSERT INTO compensation_jobs (kind, subject, sale_id, detail, state, available_at)' +
      ` VALUES ('leak', '1/u/${index}', 1, '', '${state}', ${AGO})`,
  ),
  webhook_paused: ['failed', 'failed', 'paused'].map(
    (state) =>
      `INSERT INTO webhook_endpoints (url, secret, events, state, state_since) VALUES ('', '', '', '${state}', ${AGO})`,
  ),
  sale_kept: ['none', 'none', 'begun'].map(
    (retirement) =>
      'INSERT INTO sales (sku, title, price_cents, stock, limit_per_buyer, buckets, opens_at, closes_at, state, retirement)' +
      ` VALUES ('s', 't', 1, 1, 1, 1, '2020-01-01', ${AGO}, 'closed', '${retirement}')`,
  ),
  sale_unarchived: ['done', 'archiving', 'archived'].map(
    (retirement) =>
      'INSERT INTO sales (sku, title, price_cents, stock, limit_per_buyer, buckets, opens_at, closes_at, state,' +
      ` retirement, retired_at) VALUES ('s', 't', 1, 1, 1, 1, '2020-01-01', ${AGO}, 'closed', '${retirement}', ${AGO})`,
  ),
  sale_over: ['open', 'warm', 'closed'].map(
    (state) =>
      'INSERT INTO sales (sku, title, price_cents, stock, limit_per_buyer, buckets, opens_at, closes_at, state)' +
      ` VALUES ('s', 't', 1, 1, 1, 1, '2020-01-01', ${AGO}, '${state}')`,
  ),
};

/** Own database, because whole tables are counted. */
describe('OverdueRepository on mysql', () => {
  const world = useWorld(ownMysqlWorld);

  for (const [state, inserts] of Object.entries(ROWS) as [AgedState, readonly string[]][]) {
    it(`${state}: returns overdue rows and their delay, but no ended rows`, async () => {
      const repository = createOverdueRepository(world.pool);
      const overdue = async (afterMs: number) =>
        (await repository.overdue({ [state]: afterMs } as Record<AgedState, number>))[state];
      expect(await overdue(0)).to.deep.equal({ count: 0, oldestMs: 0 });
      for (const sql of inserts) await world.pool.execute(sql);
      const { count, oldestMs } = await overdue(60_000);
      expect(count).to.equal(2);
      expect(oldestMs).to.be.within(39_000, 100_000);
      expect(await overdue(3_600_000)).to.deep.equal({ count: 0, oldestMs: 0 });
    });
  }

  it('counts no unpaid order that became due a moment ago', async () => {
    await world.pool.execute('DELETE FROM orders');
    const at = (seconds: number): string => `UTC_TIMESTAMP(3) - INTERVAL ${seconds} SECOND`;
    for (const [index, seconds] of [-600, -1, 0, 2, 30].entries())
      await world.pool.execute(orderDue(100 + index, 'pending_payment', at(seconds)));
    const counted = async (): Promise<unknown> =>
      (await createOverdueRepository(world.pool).overdue({ pending_payment: 60_000, outbox: 0 })).pending_payment;
    expect(await counted()).to.deep.equal({ count: 0, oldestMs: 0 });
    await world.pool.execute(orderDue(200, 'pending_payment', at(70)));
    expect(await counted()).to.include({ count: 1 });
  });
});
