import { expect } from 'chai';
import {
  hasRecovered,
  quorumOf,
  REPORT_TIMES,
  SharedBreakers,
} from '../../../../src/admission/breaker/shared-breakers.js';
import { type BreakerState, type LiveReport } from '../../../../src/core/ports/admission-stores.js';
import { Bug, OperationalError, type Dependency } from '../../../../src/core/errors.js';
import type { BreakerRules } from '../../../../src/admission/breaker/breaker-rules.js';
import { silentLog } from '../../../helpers/silent-log.js';
import { MemoryBreakerStore } from '../../../helpers/memory/memory-admission-stores.js';
import { SteppedClock } from '../../../helpers/memory/stepped-clock.js';
import { rulesOf } from './rules-of.js';
import { noAdmissionMetrics } from '../../../helpers/no-metrics.js';

const reportsOf = (...states: readonly BreakerState[]): LiveReport[] =>
  states.map((redis, index) => ({
    processId: `p${index}`,
    report: { redis, rocketmq: 'closed', mysql: redis === 'open' ? 'closed' : 'open' },
  }));

describe('breaker: quorum', () => {
  it('is a share of the live processes, and at least two if several processes live', () => {
    expect([1, 2, 3, 4, 5, 10].map((live) => quorumOf(live, 0.5))).to.deep.equal([1, 2, 2, 2, 3, 5]);
    expect([1, 2, 3, 10].map((live) => quorumOf(live, 1))).to.deep.equal([1, 2, 3, 10]);
    expect([1, 2, 50, 100].map((live) => quorumOf(live, 0.07))).to.deep.equal([1, 2, 4, 7]);
  });

  it('counts a process as recovered only if its breaker was open and is now closed', () => {
    const before = reportsOf('open', 'half_open', 'closed');
    expect(hasRecovered(before, reportsOf('open', 'closed', 'closed'), 'redis')).to.equal(true);
    expect(hasRecovered(before, reportsOf('closed', 'half_open', 'open'), 'redis')).to.equal(true);
    expect(hasRecovered(before, reportsOf('half_open', 'open', 'closed'), 'redis')).to.equal(false);
    expect(hasRecovered(before, before.slice(2), 'redis'), 'two have gone').to.equal(false);
    expect(hasRecovered([], before, 'redis')).to.equal(false);
  });
});

const STEP_MS = 50;
const fault = (dependency: Dependency): OperationalError =>
  new OperationalError(dependency, 'out', { retryable: true });

/** Processes with a common store and clock. Each process polls the store at its own offset. */
class World {
  readonly clock = new SteppedClock();
  readonly store = new MemoryBreakerStore(this.clock);
  rules: BreakerRules = rulesOf({
    callsMin: 5,
    trial: { calls: 2 },
    probe: { firstMs: 2000, jitter: 0 },
  });
  /** Dependencies that are down for all processes. */
  readonly out = new Set<Dependency>();
  readonly processes: SharedBreakers[] = [];
  readonly refusals: string[] = [];
  /** Results that the metrics counted. */
  readonly counted: string[] = [];
  #nextLookMs: number[] = [];

  /** Starts another process, which reads the store before it serves requests. */
  async boot(): Promise<SharedBreakers> {
    const shortest = this.processes.length === 0 ? 1 : 0; // Jitter makes the first process wait less than the others.
    const process = new SharedBreakers(
      {
        rules: () => this.rules,
        store: this.store,
        clock: this.clock,
        random: () => shortest,
        log: silentLog,
        metrics: {
          ...noAdmissionMetrics,
          breakerMoved: (dependency, state) => this.counted.push(`${dependency} ${state}`),
          breakerRefused: (dependency, mode) => this.refusals.push(`${dependency} ${mode}`),
          breakerQuorum: (dependency, open) => this.counted.push(`${dependency} quorum ${open}`),
        },
      },
      { processId: `p${this.processes.length}`, ...REPORT_TIMES },
    );
    await process.runOnce();
    this.#nextLookMs.push(this.clock.nowMs() + REPORT_TIMES.pollMs - STEP_MS * (this.processes.length % 5));
    this.processes.push(process);
    return process;
  }

  kill(process: SharedBreakers): void {
    this.#nextLookMs[this.processes.indexOf(process)] = Infinity;
  }

  /** Sends a request, which calls the dependency if the breaker allows it. */
  async request(process: SharedBreakers, dependency: Dependency, fails = this.out.has(dependency)): Promise<boolean> {
    if (process.refuses(dependency)) return false;
    const call = fails ? () => Promise.reject(fault(dependency)) : () => Promise.resolve('fine');
    await process.watch(dependency, call).catch(() => undefined);
    return true;
  }

