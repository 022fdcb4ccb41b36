import { expect } from 'chai';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OrdersMoved, Outbox, OutboxKind, OutboxPayloads } from '../../src/core/ports/outbox.js';
import { createOutbox } from '../../src/mysql/outbox.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryOutbox } from '../helpers/memory/memory-outbox.js';
import { rowsReadOn } from '../helpers/query-plans.js';
import { ownMysqlWorld } from './repository-worlds.js';
import { onEachWorld } from './on-each-world.js';

const LEASE_MS = 60_000;
/** Short enough to wait for, and long enough for two statements on a busy machine. */
const SHORT_MS = 2_000;
const MOVED: OrdersMoved = { move: 'paid', saleId: '7', orders: ['11', '12'] };

/** Invalid JSON, and JSON that is not a payload of `orders_moved`. */
const UNREADABLE = ['{broken', '5', '"text"', '{}', '[]', '{"move":"paid","saleId":"7"}'];
let unreadable = 0;

/** Own outbox, because a lease would also take rows of other suites. */
interface World {
  readonly outbox: Outbox;
  /** Adds a row as a transaction would, with an unreadable payload for null. @returns the id of the row */
  add<K extends OutboxKind>(kind: K, payload: OutboxPayloads[K] | null): Promise<string>;
  /** Ids of all rows, oldest first. */
  rows(): Promise<string[]>;
  /** Advances the clock. */
  elapse(ms: number): Promise<void>;
  nowMs(): number;
  close(): Promise<void>;
}

async function mysqlWorld(): Promise<World> {
  const { pool, close } = await ownMysqlWorld();
  return {
    outbox: createOutbox(pool),
    async add(kind, payload) {
      const values = [
        kind,
        'k',
        payload === null ? (UNREADABLE[unreadable++ % UNREADABLE.length] as string) : JSON.stringify(payload),
      ];
      const { insertId } = await pool.execute('INSERT INTO outbox (kind, `key`, payload) VALUES (?, ?, ?)', values);
      return insertId;
    },
    rows: async () => (await pool.query<{ id: string }>('SELECT id FROM outbox ORDER BY id')).map(({ id }) => id),
    elapse: (ms) => sleep(ms),
    nowMs: () => Date.now(),
    close,
  };
}

async function memoryWorld(): Promise<World> {
  const clock = new ManualClock();
  const outbox = new MemoryOutbox(clock);
  return {
    outbox,
    add: async (kind, payload) => outbox.add(kind, 'k', payload),
    rows: async () => outbox.rows.map(({ id }) => id),
    elapse: (ms) => clock.sleep(ms),
    nowMs: () => clock.nowMs(),
    close: async () => undefined,
  };
}

describe('outbox lease in MySQL', () => {
  it('reads due rows, but no finished rows and no failed rows that wait for a retry', async () => {
    const { pool, close } = await ownMysqlWorld(1);
    const insert = (count: number, availableAt: string, doneAt: string): Promise<unknown> => {
      const row = `('release', 'k', '[]', UTC_TIMESTAMP(3) + INTERVAL ${availableAt}, ${doneAt})`;
      const rows = Array.from({ length: count }, () => row).join();
      return pool.execute(`INSERT INTO outbox (kind, \`key\`, payload, available_at, done_at) VALUES ${rows}`);
    };
    try {
      await insert(5_000, '-60 MINUTE', 'UTC_TIMESTAMP(3)');
      await insert(5_000, '30 SECOND', 'NULL');
      await insert(30, '-1 SECOND', 'NULL');
      const before = await rowsReadOn(pool);
      expect(await createOutbox(pool).lease('release', 64, LEASE_MS)).to.have.length(30);
      expect((await rowsReadOn(pool)) - before, 'rows read').to.be.below(500);
    } finally {
      await close();
    }
  });
});

const WORLDS = [
  ['memory', memoryWorld],
  ['mysql', mysqlWorld],
] as const;

