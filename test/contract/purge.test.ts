import { expect } from 'chai';
import { newCouponCode } from '../../src/core/coupon.js';
import { composeOrderId } from '../../src/core/order-id.js';
import { createAuditLog } from '../../src/mysql/audit-log.js';
import { eraseBuyer } from '../../src/operate/purge/erase-buyer.js';
import { purge, PURGED, type PurgedKind } from '../../src/operate/purge/purge.js';
import { newSale, ownMysqlWorld, systemClock, type MysqlWorld } from './repository-worlds.js';

const DAY_MS = 86_400_000;
const OLD_MS = Date.now() - 500 * DAY_MS;
const BEFORE_MS = Date.now() - 400 * DAY_MS;
const OLD = new Date(OLD_MS);

describe('purge and erasure in MySQL', () => {
  let world: MysqlWorld;
  let sequence = 0;
  before(async () => {
    world = await ownMysqlWorld();
  });
  after(() => world.close());
  beforeEach(async () => {
    const tables = await world.pool.query<{ readonly name: string }>(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()
        AND table_name NOT LIKE 'knex%' AND table_name NOT IN ('worker_slots', 'sale_calendar')`,
    );
    for (const { name } of tables) await world.pool.execute(`DELETE FROM ${name}`);
  });

  const insert = async (
    table: string,
    row: Readonly<Record<string, string | number | Date | null>>,
  ): Promise<string> => {
    const names = Object.keys(row);
    const sql = `INSERT INTO ${table} (${names.map((name) => `\`${name}\``).join()}) VALUES (${names.map(() => '?').join()})`;
    return (await world.pool.execute(sql, Object.values(row))).insertId;
  };
  const count = async (table: string, where = 'TRUE'): Promise<number> => {
    const [row] = await world.pool.query<{ readonly n: string }>(`SELECT COUNT(*) AS n FROM ${table} WHERE ${where}`);
    return Number(row?.n);
  };
  /** An order with all its related rows, in the archive or in the tables of live sales. */
  async function order(atMs: number, parts: Record<string, string> = {}, suffix = '_archive'): Promise<string> {
    sequence++;
    const { sale_id: saleId = '7', user_id: userId = 'ann', state = 'paid', after_paid: afterPaid = null } = parts;
    const id = composeOrderId(atMs, 3, userId, sequence % 256);
    const at = new Date(atMs);
    await insert(`orders${suffix}`, {
      id,
      sale_id: saleId,
      user_id: userId,
      request_id: `k${sequence}`,
      batch_id: 'b',
      quantity: 1,
      amount_cents: 100,
      state,
      after_paid: afterPaid,
      one_per_buyer: 0,
      created_at: at,
      updated_at: at,
    });
    await insert(`payments${suffix}`, { payment_id: `p${id}`, order_id: id, amount_cents: 100, created_at: at });
    await insert(`order_metadata${suffix}`, { order_id: id, metadata: '{"name":"Ann"}' });
    await insert(`order_traces${suffix}`, { order_id: id, trace_id: 'x'.repeat(16) });
    await insert(`coupons${suffix}`, { order_id: id, sale_id: saleId, user_id: userId, created_at: at });
    await couponCode(id, userId, new Date(Date.now() + DAY_MS));
    return id;
  }
  const couponCode = (orderId: string, userId: string, expiresAt: Date, state = 'free'): Promise<string> =>
    insert('coupon_codes', {
      code: newCouponCode(),
      order_id: orderId,
      sale_id: 1,
      user_id: userId,
      currency: 'EUR',
      percent: 10,
      min_cents: 0,
      state,
      expires_at: expiresAt,
    });
  const refund = (orderId: string, state: 'due' | 'refunded', paymentId = `p${orderId}`): Promise<string> =>
    insert('refunds', {
      payment_id: paymentId,
      order_id: orderId,
      amount_cents: 100,
      reason: 'late',
      state,
      created_at: OLD,
      updated_at: OLD,
    });
  const orderRefund = (orderId: string, state: 'due' | 'refunded' | 'failed', reason = 'broken'): Promise<string> =>
    insert('order_refunds', {
      order_id: orderId,
      payment_id: `p${orderId}`,
      key: `k${++sequence}`,
      amount_cents: 50,
      restock: 0,
      reason,
      actor: 'root',
      state,
      created_at: OLD,
      updated_at: OLD,
    });
  const paymentCase = (orderId: string, state: 'open' | 'closed'): Promise<string> =>
    insert('payment_cases', {
      kind: 'dispute',
      subject: `c${++sequence}`,
      order_id: orderId,
      detail: '',
      state,
      created_at: OLD,
      updated_at: OLD,
    });
  const deadLetter = (state: 'parked' | 'replayed', body = '{}', at = OLD): Promise<string> =>
    insert('dead_letters', {
      message_id: `m${++sequence}`,
      consumer_group: 'g',
      origin_topic: 't',
      body,
      reason: 'poison',
      detail: '',
      state,
      attempts: 1,
      created_at: OLD,
      updated_at: at,
    });
  const audit = (at: Date, after: object = {}): Promise<string> =>
    insert('audit_log', {
      actor: 'root',
      action: 'x',
      subject: 'sale:7',
      after_json: JSON.stringify(after),
      created_at: at,
    });
  const run = async (parts: { dryRun?: boolean; kinds?: readonly PurgedKind[]; signal?: AbortSignal } = {}) => {
    const done = await purge(
      { beforeMs: BEFORE_MS, kinds: PURGED, dryRun: false, actor: 'ann', ...parts },
      { pool: world.pool, clock: systemClock },
    );
    return Object.fromEntries(
      done.filter(({ removed, kept }) => removed + kept > 0).map(({ what, removed, kept }) => [what, [removed, kept]]),
    );
  };

  describe('purge', () => {
    it('removes archived orders with all their rows, except recent orders and orders with unsettled money', async () => {
      await order(OLD_MS);
      const young = await order(Date.now() - DAY_MS);
      const due = await order(OLD_MS);
      await refund(due, 'due');
      const inCase = await order(OLD_MS);
      await paymentCase(inCase, 'open');
      const partly = await order(OLD_MS);
      await orderRefund(partly, 'due');
      const disputed = await order(OLD_MS, { after_paid: 'disputed' });
      const live = await order(OLD_MS, {}, '');
      expect(await run({ kinds: ['archive'] })).to.deep.equal({ archive: [1, 4] });
      const left = [young, due, inCase, partly, disputed].sort();
      for (const [table, id] of [
        ['orders', 'id'],
        ['payments', 'order_id'],
        ['order_metadata', 'order_id'],
        ['order_traces', 'order_id'],
        ['coupons', 'order_id'],
      ] as const) {
        const rows = await world.pool.query<{ id: string }>(`SELECT ${id} AS id FROM ${table}_archive ORDER BY ${id}`);
        expect(rows.map((row) => row.id).sort(), table).to.deep.equal(left);
        expect(await count(table), 'a sale that is not archived keeps its orders').to.equal(1);
      }
      expect(await count('orders', `id = ${live}`)).to.equal(1);
    });

    it('removes a refund only after its payment, so that a repeated report still finds it', async () => {
      const gone = await order(OLD_MS);
      const kept = await order(Date.now() - DAY_MS);
      await refund(gone, 'refunded');
      await refund(kept, 'refunded');
      await orderRefund(gone, 'refunded');
      await orderRefund(kept, 'failed');
      expect(await run({ kinds: ['refunds'] })).to.deep.equal({ refunds: [0, 4] });
      expect(await run({ kinds: ['refunds', 'archive'] }), 'in this order').to.deep.equal({
        archive: [1, 0],
        refunds: [2, 2],
      });
      expect(await count('refunds', `order_id = ${kept}`)).to.equal(1);
    });

    it('removes other ended records by their last change, and keeps open records', async () => {
      await paymentCase('1', 'closed');
      await paymentCase('1', 'open');
      await deadLetter('replayed');
      await deadLetter('replayed', '{}', new Date());
      await deadLetter('parked');
      await insert('reconcile_runs', { applied: 0, actor: 'k', started_at: OLD, finished_at: OLD });
      for (const state of ['pending', 'failed_final', 'compensated']) {
        const job = { kind: 'leak', subject: state, sale_id: '7', detail: '', state, created_at: OLD, updated_at: OLD };
        await insert('compensation_jobs', job);
      }
      for (const state of ['begun', 'done'])
        await insert('sale_edits', { sale_id: '7', units: 1, epoch: 1, state, actor: 'x', created_at: OLD });
      const event = { order_id: '1', sale_id: '7', type: 'order.paid', happened_at: OLD };
      for (const created_at of [OLD, new Date()]) {
        await insert('notifications', { ...event, user_id: 'ann', event_id: `${++sequence}-paid`, created_at });
      }
      for (const state of ['due', 'delivered', 'dropped'])
        await insert('webhook_deliveries', { ...event, endpoint_id: 1, sequence: ++sequence, state, created_at: OLD });
      await audit(OLD);
      await audit(new Date());
      await order(OLD_MS, {}, '');
      for (const [index, state] of ['free', 'redeemed', 'reserved'].entries())
        await couponCode(String(index + 1), 'ann', OLD, state);
      const expected = {
        coupons: [2, 1],
        cases: [1, 1],
        'dead-letters': [1, 1],
        reconcile: [3, 1],
        edits: [1, 1],
        traces: [1, 0],
        notifications: [1, 0],
        webhooks: [2, 1],
        audit: [1, 0],
      };
      expect(await run({ dryRun: true })).to.deep.equal(expected);
      expect(await count('audit_log'), 'a dry run changes nothing').to.equal(2);
      expect(await run()).to.deep.equal(expected);
      expect(await run()).to.deep.equal({
        ...{ coupons: [0, 1], cases: [0, 1], 'dead-letters': [0, 1], reconcile: [0, 1], edits: [0, 1] },
        webhooks: [0, 1],
      });
      expect([await count('orders'), await count('order_metadata'), await count('dead_letters')]).to.deep.equal([
        1, 1, 2,
      ]);
    });

    it('writes the audit log, works in batches and continues after an interruption', async () => {
      const rows = Array.from({ length: 1200 }, () => "('a', 'x', 's', '2020-01-01')");
      await world.pool.execute(`INSERT INTO audit_log (actor, action, subject, created_at) VALUES ${rows.join()}`);
      const stopping = new AbortController();
      const sums: number[] = [];
      const order1 = { beforeMs: BEFORE_MS, kinds: PURGED, dryRun: false, actor: 'ann', signal: stopping.signal };
      const done = await purge(order1, { pool: world.pool, clock: systemClock }, ({ what, removed }) => {
        if (what !== 'audit') return;
        sums.push(removed);
        if (removed === 1000) stopping.abort();
      });
      expect([sums, done.map(({ what }) => what).includes('audit')]).to.deep.equal([[500, 1000], false]);
      expect(await run({ kinds: ['audit'] })).to.deep.equal({ audit: [200, 0] });
      const entries = await createAuditLog(world.pool).list({ action: 'data.purged' }, { max: 10 });
      expect(entries.map(({ actor, after }) => [actor, (after as { kinds: string[] }).kinds])).to.deep.equal([
        ['ann', ['audit']],
        ['ann', [...PURGED]],
      ]);
    });
  });

  describe('erasure of a buyer', () => {
    const erase = (userId: string, dryRun = false) =>
      eraseBuyer({ userId, dryRun, actor: 'root' }, { pool: world.pool, clock: systemClock });
    const retiredSale = async (retirement = 'done'): Promise<string> => {
      const { saleId } = await world.sales.create(newSale());
      await world.pool.execute("UPDATE sales SET state = 'closed', retirement = ? WHERE id = ?", [retirement, saleId]);
      return saleId;
    };
    /** Returns every row of every table that contains the text. */
    async function rowsWith(text: string): Promise<string[]> {
      const columns = await world.pool.query<{ table: string; column: string }>(
        `SELECT table_name AS \`table\`, column_name AS \`column\` FROM information_schema.columns
          WHERE table_schema = DATABASE() AND data_type IN ('varchar', 'text', 'mediumtext', 'longtext', 'char')`,
      );
      const found: string[] = [];
      for (const { table, column } of columns) {
        const where = `INSTR(\`${column}\`, '${text}') > 0`;
        if ((await count(table, where)) > 0) found.push(`${table}.${column}`);
      }
      return found.sort();
    }

    it('removes the id everywhere, and leaves totals and other buyers unchanged', async () => {
      const saleId = await retiredSale();
      for (const [user, suffix] of [
        ['ann@x', ''],
        ['ann@x', '_archive'],
        ['bob', ''],
      ] as const) {
        const id = await order(OLD_MS, { sale_id: saleId, user_id: user }, suffix);
        const key = `${user}/k${sequence}`;
        const purchases = [[user, `k${sequence}`, 1]];
        await deadLetter('replayed', JSON.stringify({ v: 1, batchId: 'b', purchases }));
        await orderRefund(id, 'refunded', `asked for by ${user}`);
        const moved = { actor: 'root', action: 'order.refunded', subject: `order:${id}` };
        await insert('audit_log', {
          ...moved,
          after_json: JSON.stringify({ amountCents: 5, reason: `Ms ${user} called` }),
        });
        await audit(OLD, { userId: user, detail: `1 units are held for ${key} by batch b` });
        await insert('compensation_jobs', {
          kind: 'leak',
          subject: `${saleId}/${key}`,
          sale_id: saleId,
          user_id: user,
          detail: key,
          state: 'compensated',
        });
        await insert('notifications', {
          ...{ user_id: user, order_id: id, sale_id: saleId, event_id: `${sequence}-paid` },
          ...{ type: 'order.paid', happened_at: OLD },
        });
        await insert('reconcile_runs', {
          applied: 0,
          actor: 'k',
          findings_json: JSON.stringify([{ kind: 'leak', userId: user, requestId: 'k', orderId: id }]),
        });
      }
      const books = 'SELECT COUNT(*) AS n, SUM(amount_cents) AS sum, COUNT(DISTINCT user_id) AS buyers FROM';
      const sums = async () => [
        await world.pool.query(`${books} orders`),
        await world.pool.query(`${books} orders_archive`),
        await count('payments'),
        await count('coupons'),
      ];
      const before = await sums();
      const bob = await rowsWith('bob');
      const dry = await erase('ann@x', true);
      expect(dry).to.deep.include({ outcome: 'erased' });
      expect(await rowsWith('ann@x'), 'a dry run changes nothing').to.have.length.above(5);
      const done = await erase('ann@x');
      if (done.outcome !== 'erased' || dry.outcome !== 'erased') throw new Error(done.outcome);
      expect(done.rows, 'as announced').to.deep.equal(dry.rows);
      expect(await rowsWith('ann@x')).to.deep.equal([]);
      expect(await rowsWith(done.name)).to.include.members([
        'orders.user_id',
        'orders_archive.user_id',
        'coupons.user_id',
        'coupon_codes.user_id',
      ]);
      expect(await count('order_metadata')).to.equal(1);
      expect(await sums()).to.deep.equal(before);
      expect(await rowsWith('bob')).to.deep.equal(bob);
      const [entry] = await createAuditLog(world.pool).list({ action: 'buyer.erased' }, { max: 1 });
      expect(entry).to.deep.include({ actor: 'root', subject: 'buyer', after: { orders: 2, name: done.name } });
      expect((await erase('ann@x')).outcome, 'it may be repeated').to.equal('unknown');
    });

    it("changes no text that merely resembles the buyer's id", async () => {
      const saleId = await retiredSale();
      await order(OLD_MS, { sale_id: saleId, user_id: '7' });
      const like = { saleId: '7', epoch: 7, note: 'sale 7/other and 17/k1', userId: '77' };
      const auditId = await audit(OLD, like);
      const letter = await deadLetter('replayed', '{"purchases":[["77","k1",7]],"saleId":"7"}');
      expect((await erase('7')).outcome).to.equal('erased');
      const [entry] = await world.pool.query<{ json: string }>(
        'SELECT after_json AS json FROM audit_log WHERE id = ?',
        [auditId],
      );
      expect(JSON.parse(entry?.json ?? '')).to.deep.equal(like);
      const [body] = await world.pool.query<{ body: string }>('SELECT body FROM dead_letters WHERE id = ?', [letter]);
      expect(body?.body).to.equal('{"purchases":[["77","k1",7]],"saleId":"7"}');
    });

    it('refuses with reasons, and changes nothing, while anything of the buyer is open', async () => {
      const open = await retiredSale('none');
      const over = await retiredSale();
      const first = await order(OLD_MS, { sale_id: open, state: 'pending_payment' }, '');
      const second = await order(OLD_MS, { sale_id: over });
      await refund(second, 'due');
      await orderRefund(second, 'due');
      await paymentCase(second, 'open');
      const third = await order(OLD_MS, { sale_id: over, after_paid: 'disputed' });
      await insert('payment_attempts', { order_id: first, key: 'k', amount_cents: 1, state: 'open' });
      const job = { kind: 'leak', subject: 's', sale_id: over, user_id: 'ann', detail: '', state: 'pending' };
      const jobId = await insert('compensation_jobs', job);
      const letter = await deadLetter('parked', '{"purchases":[["ann","k1",1]]}');
      expect(await erase('ann')).to.deep.equal({
        outcome: 'open',
        why: [
          `sale ${open} is not retired: Redis still has the buyer`,
          `order ${first} is unpaid`,
          `a charge of order ${first} is open`,
          `a refund of order ${second} is due`,
          `a refund of order ${second} is due`,
          `order ${third} is disputed`,
          `a payment case of order ${second} is open`,
          `compensation job ${jobId} is pending`,
          `dead letter ${letter} is parked`,
        ],
      });
      expect(await count('orders', "user_id = 'ann'")).to.equal(1);
      expect(await count('audit_log', "action = 'buyer.erased'")).to.equal(0);
    });
  });
});
