import { expect } from 'chai';
import type { SaleState } from '../../../src/core/sale.js';
import { dueJobs, keepRunning, loopsOf, toNextTick, type Job } from '../../../src/core/job.js';
import { pendingBuckets, sharePending, watchPending } from '../../../src/recovery/pending-buckets.js';
import type { BucketRef } from '../../../src/core/bucket.js';
import { BucketFaults } from '../../../src/core/bucket-faults.js';
import type { DueWork } from '../../../src/core/ports/due-work.js';
import { OperationalError, SaleInRepair } from '../../../src/core/errors.js';
import type { PendingBuckets } from '../../../src/core/ports/batch-store.js';
import { saleOf } from '../../helpers/sales.js';
import { replacing } from '../../helpers/replacing.js';
import { systemClock } from '../../../src/process/system-clock.js';
import { KeeperWorld } from '../orders/keeper-world.js';

const PAUSE_MS = 2000;

describe('keeper: job loop', () => {
  let world: KeeperWorld;
  beforeEach(() => {
    world = new KeeperWorld();
    world.clock.advance(PAUSE_MS - (world.clock.monotonicMs() % PAUSE_MS));
  });

  /** Runs a job for this number of runs. */
  const run = async (times: number, runOnce: (run: number) => ReturnType<Job['runOnce']>): Promise<void> => {
    const stopping = new AbortController();
    let runs = 0;
    const job: Job = {
      name: 'a-job',
      runOnce: async () => {
        runs++;
        if (runs === times) stopping.abort();
        return runOnce(runs);
      },
    };
    const { clock, log, metrics } = world;
    await keepRunning(job, PAUSE_MS, stopping.signal, { clock, log, metrics });
    expect(runs).to.equal(times);
  };

  it('runs once per pause, however long a run takes, until it is stopped', async () => {
    const atMs: number[] = [];
    const startedMs = world.clock.nowMs();
    await run(3, async () => {
      atMs.push(world.clock.nowMs() - startedMs);
      world.clock.advance(500);
    });
    expect(atMs).to.deep.equal([0, 2000, 4000]);
    expect(world.runs).to.deep.equal(Array(3).fill(['a-job', 'done']));
  });

  it('pauses longer after each idle run, and normally again after work or a failure', async () => {
    const atMs: number[] = [];
    const startedMs = world.clock.nowMs();
    await run(9, async (number) => {
      atMs.push((world.clock.nowMs() - startedMs) / 1000);
      if (number === 8) throw new Error('away');
      return number === 6 ? undefined : 'idle';
    });
    expect(atMs).to.deep.equal([0, 4, 10, 18, 28, 38, 40, 44, 46]);
  });

  it('counts and logs a failed run and continues', async () => {
    await run(3, async (number) => {
      if (number === 2) throw new Error('away');
    });
    expect(world.runs.map(([, result]) => result)).to.deep.equal(['done', 'failed', 'done']);
    expect(world.warnings).to.deep.equal(['a keeper job failed and will run again']);
  });

  it('logs one line per outage, and the number of failures at its end', async () => {
    const infos: unknown[] = [];
    world.log.info = (...line: unknown[]) => void infos.push(line);
    await run(300, async (number) => {
      if (number !== 290 && number < 299) throw new Error('away');
    });
    expect(world.warnings).to.deep.equal(Array(2).fill('a keeper job failed and will run again'));
    expect(infos).to.deep.equal([289, 8].map((failures) => [{ failures, job: 'a-job' }, 'a keeper job works again']));
  });

  it('logs a failure caused by a sale in repair at info level, without a stack', async () => {
    const infos: [Record<string, unknown>, string][] = [];
    world.log.info = (fields, message) => void infos.push([fields as Record<string, unknown>, message]);
    await run(4, async (number) => {
      if (number < 4) throw new SaleInRepair('release');
    });
    expect(world.warnings).to.deep.equal([]);
    expect(infos.map(([, message]) => message)).to.deep.equal([
      'a keeper job failed and will run again',
      'a keeper job works again',
    ]);
    expect(infos[0]?.[0]).to.have.all.keys('job', 'error');
    expect(world.runs.filter(([, result]) => result === 'failed')).to.have.length(3);
  });

  it('ends after the current run, not before [T13]', async () => {
    let ended = false;
    await run(1, async () => {
      await new Promise((resolve) => setImmediate(resolve));
      ended = true;
    });
    expect(ended).to.equal(true);
  });

  it('does not begin if it was stopped before', async () => {
    const { clock, log, metrics } = world;
    const job: Job = { name: 'a-job', runOnce: () => expect.fail('it ran') };
    await keepRunning(job, 2000, AbortSignal.abort(), { clock, log, metrics });
    expect(world.runs).to.deep.equal([]);
  });

  it('gives a consumer one loop per broker, so that no broker waits for another [M14]', () => {
    const job: Job = { name: 'a-job', runOnce: () => Promise.resolve() };
    const planned = loopsOf({ loops: 3, receive: () => Promise.resolve([]) }, job);
    expect(planned.map(([, looped]) => looped)).to.deep.equal([job, job, job]);
  });

  it('wakes up together with other loops, whatever the time since its last run', async () => {
    const { clock } = world;
    const startedMs = clock.monotonicMs();
    const { signal } = new AbortController();
    clock.advance(700);
    await toNextTick(clock, 500, signal);
    expect(clock.monotonicMs() - startedMs).to.equal(1000);
    await toNextTick(clock, 500, signal);
    expect(clock.monotonicMs() - startedMs).to.equal(1500);
  });
});

