import { expect } from 'chai';
import type { Knex } from 'knex';
import { OperationalError } from '../../../src/core/errors.js';
import { AppliedChanges, type ChangeOptions } from '../../../src/mysql/schema-changes.js';

const ADD_COLUMN = 'ALTER TABLE orders ADD COLUMN gift TINYINT UNSIGNED NOT NULL DEFAULT 0';
const INSTANT = `${ADD_COLUMN}, ALGORITHM=INSTANT`;
const ONLINE = `${ADD_COLUMN}, LOCK=NONE`;
const LARGE_BYTES = 3e9;
const SMALL_BYTES = 1e6;

/** A server that answers statements with error numbers or executes them. */
class Server {
  readonly sent: string[] = [];
  readonly #errors: Readonly<Record<string, readonly number[]>>;
  readonly #bytes: number;
  readonly #columns: readonly string[];
  pauses = 0;

  /** @param errors of each statement, one per attempt; after that the server executes it */
  constructor(errors: Record<string, number[]> = {}, bytes = SMALL_BYTES, columns: readonly string[] = []) {
    this.#errors = errors;
    this.#bytes = bytes;
    this.#columns = columns;
  }

  changes(options?: ChangeOptions): AppliedChanges {
    const raw = async (sql: string, values: readonly string[] = []): Promise<unknown> => {
      if (sql.includes('information_schema.tables')) return [[{ row_count: 1000, bytes: this.#bytes }]];
      if (sql.includes('information_schema')) return [this.#columns.includes(values.at(-1) ?? '') ? [{ 1: 1 }] : []];
      const times = this.sent.filter((one) => one === sql).length;
      this.sent.push(sql);
      const errno = this.#errors[sql]?.[times];
      if (errno !== undefined) throw Object.assign(new Error(`errno ${errno}`), { errno });
      return [[]];
    };
    const knex = { raw } as unknown as Knex;
    return new AppliedChanges(knex, options, async () => void this.pauses++);
  }
}

const NOT_SUPPORTED = 1846;
const LOCK_WAIT = 1205;

describe('a schema change', () => {
  it('touches no row and sends no other statement if the server supports that', async () => {
    const server = new Server({}, LARGE_BYTES);
    await server.changes().alter('orders', ADD_COLUMN);
    expect(server.sent).to.deep.equal([INSTANT]);
  });

  it('runs while others write if it has to read or copy rows', async () => {
    const server = new Server({ [INSTANT]: [NOT_SUPPORTED] }, LARGE_BYTES);
    await server.changes().alter('orders', ADD_COLUMN);
    expect(server.sent).to.deep.equal([INSTANT, ONLINE]);
  });

  it('locks a small table if the server cannot avoid the lock', async () => {
    const server = new Server({ [INSTANT]: [NOT_SUPPORTED], [ONLINE]: [1845] });
    await server.changes().alter('orders', ADD_COLUMN);
    expect(server.sent).to.deep.equal([INSTANT, ONLINE, ADD_COLUMN]);
  });

  it('never locks a large table without `--allow-locks`, and names table, size and remedy', async () => {
    const never = [NOT_SUPPORTED, NOT_SUPPORTED];
    const server = new Server({ [INSTANT]: never, [ONLINE]: never }, LARGE_BYTES);
    const error: unknown = await server
      .changes()
      .alter('orders', ADD_COLUMN)
      .catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(OperationalError).and.include({ retryable: false });
    expect((error as Error).message).to.match(/must lock orders \(3000\.0 MB\) to change it.*--allow-locks/);
    expect(server.sent, 'nothing that locks').to.deep.equal([INSTANT, ONLINE]);

    await server.changes({ allowLocks: true }).alter('orders', ADD_COLUMN);
    expect(server.sent.at(-1)).to.equal(ADD_COLUMN);
  });

  it('takes no lock after an unrelated error', async () => {
    const server = new Server({ [INSTANT]: [1060] });
    const error: unknown = await server
      .changes()
      .alter('orders', ADD_COLUMN)
      .catch((cause: unknown) => cause);
    expect(error).to.include({ errno: 1060 });
    expect(server.sent).to.deep.equal([INSTANT]);
  });

  it('is not repeated if its column or index exists', async () => {
    const server = new Server({}, SMALL_BYTES, ['gift']);
    await server.changes().alter('orders', ADD_COLUMN, { column: 'gift' });
    await server.changes().alter('orders', ADD_COLUMN, { index: 'gift' });
    expect(server.sent).to.deep.equal([]);
  });

  it('is sent unchanged if it names its own algorithm', async () => {
    const server = new Server();
    await server.changes().alter('orders', ONLINE);
    expect(server.sent).to.deep.equal([ONLINE]);
  });

  it('lets writers through between its attempts to lock a table, and finally gives up', async () => {
    const server = new Server({ [INSTANT]: [LOCK_WAIT, LOCK_WAIT] });
    await server.changes().alter('orders', ADD_COLUMN);
    expect(server.sent).to.deep.equal([INSTANT, INSTANT, INSTANT]);
    expect(server.pauses).to.equal(2);

    const stuck = new Server({ [INSTANT]: Array.from({ length: 100 }, () => LOCK_WAIT) });
    const error: unknown = await stuck
      .changes()
      .alter('orders', ADD_COLUMN)
      .catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(OperationalError).and.include({ retryable: true });
    expect((error as Error).message).to.include('a long transaction');
    expect(stuck.sent.length).to.equal(stuck.pauses + 1);
  });
});
