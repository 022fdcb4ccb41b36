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
  /** Ids of rows that fail while they are in this set. */
  let failing: Set<string>;

  beforeEach(() => {
    world = new KeeperWorld();
    outbox = world.mysql.outbox;
    handled = [];
    jobs = null;
    failing = new Set();
  });

  const moved = (order: number, saleId = '7'): OrdersMoved => ({ move: 'paid', saleId, orders: [String(order)] });
  const add = (count: number, saleId = '7'): string[] =>
    Array.from({ length: count }, (_, i) => outbox.add('orders_moved', `k${i}`, moved(i + 1, saleId)));
  const handle = async (rows: readonly ReadableRow<'orders_moved'>[]): Promise<void> => {
    handled.push(rows.map(({ outboxId }) => outboxId).join('+'));
    if (rows.some(({ outboxId }) => failing.has(outboxId))) {
      throw new OperationalError('rocketmq', 'away', { retryable: true });
    }
  };
  type Group = RelayPorts<'orders_moved'>['group'];
  /** The two jobs of one keeper. */
  const create = (group?: Group): readonly [relay: Job, tryTroubled: Job] => {
    const { clock, log, metrics } = world;
    const options = { kind: 'orders_moved', max: MAX, leaseMs: LEASE_MS } as const;
    return relayOutbox({ outbox, handle, group, clock, log, metrics }, options);
  };
  let jobs: readonly [relay: Job, tryTroubled: Job] | null = null;
  const wordOf = (job: Job): Promise<string> =>
    job.runOnce().then(
      () => 'done',
      (error: Error) => error.name,
    );
  /** Runs both jobs once, always in the same keeper. */
  const run = async (group?: Group): Promise<string> => {
    const [relay, tryTroubled] = (jobs = group === undefined ? (jobs ?? create()) : create(group));
    const words = [await wordOf(relay), await wordOf(tryTroubled)];
    return words.find((word) => word !== 'done') ?? 'done';
  };

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

  it('works off a backlog in one run, a limited number of rows at a time', async () => {
    const ids = add(MAX * 3 + 1);
    await run();
    expect(handled).to.deep.equal(ids);
  });

  it('retries a failed row after 1, 2, 4 … 30 s without delaying other rows', async () => {
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

  it('handles rows in groups, and after a failure each row alone', async () => {
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

  it('handles rows alone if they cannot be grouped', async () => {
    const ids = add(2);
    await run(() => {
      throw new TypeError('payload.orders is undefined');
    });
    expect(handled).to.deep.equal(ids);
    expect(outbox.undone('orders_moved')).to.deep.equal([]);
  });

  it('tries one batch of rows per run, not the whole backlog, during an outage', async () => {
    for (const id of add(MAX * 3)) failing.add(id);
    await run();
    expect(handled).to.have.length(MAX);
    expect(world.counts).to.include({ published: 0, retried: MAX });
  });

  it('counts one failure per sale and pass, and lets the whole sale wait a second', async () => {
    const ids = add(MAX);
    for (const id of ids) failing.add(id);
    await run();
    failing.clear();
    for (let runs = 0; runs < 6; runs++) {
      world.clock.advance(700); // First the attempted row waits for a second with jitter, then the other rows.
      expect(await run()).to.equal('done');
    }
    expect(handled.slice(MAX)).to.have.members(ids);
  });

  it('handles other sales in time despite thousands of stuck rows of one sale [C3]', async () => {
    for (const id of add(4_000)) failing.add(id);
    await run();
    const wellIds = add(MAX * 3, '8');
    for (let runs = 0; runs < 300 && outbox.undone('orders_moved').length > 4_000; runs++) {
      world.clock.advance(100);
      await run();
    }
    expect(handled.filter((id) => wellIds.includes(id))).to.deep.equal(wellIds);
    expect(handled.length - wellIds.length, 'attempts for the sale in trouble in half a minute').to.be.below(20);
  });

  it('handles the next rows in the same run after a take whose rows all fail', async () => {
    for (const id of add(MAX)) failing.add(id);
    const wellIds = add(MAX, '8');
    expect(await run()).to.equal('OperationalError');
    expect(handled.slice(MAX)).to.deep.equal(wellIds);
  });

  it('tries a sale in trouble separately, so that a hanging call delays no other sale', async () => {
    let release = (): void => undefined;
    const hangs = new Promise<void>((resolve) => (release = resolve));
    const { clock, log, metrics } = world;
    const saleOfRow = ([row]: readonly ReadableRow<'orders_moved'>[]): string | undefined => row?.payload.saleId;
    let tries = 0;
    const [relay, tryTroubled] = relayOutbox(
      {
        outbox,
        handle: async (rows) => {
          if (saleOfRow(rows) === '7' && ++tries === 1)
            throw new OperationalError('redis', 'away', { retryable: true });
          if (saleOfRow(rows) === '7') await hangs;
          await handle(rows);
        },
        clock,
        log,
        metrics,
      },
      { kind: 'orders_moved', max: MAX, leaseMs: LEASE_MS },
    );
    const [stuck] = add(1) as [string];
    await wordOf(relay);
    world.clock.advance(2_000);
    const behind = add(2);
    await relay.runOnce(); // passes on one row of the sale
    const trying = tryTroubled.runOnce();
    const [well] = add(1, '8') as [string];
    await relay.runOnce();
    expect(handled).to.deep.equal([well]);
    release();
    await trying;
    world.clock.advance(3_000);
    await relay.runOnce();
    expect(handled, 'the sale is well again: the rest goes on').to.have.members([well, stuck, ...behind]);
    expect(outbox.undone('orders_moved')).to.deep.equal([]);
  });

  it('does not count an attempt for rows that waited for their sale', async () => {
    const [first] = add(1) as [string];
    failing.add(first);
    await run();
    add(3);
    await run();
    expect(outbox.undone('orders_moved').map(({ attempts }) => attempts)).to.deep.equal([1, 0, 0, 0]);
  });

  it('does not treat the failure of a single row as trouble of its sale', async () => {
    const [poison] = add(1) as [string];
    const { clock, log, metrics } = world;
    const [relay] = relayOutbox(
      {
        outbox,
        handle: async (rows) => {
          if (rows.some(({ outboxId }) => outboxId === poison)) throw new TypeError('payload.orders is undefined');
          await handle(rows);
        },
        clock,
        log,
        metrics,
      },
      { kind: 'orders_moved', max: MAX, leaseMs: LEASE_MS },
    );
    expect(await wordOf(relay)).to.equal('TypeError');
    const wellIds = add(2);
    await relay.runOnce();
    expect(handled).to.deep.equal(wellIds);
  });

  it('handles a row again at the end of its lease after a crash before the mark [C3]', async () => {
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

  it('handles each row once when two keepers run at once [C1]', async () => {
    const ids = add(MAX * 2);
    await Promise.all([run(), run()]);
    expect([...handled].sort()).to.deep.equal([...ids].sort());
  });

  it('logs and keeps an unreadable row, and handles the other rows', async () => {
    const broken = outbox.add('orders_moved', 'broken', null);
    const [good] = add(1);
    expect(await run()).to.equal('Error');
    expect(handled).to.deep.equal([good]);
    expect(outbox.undone('orders_moved').map(({ id }) => id)).to.deep.equal([broken]);
    expect(world.errors).to.deep.equal(['cannot read an outbox row; repair it by hand']);
  });

  it('fails the run during an outbox outage and handles the rows afterwards [D1]', async () => {
    add(1);
    outbox.breakNext('lease_fails');
    expect(await run()).to.equal('OperationalError');
    expect(await run()).to.equal('done');
    expect(handled).to.have.length(1);
  });
});