describe('keeper: jobs that run when their work is due', () => {
  let [due, fault]: [DueWork[], Error | null] = [[], null];
  let [begun, loops]: [string[], Promise<unknown>[]] = [[], []];
  let stopping: AbortController;
  let jobs: ReturnType<typeof dueJobs>;
  beforeEach(() => {
    [due, fault, begun, loops, stopping] = [[], null, [], [], new AbortController()];
    jobs = dueJobs(() => (fault === null ? Promise.resolve(new Set(due)) : Promise.reject(fault)));
  });
  const find = async (): Promise<void> => {
    await jobs.find.runOnce().catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const loop = (work: DueWork, runOnce: Job['runOnce'] = async () => void begun.push(work)): void => {
    const ports = { ...new KeeperWorld(), clock: { ...systemClock, sleep: async () => undefined } };
    loops.push(keepRunning(jobs.of(work, { name: work, runOnce }), 500, stopping.signal, ports));
  };
  const stop = async (): Promise<void> => {
    stopping.abort();
    await Promise.all(loops);
  };

  it('begin only for their own kind of work, once per read', async () => {
    loop('release');
    loop('refund');
    await find();
    expect(begun).to.deep.equal([]);
    due = ['release', 'edit'];
    await find();
    expect(begun).to.deep.equal(['release']);
    await stop();
    expect(begun, 'a keeper that stops begins nothing').to.have.length(1);
    loop('release');
    await stop();
    expect(begun, 'nor later').to.have.length(1);
  });

  it('all begin if the read fails, and a failed job runs again until it succeeds', async () => {
    loop('refund', async () => {
      begun.push('refund');
      if (begun.length < 3) throw new Error('away');
    });
    fault = new Error('away');
    await find();
    fault = null;
    await find();
    expect(begun).to.deep.equal(['refund', 'refund', 'refund']);
    await stop();
  });
});

describe('keeper: buckets to read', () => {
  it('are all buckets with a pending batch, except those of draft and retired sales', async () => {
    const world = new KeeperWorld();
    const states: SaleState[] = ['draft', 'warm', 'open', 'paused', 'closed'];
    const sales = states.map((state) => saleOf({ state, buckets: 2 }));
    for (const sale of sales) world.mysql.putSale(sale);
    world.mysql.putSale(saleOf({ state: 'closed', retiredAtMs: world.clock.nowMs() }));
    const asked: BucketRef[] = [];
    const withPending = async (refs: readonly BucketRef[]): Promise<PendingBuckets> => {
      asked.push(...refs);
      return { refs: refs.filter(({ bucket }) => bucket === 1), faults: [] };
    };
    const found = await pendingBuckets(
      { sales: world.mysql, store: replacing(world.store, { withPending }) },
      new BucketFaults(),
    );
    const expected = [0, 1].map((bucket) => sales.slice(1).map(({ saleId }) => ({ saleId, bucket })));
    expect(asked).to.have.deep.members(expected.flat());
    expect(found).to.have.deep.members(expected[1] ?? []);
  });

  it('include the closed sales that ended last, however early they were created', async () => {
    const world = new KeeperWorld();
    const nowMs = world.clock.nowMs();
    const state = 'closed';
    world.mysql.putSale(saleOf({ saleId: '1', state, closesAtMs: nowMs })); // a sale that lasted long
    for (let id = 2; id <= 10_001; id++) {
      world.mysql.putSale(saleOf({ saleId: String(id), state, closesAtMs: nowMs - id }));
    }
    const store = replacing(world.store, { withPending: async (refs) => ({ refs, faults: [] }) });
    const found = await pendingBuckets({ sales: world.mysql, store }, new BucketFaults());
    const saleIds = found.map(({ saleId }) => saleId);
    expect(saleIds).to.include('1').and.not.include('10001');
  });
});

describe('keeper: buckets with pending batches, shared by jobs', () => {
  it('are read once for jobs that ask for the same buckets together', async () => {
    const world = new KeeperWorld();
    const asked: string[] = [];
    const withPending = async (refs: readonly BucketRef[]): Promise<PendingBuckets> => {
      asked.push(refs.map(({ saleId }) => saleId).join(' '));
      return { refs, faults: [] };
    };
    const store = sharePending(replacing(world.store, { withPending }), world.clock);
    const [one, two] = ['1', '2'].map((saleId) => ({ saleId, bucket: 0 }));
    if (one === undefined || two === undefined) expect.fail();
    await Promise.all([store.withPending([one]), store.withPending([{ ...one }])]);
    world.clock.advance(499);
    expect((await store.withPending([one])).refs).to.deep.equal([one]);
    expect(asked).to.deep.equal(['1']);
    expect((await store.withPending([one, two])).refs, 'another sale').to.deep.equal([one, two]);
    world.clock.advance(500);
    await store.withPending([one, two]);
    expect(asked).to.deep.equal(['1', '1 2', '1 2']);
  });
});

describe('keeper: watch-pending', () => {
  const OVERDUE_AFTER_MS = 400;
  const watch = ({ mysql: sales, store, metrics }: KeeperWorld): Job =>
    watchPending({ sales, store, metrics }, { overdueAfterMs: OVERDUE_AFTER_MS });

  it('publishes the number and oldest age of deducted, unmarked batches of all sales', async () => {
    const world = new KeeperWorld();
    const job = watch(world);
    expect(await job.runOnce()).to.equal('idle');
    expect([world.pending, world.overdue.batch_pending]).to.deep.equal([
      [0, 0],
      [0, 0],
    ]);

    const [one, two] = [await world.openSale(), await world.openSale({ buckets: 2 })];
    await world.deducted(two, ['u1'], 0);
    world.clock.advance(300);
    const recorded = await world.deducted(one, ['u1']);
    await world.deducted(two, ['u2'], 1);
    world.clock.advance(200);
    expect(await job.runOnce()).to.equal(undefined);
    expect(world.pending).to.deep.equal([3, 500]);
    await world.store.markRecorded([{ batch: recorded, orders: [] }]);
    await job.runOnce();
    expect(world.pending).to.deep.equal([2, 500]);
    expect(world.overdue.batch_pending, 'all sales together').to.deep.equal([1, 500 - OVERDUE_AFTER_MS]);
  });

  it('hides only the batches of a silent Redis server, and fails the run', async () => {
    const world = new KeeperWorld();
    const job = watch(world);
    const [one, two] = [await world.openSale(), await world.openSale()];
    for (const sale of [one, two]) await world.deducted(sale, ['u1']);
    world.clock.advance(500);
    world.store.cutOff.add(two.saleId); // the newest sale comes first
    expect(await job.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect(world.pending).to.deep.equal([1, 500]);
    expect(world.overdue.batch_pending).to.deep.equal([1, 500 - OVERDUE_AFTER_MS]);
  });
});

describe('keeper: work on single buckets', () => {
  const fault = (dependency: 'redis' | 'mysql', message = 'away') =>
    new OperationalError(dependency, message, { retryable: true });

  it('continues with other buckets after a fault, and throws the fault at its end', async () => {
    const faults = new BucketFaults();
    const done: number[] = [];
    await faults.forEach([1, 2, 3, 4], async (item) => {
      if (item % 2 === 1) throw fault('redis', `${item} is away`);
      done.push(item);
    });
    expect(done).to.have.members([2, 4]);
    expect(() => faults.throwIfAny()).to.throw(OperationalError, /1 is away.*2 buckets failed in this way/);
    new BucketFaults().throwIfAny();
  });

  it('begins nothing more after a fault of another dependency', async () => {
    const begun: number[] = [];
    const work = async (item: number): Promise<void> => {
      begun.push(item);
      if (item === 2) throw fault('mysql');
    };
    const error = await new BucketFaults().forEach([1, 2, 3, 4], work, 1).catch((caught: unknown) => caught);
    expect(error).to.include({ dependency: 'mysql' });
    expect(begun).to.deep.equal([1, 2]);
  });

  it('runs for a limited number of buckets at once', async () => {
    let [now, most] = [0, 0];
    const work = async (): Promise<void> => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now--;
    };
    await new BucketFaults().forEach([1, 2, 3, 4, 5, 6, 7], work, 3);
    expect(most).to.equal(3);
  });
});
