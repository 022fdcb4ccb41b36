import { expect } from 'chai';
import type { DueWork } from '../../src/core/ports/due-work.js';
import { createDueWork } from '../../src/mysql/due-work.js';
import { ownMysqlWorld } from './repository-worlds.js';
import { useWorld } from './on-each-world.js';

const AGO = 'UTC_TIMESTAMP(3) - INTERVAL 1 SECOND';
const LATER = 'UTC_TIMESTAMP(3) + INTERVAL 30 SECOND';

const outbox = (kind: string): readonly string[] => [
  `INSERT INTO outbox (kind, \`key\`, payload, available_at) VALUES ('${kind}', 'a', '[]', ${LATER})`,
  `INSERT INTO outbox (kind, \`key\`, payload, available_at, done_at) VALUES ('${kind}', 'b', '[]', ${AGO}, ${AGO})`,
  `INSERT INTO outbox (kind, \`key\`, payload, available_at) VALUES ('${kind}', 'c', '[]', ${AGO})`,
];
const threeRows = (insert: string, [open, ended]: readonly [string, string]): readonly string[] =>
  [`'1', '${open}', ${LATER}`, `'2', '${ended}', ${AGO}`, `'3', '${open}', ${AGO}`].map((row) =>
    insert.replace('?', row),
  );

/** Rows of each kind: two without work, a waiting row, and an ended row that becomes due. */
const ROWS: Record<DueWork, readonly string[]> = {
  batch_recorded: outbox('batch_recorded'),
  orders_moved: outbox('orders_moved'),
  release: outbox('release'),
  compensation: threeRows(
    "INSERT INTO compensation_jobs (kind, sale_id, detail, subject, state, available_at) VALUES ('leak', 1, '', ?)",
    ['pending', 'compensated'],
  ),
  payment: threeRows(
    'INSERT INTO payment_attempts (order_id, amount_cents, `key`, state, available_at) VALUES (1, 5, ?)',
    ['open', 'charged'],
  ),
  refund: threeRows(
    "INSERT INTO refunds (order_id, amount_cents, reason, payment_id, state, available_at) VALUES (1, 5, 'wrong_amount', ?)",
    ['due', 'refunded'],
  ),
  order_refund: threeRows(
    'INSERT INTO order_refunds (order_id, payment_id, amount_cents, restock, reason, actor, `key`, state, available_at)' +
      " VALUES (1, 'p', 5, 0, '', 'ann', ?)",
    ['due', 'failed'],
  ),
  expiry: threeRows(
    'INSERT INTO orders (sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer, id, state, expires_at)' +
      " VALUES (1, UUID(), 'r', 'b', 1, 5, 0, ?)",
    ['pending_payment', 'paid'],
  ),
  webhook: [
    `INSERT INTO webhook_deliveries (endpoint_id, order_id, sequence, type, sale_id, happened_at) VALUES (7, 1, 1, 'order.paid', 1, ${AGO})`,
    "INSERT INTO webhook_endpoints (id, url, secret, events, state) VALUES (7, '', '', '', 'paused')",
    "UPDATE webhook_endpoints SET state = 'active' WHERE id = 7",
  ],
  edit: ['done', 'refused', 'begun'].map(
    (state) => `INSERT INTO sale_edits (sale_id, units, epoch, actor, state) VALUES (1, 1, 1, 'ann', '${state}')`,
  ),
};

describe('contract DueWork on MySQL', () => {
  const world = useWorld(ownMysqlWorld);

  const found = new Set<string>();
  for (const [work, inserts] of Object.entries(ROWS)) {
    it(`finds ${work} if a row is due, but not if rows are waiting or have ended`, async () => {
      const readDue = createDueWork(world.pool);
      const [waits, ended, due] = inserts;
      for (const sql of [waits, ended]) await world.pool.execute(sql ?? '');
      expect(await readDue()).to.deep.equal(found);
      await world.pool.execute(due ?? '');
      expect(await readDue()).to.deep.equal(found.add(work));
    });
  }
});
