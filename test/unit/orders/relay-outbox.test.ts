import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { Job } from '../../../src/core/job.js';
import { relayOutbox, type ReadableRow, type RelayPorts } from '../../../src/orders/relay-outbox.js';
import type { OrdersMoved } from '../../../src/core/ports/outbox.js';
import type { MemoryOutbox } from '../../helpers/memory/memory-outbox.js';
import { KeeperWorld } from './keeper-world.js';

const LEASE_MS = 20_000;
const MAX = 4;

describe('keeper: relay-outbox', () => {
  let world: KeeperWorld;
  let outbox: MemoryOutbox;
  let handled: string[];
  /** Ids of rows that fail as long as they stand here. */
  let failing: Set<string>;

  beforeEach(() => {
    world = new KeeperWorld();
    outbox = world.mysql.outbox;
    handled = [];
    failing = new Set();
  });

  const moved = (order: number): OrdersMoved => ({ move: 'paid', saleId: '7', orders: [String(order)] });
  const add = (count: number): string[] =>
    Array.from({ length: count }, (_, i) => outbox.add('orders_moved', `k${i}`, moved(i + 1)));
  const handle = async (rows: readonly ReadableRow<'orders_moved'>[]): Promise<void> => {
    handled.push(rows.map(({ outboxId }) => outboxId).join('+'));
    if (rows.some(({ outboxId }) => failing.has(outboxId))) {
      throw new OperationalError('rocketmq', 'away', { retryable: true });
    }
  };
  type Group = RelayPorts<'orders_moved'>['group'];
  const create = (group?: Group): Job => {
    const { log, metrics } = world;
    return relayOutbox({ outbox, handle, group, log, metrics }, { kind: 'orders_moved', max: MAX, leaseMs: LEASE_MS });
  };
  const run = (group?: Group): Promise<string> =>
    create(group)
      .runOnce()
      .then(
        () => 'done',
        (error: Error) => error.name,
      );

  it('handles every row of its kind, oldest first, and marks it done', async () => {
    const ids = add(3);
    outbox.add('release', 'other', []);
    expect(await run()).to.equal('done');
    expect(handled).to.deep.equal(ids);
    expect([outbox.undone('orders_moved').length, outbox.undone('release').length]).to.deep.equal([0, 1]);
    expect(world.counts).to.include({ published: 3, retried: 0 });
    await run();
    expect(handled).to.have.length(3);
  });

  it('works off a backlog in one run, so many rows at a time', async () => {
    const ids = add(MAX * 3 + 1);
    await run();
    expect(handled).to.deep.equal(ids);
  });

  it('a row that fails waits 1, 2, 4 … 30 s, is never given up, and does not delay others', async () => {
    const [bad, good] = add(2) as [string, string];
    failing.add(bad);
    expect(await run()).to.equal('OperationalError');
    expect(outbox.undone('orders_moved').map(({ id }) => id)).to.deep.equal([bad]);
    expect(handled).to.deep.equal([bad, good]);

    const pausesMs: number[] = [];
    let lastMs = world.clock.nowMs();
    while (pausesMs.length < 8) {
      const before = handled.length;
      world.clock.advance(100);
      await run();
      if (handled.length === before) continue;
      pausesMs.push(world.clock.nowMs() - lastMs);
      lastMs = world.clock.nowMs();
    }
    for (const [index, second] of [1, 2, 4, 8, 16, 30, 30, 30].entries()) {
      expect(pausesMs[index], `pause ${index}`).to.be.within(second * 800, second * 1200 + 100);
    }
    failing.clear();
    world.clock.advance(36_000);
    expect(await run()).to.equal('done');
    expect(outbox.undone('orders_moved')).to.deep.equal([]);
  });

  it('rows are handled together in their groups; after a failure each one alone', async () => {
    const [a, b, c] = add(3) as [string, string, string];
    const inPairs: Group = (rows) => [rows.slice(0, 2), rows.slice(2)];
    failing.add(a);
    expect(await run(inPairs)).to.equal('OperationalError');
    expect(handled).to.deep.equal([`${a}+${b}`, c]);
    expect(outbox.undone('orders_moved').map(({ id }) => id)).to.deep.equal([a, b]);
    expect(world.counts).to.include({ published: 1, retried: 2 });

    world.clock.advance(1_500);
    expect(await run((rows) => [rows])).to.equal('OperationalError');
    expect(handled.filter((ids) => ids === a || ids === b).sort()).to.deep.equal([a, b]);
    expect(outbox.undone('orders_moved').map(({ id }) => id)).to.deep.equal([a]);
  });

  it('a row that cannot be grouped with the others does not delay them', async () => {
    const ids = add(2);
    await run(() => {
      throw new TypeError('payload.orders is undefined');
    });
    expect(handled).to.deep.equal(ids);
    expect(outbox.undone('orders_moved')).to.deep.equal([]);
  });

  it('during an outage one run tries one lot, not the whole backlog', async () => {
    for (const id of add(MAX * 3)) failing.add(id);
    await run();
    expect(handled).to.have.length(MAX);
    expect(world.counts).to.include({ published: 0, retried: MAX });
  });

  it('dying before the mark does the row again when its lease is over, not earlier [C3]', async () => {
    const [id] = add(1) as [string];
    outbox.breakNext('mark_fails');
    expect(await run()).to.equal('OperationalError');
    world.clock.advance(LEASE_MS - 1);
    await run();
    expect(handled).to.deep.equal([id]);
    world.clock.advance(1);
    await run();
    expect(handled).to.deep.equal([id, id]);
    expect(outbox.undone('orders_moved')).to.deep.equal([]);
  });

  it('two keepers at once handle each row once [C1]', async () => {
    const ids = add(MAX * 2);
    await Promise.all([run(), run()]);
    expect([...handled].sort()).to.deep.equal([...ids].sort());
  });

  it('a row that cannot be read is logged and stays; the others go on', async () => {
    const broken = outbox.add('orders_moved', 'broken', null);
    const [good] = add(1);
    expect(await run()).to.equal('Error');
    expect(handled).to.deep.equal([good]);
    expect(outbox.undone('orders_moved').map(({ id }) => id)).to.deep.equal([broken]);
    expect(world.errors).to.deep.equal(['an outbox row cannot be read: it has to be repaired by hand']);
  });

  it('an outage of the outbox fails the run; the rows are handled when it is back [D1]', async () => {
    add(1);
    outbox.breakNext('lease_fails');
    expect(await run()).to.equal('OperationalError');
    expect(await run()).to.equal('done');
    expect(handled).to.have.length(1);
  });
});