  /** Advances the clock. Each of these processes has a request in each step. */
  async run(ms: number, busy: readonly SharedBreakers[] = [], dependency: Dependency = 'redis'): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      this.clock.advance(STEP_MS);
      for (const process of busy) await this.request(process, dependency);
      for (const [index, process] of this.processes.entries()) {
        if ((this.#nextLookMs[index] as number) > this.clock.nowMs()) continue;
        this.#nextLookMs[index] = this.clock.nowMs() + REPORT_TIMES.pollMs;
        await process.runOnce();
      }
    }
  }

  /** Makes requests of these processes fail until each process refuses. */
  async fail(processes: readonly SharedBreakers[], dependency: Dependency = 'redis'): Promise<void> {
    const seeing = new Set(processes);
    for (let i = 0; i < 40 && seeing.size > 0; i++) {
      this.clock.advance(STEP_MS);
      for (const process of seeing) if (!(await this.request(process, dependency, true))) seeing.delete(process);
    }
    expect(seeing.size, 'every one of them refuses').to.equal(0);
  }

  refuse(dependency: Dependency = 'redis'): boolean[] {
    return this.processes.map((process) => process.refuses(dependency));
  }
}

describe('breakers of several processes', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });

  it('open only the breaker of the process that sees the failures', async () => {
    const one = await world.boot();
    await world.boot();
    await world.boot();
    await world.fail([one]);
    await world.run(1000);
    expect(world.refuse()).to.deep.equal([true, false, false]);
    expect(world.refuse('mysql'), 'other dependencies are well').to.deep.equal([false, false, false]);
  });

  it('open in every process within a second when they open in two processes', async () => {
    const [one, two] = [await world.boot(), await world.boot()];
    const idle = await world.boot();
    await world.fail([one, two]);
    await world.run(1000);
    expect(idle.refuses('redis'), 'it has seen nothing itself').to.equal(true);
    expect(world.refuse()).to.deep.equal([true, true, true]);
  });

  it('start with the quorum during an outage, but report only their own state', async () => {
    const [one, two] = [await world.boot(), await world.boot()];
    await world.fail([one, two]);
    await world.run(300);
    expect((await world.boot()).refuses('redis')).to.equal(true);
    const reports = await world.store.exchange('test', { redis: 'closed', rocketmq: 'closed', mysql: 'closed' }, 1);
    expect(reports.find(({ processId }) => processId === 'p2')?.report.redis).to.equal('closed');
  });

  it('close within a second when one process closes its breaker, despite a longer wait', async () => {
    const busy = [await world.boot(), await world.boot(), await world.boot(), await world.boot()];
    const probe = { firstMs: 60_000, capMs: 60_000, jitter: 0.5 };
    world.rules = rulesOf({ callsMin: 5, trial: { calls: 2 }, probe });
    await world.fail(busy);
    await world.run(29_000, busy);
    expect(world.refuse()).to.deep.equal([true, true, true, true]);
    await world.run(2000, busy);
    expect(world.refuse(), 'the first one waited 30 s, the others would have waited 60 s').to.deep.equal([
      false,
      false,
      false,
      false,
    ]);
  });

  it('show the shared state, and since when the breaker of a process is not closed', async () => {
    const [one, two] = [await world.boot(), await world.boot()];
    const idle = await world.boot();
    const redis = (process: SharedBreakers): unknown[] =>
      process.standings
        .filter(({ dependency }) => dependency === 'redis')
        .map(({ processId, state, sinceMs }) => [processId, state, sinceMs !== null]);
    expect(idle.standings.map(({ dependency, state }) => `${dependency} ${state}`)).to.deep.equal([
      'redis closed',
      'rocketmq closed',
      'mysql closed',
    ]);
    await world.fail([one]);
    expect(redis(one), 'its own at once, before it has told anybody').to.deep.include(['p0', 'open', true]);
    await world.run(300);
    expect(redis(idle)).to.deep.equal([
      [null, 'closed', false],
      ['p0', 'open', true],
    ]);
    await world.fail([two]);
    const fromMs = world.clock.nowMs();
    await world.run(300);
    expect(redis(idle)).to.deep.equal([
      [null, 'open', true],
      ['p0', 'open', true],
      ['p1', 'open', true],
    ]);
    expect(idle.standings[0]?.sinceMs).to.be.within(fromMs, world.clock.nowMs());
    world.rules = { ...world.rules, mode: 'off' };
    await world.run(300);
    expect(idle.standings.map(({ state }) => state)).to.deep.equal(['closed', 'closed', 'closed']);
    expect(idle.mode).to.equal('off');
  });

  it('do not stay open because of processes that have no requests', async () => {
    const [busy, ...others] = [await world.boot(), await world.boot(), await world.boot(), await world.boot()];
    await world.fail([busy, ...others] as SharedBreakers[]);
    await world.run(4000, [busy as SharedBreakers]);
    expect(world.refuse()[0]).to.equal(false);
    await world.run(4000, [busy as SharedBreakers]);
    expect(world.refuse()[0]).to.equal(false);
  });

  it('decide by their own calls once the last reports have expired and the store is down', async () => {
    const [one, two] = [await world.boot(), await world.boot()];
    const follower = await world.boot();
    world.rules = rulesOf({ callsMin: 5, probe: { firstMs: 60_000, capMs: 60_000, jitter: 0 } });
    await world.fail([one, two], 'mysql');
    await world.run(300);
    world.store.down = true;
    await world.run(REPORT_TIMES.reportLifeMs - 500);
    expect(follower.refuses('mysql'), 'the copy still counts').to.equal(true);
    await world.run(1000);
    expect(world.refuse('mysql')).to.deep.equal([true, true, false]);
    world.store.down = false;
    await world.run(500);
    expect(world.refuse('mysql'), 'the store is back').to.deep.equal([true, true, true]);
  });

  it('no longer count a process that died with an open breaker', async () => {
    const [one, two] = [await world.boot(), await world.boot()];
    const other = await world.boot();
    world.rules = rulesOf({ callsMin: 5, probe: { firstMs: 60_000, capMs: 60_000, jitter: 0 } });
    await world.fail([one, two]);
    await world.run(500);
    expect(other.refuses('redis')).to.equal(true);
    world.kill(one);
    world.kill(two);
    await world.run(REPORT_TIMES.reportLifeMs + REPORT_TIMES.pollMs);
    expect(other.refuses('redis')).to.equal(false);
  });

  it('count faults of the dependency as failures, and results that the caller calls failures', async () => {
    const process = await world.boot();
    const opensBy = async (call: () => Promise<unknown>, failed?: (result: unknown) => boolean): Promise<boolean> => {
      world.clock.advance(60_000);
      for (let i = 0; i < 40; i++) {
        world.clock.advance(STEP_MS);
        await process.watch('mysql', call, failed).catch(() => undefined);
      }
      return process.refuses('mysql');
    };
    expect(await opensBy(() => Promise.reject(new Bug('a bug')))).to.equal(false);
    expect(await opensBy(() => Promise.reject(fault('redis')))).to.equal(false);
    expect(await opensBy(() => Promise.resolve('sold_out'))).to.equal(false);
    expect(
      await opensBy(
        () => Promise.resolve('outcome_unknown'),
        (result) => result === 'outcome_unknown',
      ),
    ).to.equal(true);
  });

  it('refuse nothing in a dry run, and report nothing when off', async () => {
    world.rules = rulesOf({ mode: 'dry_run', callsMin: 5 });
    const one = await world.boot();
    await world.run(500, [one]);
    world.out.add('redis');
    await world.run(1000, [one]);
    expect(one.refuses('redis')).to.equal(false);
    expect(world.refusals.at(-1)).to.equal('redis dry_run');

    world.rules = rulesOf({ mode: 'off' });
    await world.run(REPORT_TIMES.reportLifeMs + 500, [one]);
    const reports = await world.store.exchange('test', { redis: 'closed', rocketmq: 'closed', mysql: 'closed' }, 1);
    expect(reports.map(({ processId }) => processId)).to.deep.equal(['test']);
  });

  it('close when they are switched off, and start empty when they are switched on again', async () => {
    const [one, two] = [await world.boot(), await world.boot()];
    const follower = await world.boot();
    await world.fail([one, two]);
    await world.run(500);
    expect(world.refuse()).to.deep.equal([true, true, true]);
    const { rules } = world;
    world.rules = rulesOf({ mode: 'off' });
    world.counted.length = 0;
    await world.run(500);
    expect(world.counted, 'processes whose breaker was open').to.include.members([
      'redis closed',
      'redis quorum false',
    ]);
    world.rules = rules;
    expect(world.refuse(), 'before the next poll').to.deep.equal([false, false, false]);
    await world.run(500);
    expect(world.refuse()).to.deep.equal([false, false, false]);
    expect(follower.isOn).to.equal(true);
    expect(await world.request(one, 'redis', true), 'what was seen before does not count').to.equal(true);
    await world.run(500);
    expect(one.refuses('redis')).to.equal(false);
  });

  it('poll even while the store is unreachable, and withdraw their report when they stop', async () => {
    const process = await world.boot();
    const aborter = new AbortController();
    const ended = process.poll(aborter.signal);
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const live = async (): Promise<string[]> => {
      const reports = await world.store.exchange('test', { redis: 'closed', rocketmq: 'closed', mysql: 'closed' }, 1);
      return reports.map(({ processId }) => processId);
    };
    for (const down of [false, true, false]) {
      world.store.down = down;
      for (let poll = 0; poll < 3; poll++) {
        await turn();
        world.clock.advance(1000);
      }
      await turn();
    }
    expect(await live()).to.have.members(['p0', 'test']);
    aborter.abort();
    await ended;
    expect(await live()).to.deep.equal(['test']);
  });
});