onEachWorld<World>('contract Outbox', WORLDS, (world) => {
  afterEach(async () => {
    for (const kind of ['batch_recorded', 'orders_moved', 'release'] as const) {
      await world.outbox.postpone(await world.rows(), 0);
      await world.outbox.markDone(idsOf(await world.outbox.lease(kind, 1000, LEASE_MS)));
    }
  });

  const idsOf = (rows: readonly { readonly outboxId: string }[]): string[] => rows.map(({ outboxId }) => outboxId);
  const add = async (count: number): Promise<string[]> => {
    const ids: string[] = [];
    while (ids.length < count) ids.push(await world.add('orders_moved', MOVED));
    return ids;
  };
  const lease = async (max = 100, leaseMs = LEASE_MS) => world.outbox.lease('orders_moved', max, leaseMs);

  it('leases at most `max` of the oldest rows of a kind, complete and each once', async () => {
    const beforeMs = world.nowMs();
    const ids = await add(3);
    await world.add('release', []);
    const rows = await lease(2);
    expect(idsOf(rows)).to.deep.equal(ids.slice(0, 2));
    expect(rows[0]).to.include({ kind: 'orders_moved', attempts: 1 });
    expect(rows[0]?.payload).to.deep.equal(MOVED);
    expect(rows[0]?.createdAtMs).to.be.within(beforeMs - 1000, world.nowMs() + 1000);
    expect(idsOf(await lease(2))).to.deep.equal(ids.slice(2));
    expect(await lease()).to.deep.equal([]);
  });

  it('offers a row again, with a higher attempt, when its lease ends without a result [C3]', async () => {
    const [id] = await add(1);
    await lease(1, SHORT_MS);
    expect(await lease()).to.deep.equal([]);
    await world.elapse(SHORT_MS + 50);
    const [again] = await lease();
    expect(again).to.include({ outboxId: id, attempts: 2 });
  });

  it('offers a postponed row again after its delay, and leaves other rows unchanged', async () => {
    const [first, second] = (await add(2)) as [string, string];
    await lease();
    await world.outbox.postpone([first], SHORT_MS);
    await world.outbox.postpone([], SHORT_MS);
    expect(await lease()).to.deep.equal([]);
    await world.elapse(SHORT_MS + 50);
    expect(idsOf(await lease())).to.deep.equal([first]);
    await world.outbox.postpone([second], 0);
    expect(idsOf(await lease())).to.deep.equal([second]);
  });

  it('orders rows by due time, so that failed rows do not block newer rows [C3]', async () => {
    const stuck = await add(3);
    await lease();
    const [newer] = await add(1);
    await world.elapse(10);
    await world.outbox.postpone(stuck, 0);
    await world.elapse(10);
    expect(idsOf(await lease(1))).to.deep.equal([newer]);
    expect(idsOf(await lease()).sort()).to.deep.equal(stuck.sort());
  });

  it('offers a returned row again after its delay, and counts no attempt', async () => {
    const [id] = (await add(1)) as [string];
    await lease();
    await world.outbox.giveBack([id], SHORT_MS);
    await world.outbox.giveBack([], SHORT_MS);
    expect(await lease()).to.deep.equal([]);
    await world.elapse(SHORT_MS + 50);
    expect((await lease())[0]).to.include({ outboxId: id, attempts: 1 });
  });

  it('keeps a finished row finished when it is postponed or marked again', async () => {
    const ids = await add(3);
    await lease();
    await world.outbox.markDone(ids);
    await world.outbox.markDone(ids);
    await world.outbox.markDone([]);
    await world.outbox.postpone(ids, 0);
    expect(await lease()).to.deep.equal([]);
  });

  it('gives each row to one of several keepers that lease concurrently [C1]', async () => {
    const ids = await add(60);
    const leased: string[] = [];
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let rows = await lease(5); rows.length > 0; rows = await lease(5)) leased.push(...idsOf(rows));
      }),
    );
    leased.push(...idsOf(await lease())); // Keepers skip rows that another keeper has locked.
    expect([...leased].sort()).to.deep.equal([...ids].sort());
  });

  it('leases an unreadable row together with other rows, without its payload', async () => {
    const broken: string[] = [];
    for (const _ of UNREADABLE) broken.push(await world.add('orders_moved', null));
    const [good] = await add(1);
    const rows = await lease();
    expect(rows.map(({ outboxId, payload }) => [outboxId, payload])).to.deep.equal([
      ...broken.map((outboxId) => [outboxId, null]),
      [good, MOVED],
    ]);
  });

  it('can read every payload that our writers produce', async () => {
    const recorded = { batchId: 'b1', saleId: '7', orders: ['11'], failed: [], paymentWindowMs: 1000 };
    const release = {
      saleId: '7',
      bucket: 0,
      userId: 'u',
      requestId: 'k',
      orderId: '1',
      batchId: '',
      withUnits: true,
    };
    await world.add('batch_recorded', recorded);
    await world.add('release', [release, release]);
    const [first] = await world.outbox.lease('batch_recorded', 10, LEASE_MS);
    const [second] = await world.outbox.lease('release', 10, LEASE_MS);
    expect([first?.payload, second?.payload]).to.deep.equal([recorded, [release, release]]);
  });

  it('backlog: returns unfinished rows, leased or not, and the age of the oldest row, per kind', async () => {
    const of = async (kind: OutboxKind) => (await world.outbox.backlog()).find((one) => one.kind === kind);
    expect(await of('orders_moved')).to.deep.equal({ kind: 'orders_moved', undone: 0, oldestMs: 0 });
    const [first] = (await add(1)) as [string];
    await world.elapse(SHORT_MS);
    await add(2);
    await lease(1);
    const backlog = await of('orders_moved');
    expect(backlog?.undone).to.equal(3);
    expect(backlog?.oldestMs).to.be.within(SHORT_MS, SHORT_MS + 60_000);
    await world.outbox.markDone([first]);
    const left = await of('orders_moved');
    expect(left?.undone).to.equal(2);
    expect(left?.oldestMs).to.be.lessThan(backlog?.oldestMs as number);
  });

  it('removes a limited number of rows that were finished long ago, and no unfinished row', async () => {
    await world.elapse(10);
    await world.outbox.removeDone(0, 10_000);
    const ids = await add(5);
    await world.outbox.markDone(ids.slice(0, 4));
    expect(await world.outbox.removeDone(60_000, 100), 'too young').to.equal(0);
    await world.elapse(SHORT_MS);
    expect(await world.outbox.removeDone(SHORT_MS / 2, 3)).to.equal(3);
    expect(await world.outbox.removeDone(SHORT_MS / 2, 3)).to.equal(1);
    expect(await world.rows()).to.deep.equal(ids.slice(4));
  });
});
