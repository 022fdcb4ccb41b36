import { readFile, writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import { createConnection, type Connection } from 'mysql2/promise';
import { OperationalError } from '../../src/core/errors.js';
import { migrate, type MigrateProgress } from '../../src/mysql/migrate.js';
import { MIGRATIONS } from '../../src/mysql/migrations.js';
import { connectionOptions } from '../../src/mysql/server.js';
import { stackEnv } from '../helpers/stack-env.js';
import { describeSchema } from '../helpers/describe-schema.js';

const GOLDEN = new URL('./schema.sql', import.meta.url);

describe('migrate', function () {
  this.timeout(60_000);
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

  it('brings an empty database to the golden schema and says each step; a second run has nothing to do', async () => {
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

  it('two processes at once: one migrates, the other finds it done', async () => {
    const results = await Promise.all([migrate({ url }), migrate({ url }), migrate({ url })]);
    expect(results.filter((applied) => applied.length > 0)).to.deep.equal([names]);
  });

  it('a migrator that was killed blocks no other: its lock row is freed, its half-made tables are completed', async () => {
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

  it('order ranges are filled from the orders that are there, again and again', async () => {
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
    await again(); // as after a migrator that was killed half-way
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

  it('waits for another migrator no longer than its time-out', async () => {
    await migrate({ url });
    const name = `CONCAT('seckill.migrate.', MD5('${database}'))`;
    await server.query(`SELECT GET_LOCK(${name}, 5)`); // the server may not have noticed yet that the first has gone
    const error = await migrate({ url, lockWaitMs: 1000 }).catch((cause: unknown) => cause);
    await server.query(`SELECT RELEASE_LOCK(${name})`);
    expect(error).to.be.instanceOf(OperationalError).and.include({ dependency: 'mysql', retryable: true });
    expect((error as Error).message).to.include('another migration');
  });

  it('a database that is not there is named as a fault of mysql', async () => {
    const parsed = new URL(url);
    parsed.pathname = '/no_such_database';
    const error = await migrate({ url: parsed.href }).catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(OperationalError).and.include({ dependency: 'mysql' });
  });
});
