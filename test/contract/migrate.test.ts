import { readFile, writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import { createConnection, type Connection } from 'mysql2/promise';
import { OperationalError } from '../../src/core/errors.js';
import { migrate, migrationLock, planMigrations, type MigrateProgress } from '../../src/mysql/migrate.js';
import { MIGRATIONS } from '../../src/mysql/migrations.js';
import { connectionOptions } from '../../src/mysql/server.js';
import { stackEnv } from '../helpers/stack-env.js';
import { describeSchema } from '../helpers/describe-schema.js';
import { pause } from '../chaos/harness/wait.js';

const GOLDEN = new URL('./schema.sql', import.meta.url);
/** Longer than several waits of a migration for its table. */
const OPEN_MS = 4000;

describe('migrate', () => {
  let server: Connection;
  let url: string;
  let database: string;
  const made: string[] = [];

  before(async () => {
    server = await createConnection({ ...connectionOptions({ url: stackEnv().MYSQL_URL }), database: undefined });
  });
  beforeEach(async function () {
    database = `seckill_migrate_${process.pid}_${made.length}`;
    try {
      await server.query(`CREATE DATABASE ${database}`);
    } catch {
      console.log('    skipped: the user of MYSQL_URL may not make a database');
      this.skip();
    }
    made.push(database);
    const parsed = new URL(stackEnv().MYSQL_URL);
    parsed.pathname = `/${database}`;
    url = parsed.href;
  });
  after(async () => {
    for (const name of made) await server.query(`DROP DATABASE ${name}`);
    await server?.end();
  });

  const names = MIGRATIONS.map(({ name }) => name);

  it('brings an empty database to the golden schema step by step, and then does nothing', async () => {
    const steps: MigrateProgress[] = [];
    expect(await migrate({ url }, (step) => steps.push(step))).to.deep.equal(names);
    expect(steps.map(({ name }) => name)).to.deep.equal(names);
    expect(steps.at(-1)).to.include({ done: names.length, total: names.length });
    expect(await migrate({ url })).to.deep.equal([]);

    const schema = await describeSchema(server, database);
    if (process.env.UPDATE_GOLDEN_SCHEMA) await writeFile(GOLDEN, schema);
    expect(schema).to.equal(await readFile(GOLDEN, 'utf8'));
    const [slots] = await server.query(`SELECT COUNT(*) AS slots FROM ${database}.worker_slots`);
    expect(slots).to.deep.equal([{ slots: 256 }]);
  });

  it('lets one of two concurrent processes migrate, while the other finds the work done', async () => {
    const results = await Promise.all([migrate({ url }), migrate({ url }), migrate({ url })]);
    expect(results.filter((applied) => applied.length > 0)).to.deep.equal([names]);
  });

  it('frees the lock row of a killed migrator and completes its partial tables', async () => {
    await migrate({ url });
    await server.query(`UPDATE ${database}.knex_migrations_lock SET is_locked = 1`);
    await server.query(`DELETE FROM ${database}.knex_migrations`);
    await server.query(`DROP TABLE ${database}.audit_log`);
    await server.query(`DELETE FROM ${database}.worker_slots WHERE slot > 99`);

    expect(await migrate({ url })).to.deep.equal(names);

    expect(await describeSchema(server, database)).to.equal(await readFile(GOLDEN, 'utf8'));
    const [slots] = await server.query(`SELECT COUNT(*) AS slots FROM ${database}.worker_slots`);
    expect(slots).to.deep.equal([{ slots: 256 }]);
  });

  it('fills order ranges from existing orders, and can be repeated', async () => {
    await migrate({ url });
    const rows = Array.from({ length: 10_050 }, (_, nth) => {
      const saleId = nth % 3 === 0 ? 7 : 8;
      return `(${(1n << 60n) + BigInt(nth) * (1n << 18n)}, ${saleId}, 'u${nth}', 'k1', 'b', 1, 1, 0)`;
    });
    await server.query(
      `INSERT INTO ${database}.orders (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer)
       VALUES ${rows.join()}`,
    );
    const again = async (): Promise<void> => {
      await server.query(`DELETE FROM ${database}.knex_migrations WHERE name = '0008-order-ranges'`);
      expect(await migrate({ url })).to.deep.equal(['0008-order-ranges']);
    };
    await again();
    await server.query(`DELETE FROM ${database}.order_ranges WHERE first_id > ${(1n << 60n) + 5000n * (1n << 18n)}`);
    await again(); // As after a migrator that was killed half-way.
    const [found] = await server.query(
      `SELECT r.sale_id, COUNT(DISTINCT o.id) AS orders, COUNT(DISTINCT r.first_id) AS ranges
       FROM ${database}.order_ranges r
       JOIN ${database}.orders o ON o.sale_id = r.sale_id AND o.id BETWEEN r.first_id AND r.last_id GROUP BY r.sale_id`,
    );
    expect(found).to.deep.equal([
      { sale_id: 7, orders: 3350, ranges: 41 },
      { sale_id: 8, orders: 6700, ranges: 41 },
    ]);
  });

  it('converts amounts in currencies without cents once, but never while a payment is possible', async () => {
    await migrate({ url });
    const sale = (id: number, currency: string, state: string) =>
      `(${id}, 's', 't', 50000, '${currency}', 1, 1, 1, '2020-01-01', '2020-01-02', '${state}')`;
    await server.query(
      `INSERT INTO ${database}.sales (id, sku, title, price_cents, currency, stock, limit_per_buyer, buckets, opens_at, closes_at, state)
       VALUES ${[sale(1, 'JPY', 'closed'), sale(2, 'KWD', 'open'), sale(3, 'EUR', 'open')].join()}`,
    );
    for (const table of ['orders', 'orders_archive']) {
      await server.query(
        `INSERT INTO ${database}.${table} (id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, one_per_buyer, state)
         VALUES ${[1, 2, 3].map((id) => `(${table === 'orders' ? id : id + 10}, ${id}, 'u', 'k', 'b', 1, 50000, 0, 'paid')`).join()}`,
      );
    }
    await server.query(`INSERT INTO ${database}.order_ranges VALUES (1, 1, 1, 1), (2, 2, 2, 1), (3, 3, 3, 1)`);
    for (const [table, more, values] of [
      ['payments', '', ''],
      ['payments_archive', '', ''],
      ['payment_attempts', ', `key`', ", 'k'"],
      ['refunds', ', reason', ", 'already_paid'"],
    ] as const) {
      const id = table === 'payment_attempts' ? '' : 'payment_id, ';
      for (const order of [1, 2, 3, 11, 12, 13]) {
        await server.query(
          `INSERT INTO ${database}.${table} (${id}order_id, amount_cents${more}) VALUES (${id === '' ? '' : `'p${order}', `}${order}, 50000${values})`,
        );
      }
    }
    const again = async (): Promise<unknown> => {
      await server.query(`DELETE FROM ${database}.knex_migrations WHERE name = '0024-smallest-units'`);
      return migrate({ url });
    };
    const refused: unknown = await again().catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(OperationalError).with.property('message').that.contains('are live (2)');
    await server.query(`UPDATE ${database}.sales SET state = 'closed' WHERE id = 2`);
    for (let i = 0; i < 2; i++) await again();
    const amounts = async (column: string, table: string, sales: string): Promise<unknown> => {
      const [rows] = await server.query(
        `SELECT CONCAT(s.currency, ' ', t.${column}) AS amount FROM ${database}.${table} t ${sales} ORDER BY s.id, amount`,
      );
      return (rows as { amount: string }[]).map(({ amount }) => amount);
    };
    const [once, twice] = [
      ['JPY 500', 'KWD 500000', 'EUR 50000'],
      ['JPY 500', 'JPY 500', 'KWD 500000', 'KWD 500000', 'EUR 50000', 'EUR 50000'],
    ];
    const ofSale = `JOIN ${database}.sales s ON s.id = t.sale_id`;
    expect(await amounts('price_cents', 'sales', `JOIN ${database}.sales s ON s.id = t.id`)).to.deep.equal(once);
    for (const table of ['orders', 'orders_archive'])
      expect(await amounts('amount_cents', table, ofSale), table).to.deep.equal(once);
    const ofOrder = `JOIN ${database}.sales s ON s.id = t.order_id % 10`;
    for (const table of ['payments', 'payments_archive', 'payment_attempts', 'refunds'])
      expect(await amounts('amount_cents', table, ofOrder), table).to.deep.equal(twice);
  });

  const tables = async (): Promise<number> => {
    const [[{ n }]] = (await server.query(
      'SELECT COUNT(*) AS n FROM information_schema.tables WHERE table_schema = ?',
      [database],
    )) as unknown as [[{ n: number }]];
    return Number(n);
  };

  it('plans every statement for an empty database and creates no table', async () => {
    const { missing, newer } = await planMigrations({ url });
    expect(missing.map(({ name }) => name)).to.deep.equal(names);
    expect(newer).to.deep.equal([]);
    const statements = missing.flatMap((one) => one.statements);
    expect(new Set(statements.map(({ locks }) => locks)), 'nobody waits for tables that do not exist').to.deep.equal(
      new Set(['none']),
    );
    expect(statements.map(({ statement }) => statement).join('\n')).to.include('CREATE TABLE IF NOT EXISTS orders (');
    expect(await tables(), 'nothing was made').to.equal(0);

    await migrate({ url });
    const made = await tables();
    expect(await planMigrations({ url })).to.deep.equal({ missing: [], newer: [] });
    expect(await tables()).to.equal(made);
  });

  it('plans the missing statements of a killed migration, and names tables that may block writers', async () => {
    await migrate({ url });
    await server.query(`ALTER TABLE ${database}.sales DROP COLUMN coupon`);
    await server.query(`DELETE FROM ${database}.knex_migrations WHERE name = '0029-coupon-codes'`);

    const { missing } = await planMigrations({ url });
    expect(missing.map(({ name }) => name)).to.deep.equal(['0029-coupon-codes']);
    const [only, ...others] = missing[0]?.statements ?? [];
    expect(others, 'its table is there').to.deep.equal([]);
    expect(only).to.include({ table: 'sales', locks: 'short', rows: 0 });
    expect(only?.statement).to.match(/^ALTER TABLE sales\s+ADD COLUMN coupon/);
    const large = (await planMigrations({ url, smallBytes: 0 })).missing[0]?.statements[0];
    expect(large, 'a table that is not small').to.include({ locks: 'online' });

    expect(await migrate({ url })).to.deep.equal(['0029-coupon-codes']);
    expect(await describeSchema(server, database)).to.equal(await readFile(GOLDEN, 'utf8'));
  });

  it('leaves a database of a later release unchanged, so that the earlier release runs on it', async () => {
    await migrate({ url });
    await server.query(
      `INSERT INTO ${database}.knex_migrations (name, batch, migration_time) VALUES ('9999-of-a-later-release', 99, NOW())`,
    );
    expect(await migrate({ url })).to.deep.equal([]);
    expect(await planMigrations({ url })).to.deep.equal({ missing: [], newer: ['9999-of-a-later-release'] });
  });

  it('waits for an open transaction without blocking writers', async () => {
    await migrate({ url });
    await server.query(`ALTER TABLE ${database}.sales DROP COLUMN coupon`);
    await server.query(`DELETE FROM ${database}.knex_migrations WHERE name = '0029-coupon-codes'`);
    const reader = await createConnection(connectionOptions({ url }));
    const writer = await createConnection(connectionOptions({ url }));
    try {
      await reader.query('START TRANSACTION');
      await reader.query('SELECT COUNT(*) FROM sales'); // A reader, such as a report.
      let isOver = false;
      const migrating = migrate({ url, tableWaitSeconds: 1 }).finally(() => (isOver = true));
      let longestMs = 0;
      const untilMs = performance.now() + OPEN_MS;
      while (performance.now() < untilMs) {
        const beganMs = performance.now();
        await writer.query("UPDATE sales SET title = 'x' WHERE id = 1");
        longestMs = Math.max(longestMs, performance.now() - beganMs);
        await pause(10);
      }
      expect(isOver, 'the migration waits for the reader').to.equal(false);
      expect(longestMs, 'a write stood behind it for once').to.be.within(500, 2500);
      await reader.query('COMMIT');
      expect(await migrating).to.deep.equal(['0029-coupon-codes']);
    } finally {
      reader.destroy();
      writer.destroy();
    }
    expect(await describeSchema(server, database)).to.equal(await readFile(GOLDEN, 'utf8'));
  });

  it('waits for another migrator no longer than its timeout', async () => {
    await migrate({ url });
    const name = migrationLock(database);
    // The server may notice late that the first migrator has gone.
    await server.query('SELECT GET_LOCK(?, 5)', [name]);
    const error = await migrate({ url, lockWaitMs: 1000 }).catch((cause: unknown) => cause);
    await server.query('SELECT RELEASE_LOCK(?)', [name]);
    expect(error).to.be.instanceOf(OperationalError).and.include({ dependency: 'mysql', retryable: true });
    expect((error as Error).message).to.include('another migration');
  });

  it('reports a missing database as a fault of mysql', async () => {
    const parsed = new URL(url);
    parsed.pathname = '/no_such_database';
    const error = await migrate({ url: parsed.href }).catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(OperationalError).and.include({ dependency: 'mysql' });
  });
});
