import { expect } from 'chai';
import request from 'supertest';
import type { Condition } from '../../../../src/core/conditions.js';
import type { OwnReport, ProgramReport } from '../../../../src/core/ports/program-reports.js';
import type { Denial, Principal } from '../../../../src/http/auth.js';
import type { HttpServices } from '../../../../src/http/services.js';
import type { LiveSale, Snapshot } from '../../../../src/contract/live.js';
import { LiveSnapshots } from '../../../../src/operate/live/live-snapshots.js';
import { systemClock } from '../../../../src/process/system-clock.js';
import type { LiveSales } from '../../../../src/operate/live/live-sales.js';
import { EventStreamClient } from '../../../helpers/event-stream-client.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { MemoryProgramReports } from '../../../helpers/memory/memory-program-reports.js';
import { bearer, FakeServices, startServer, until, type Started } from '../../http/http-harness.js';
import { partial } from '../../../helpers/partial.js';

type Look = Awaited<ReturnType<LiveSales['look']>>;
const NOTHING: Look = { sales: [], moreSales: 0, missing: [] };
const reportOf = (parts: Partial<ProgramReport> = {}): ProgramReport => ({
  kind: 'keeper',
  id: 'shop-1:7',
  version: '1.0.0',
  ready: true,
  notReadySinceMs: null,
  problems: [],
  conditions: [],
  waiting: {},
  ...parts,
});

describe('live snapshots', () => {
  let clock: ManualClock;
  let programs: MemoryProgramReports;
  let looks: number;
  let look: () => Promise<Look>;
  let logged: unknown[];
  let own: OwnReport | null;
  /** Ends the pause of the loop. The test moves its clock. */
  let wake: () => void;
  let live: LiveSnapshots;
  const leaves: (() => void)[] = [];
  beforeEach(() => {
    clock = new ManualClock();
    programs = new MemoryProgramReports(clock);
    [looks, logged, own] = [0, [], null];
    look = async () => NOTHING;
    const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
      new Promise((resolve) => {
        wake = () => {
          clock.advance(ms);
          resolve();
        };
        signal?.addEventListener('abort', () => resolve());
      });
    const paused = { nowMs: () => clock.nowMs(), monotonicMs: () => clock.monotonicMs(), sleep };
    const sales = {
      look: () => {
        looks++;
        return look();
      },
    };
    const log = { error: (...line: unknown[]) => void logged.push(line) };
    live = new LiveSnapshots({ sales: partial(sales), programs, own: () => own, clock: paused, log: partial(log) }, 3);
  });
  afterEach(() => leaves.splice(0).forEach((leave) => leave()));

  const listen = (): Snapshot[] => {
    const got: Snapshot[] = [];
    const leave = live.follow((event) => {
      const [, data = ''] = /^event: snapshot\ndata: (.*)\n\n$/.exec(event.toString()) ?? [];
      got.push(JSON.parse(data) as Snapshot);
    });
    leaves.push(leave);
    return got;
  };
  const next = async (got: readonly Snapshot[]): Promise<Snapshot> => {
    const before = got.length;
    if (before > 0) wake();
    await until(() => got.length > before);
    return got.at(-1) as Snapshot;
  };

  it('are made once for all listeners, and not at all without a listener', async () => {
    expect(looks).to.equal(0);
    const [one, other] = [listen(), listen()];
    await next(one);
    await next(other);
    expect(looks, 'the running snapshot and one more').to.equal(2);
    expect(one).to.deep.equal(other);
    leaves.shift()?.();
    await next(other);
    expect([one.length, other.length]).to.deep.equal([2, 3]);
    leaves.shift()?.();
    expect(live.listening).to.equal(0);
    const before = looks;
    wake();
    await new Promise(setImmediate);
    expect(looks).to.equal(before);
  });

  it('send the last snapshot to a new listener at once', async () => {
    const one = listen();
    await next(one);
    const late = listen();
    expect(late).to.deep.equal(one);
    clock.advance(1000);
    expect(listen(), 'no old snapshot is sent').to.deep.equal([]);
    await next(one);
    expect(late.length).to.equal(2);
    expect(looks).to.equal(2);
  });

  it('limit the number of listeners, and free only one place if a listener leaves twice', async () => {
    for (let count = 0; count < 3; count++) {
      expect(live.isFull).to.equal(false);
      listen();
    }
    expect(live.isFull).to.equal(true);
    expect(() => live.follow(() => undefined)).to.throw('too many listeners');
    const leave = leaves[0] as () => void;
    leave();
    leave();
    expect(live.listening).to.equal(2);
    expect(live.isFull).to.equal(false);
    listen();
    expect(live.isFull).to.equal(true);
  });

  it('show programs with their reports, and external checks', async () => {
    const condition: Condition = {
      key: 'SeckillSaleNotReady 7',
      name: 'SeckillSaleNotReady',
      severity: 'info',
      about: '7',
      text: 'Sale 7 starts soon.',
      sinceMs: clock.nowMs() - 10,
    };
    await programs.report('a', reportOf({ conditions: [condition] }), 600_000);
    const worse = { ...condition, severity: 'page' as const };
    await programs.report('b', reportOf({ kind: 'worker', id: 'shop-2:8', conditions: [worse] }), 600_000);
    const unready = { ready: false, notReadySinceMs: clock.nowMs(), problems: ['redis: does not answer.'] };
    const broken = { kind: 'api' as const, id: 'shop-1:9', ...unready };
    await programs.report('c', reportOf(broken), 600_000);
    const sinceMs = clock.nowMs();
    const got = listen();
    const first = await next(got);
    expect(first.programs.map((program) => Object.keys(program))).to.deep.equal(
      Array.from({ length: 3 }, () => ['kind', 'id', 'version', 'ready', 'notReadySinceMs', 'problems', 'seenMsAgo']),
    );
    expect(first.programs.map(({ kind, id }) => `${kind} ${id}`)).to.deep.equal([
      'api shop-1:9',
      'keeper shop-1:7',
      'worker shop-2:8',
    ]);
    const notReady = {
      key: 'ProgramNotReady shop-1:9',
      name: 'ProgramNotReady',
      severity: 'info',
      about: 'shop-1:9',
      text: 'The api shop-1:9 is not ready. redis: does not answer.',
      sinceMs,
    };
    expect(first.conditions).to.deep.equal([{ ...condition, severity: 'page' }, notReady]);
    expect((await next(got)).conditions[1], 'since then').to.deep.equal(notReady);
    clock.advance(6000);
    const later = (await next(got)).conditions[1];
    expect(later, 'for three reports').to.deep.equal({ ...notReady, severity: 'page' });
  });

  it('count the buyers in the waiting room of a sale once for all APIs', async () => {
    const sales = ['7', '8', '9'].map((saleId) => ({ saleId }) as LiveSale);
    look = async () => ({ ...NOTHING, sales });
    await programs.report('a', reportOf({ kind: 'api', waiting: { 7: 3, 8: 0 } }), 600_000);
    await programs.report('b', reportOf({ kind: 'api', id: 'shop-2:8', waiting: { 7: 4 } }), 600_000);
    const snapshot = await next(listen());
    expect(snapshot.sales.map(({ saleId, waiting }) => [saleId, waiting])).to.deep.equal([
      ['7', 4],
      ['8', 0],
      ['9', null],
    ]);
  });

  const shown = ({ conditions }: Snapshot): string[] => conditions.map(({ name, severity }) => `${name} ${severity}`);

  it('report a missing worker or keeper at once, and alert after a minute or two', async () => {
    const got = listen();
    const first = await next(got);
    expect(shown(first)).to.deep.equal(['SeckillWorkerAbsent info', 'SeckillKeeperAbsent info']);
    clock.advance(60_000);
    expect(shown(await next(got))).to.deep.equal(['SeckillWorkerAbsent page', 'SeckillKeeperAbsent info']);
    clock.advance(60_000);
    const later = await next(got);
    expect(shown(later)).to.deep.equal(['SeckillWorkerAbsent page', 'SeckillKeeperAbsent page']);
    expect(later.conditions[0]?.sinceMs).to.equal(first.atMs);
    await programs.report('a', reportOf(), 600_000);
    await programs.report('b', reportOf({ kind: 'worker', id: 'shop-1:8' }), 600_000);
    expect((await next(got)).conditions).to.deep.equal([]);
  });

  it('name one of several programs that vanished, until another program takes its place', async () => {
    const worker = (id: string): ProgramReport => reportOf({ kind: 'worker', id });
    await programs.report('keeper', reportOf(), 600_000);
    await programs.report('one', worker('shop-1:8'), 600_000);
    await programs.report('gone', worker('shop-2:8'), 1_000);
    const seenAtMs = clock.nowMs();
    const got = listen();
    expect(shown(await next(got))).to.deep.equal([]);
    clock.advance(1_000);
    const text = 'The worker shop-2:8 vanished, and no new worker has taken its place.';
    expect((await next(got)).conditions).to.deep.equal([
      {
        key: 'SeckillProgramDown worker shop-2:8',
        name: 'SeckillProgramDown',
        severity: 'info',
        about: 'shop-2:8',
        text,
        sinceMs: seenAtMs,
      },
    ]);
    clock.advance(60_000);
    expect(shown(await next(got))).to.deep.equal(['SeckillProgramDown ticket']);
    await programs.report('new', worker('shop-3:8'), 600_000);
    expect(shown(await next(got))).to.deep.equal([]);
  });

  it('show all workers as absent since the last report of the last worker', async () => {
    await programs.report('keeper', reportOf(), 3_600_000);
    await programs.report('one', reportOf({ kind: 'worker', id: 'shop-1:8' }), 1_000);
    clock.advance(5_000);
    await programs.report('other', reportOf({ kind: 'worker', id: 'shop-2:8' }), 1_000);
    const seenAtMs = clock.nowMs();
    clock.advance(600_000);
    const { conditions } = await next(listen());
    const absent = conditions.find(({ name }) => name === 'SeckillWorkerAbsent');
    expect([absent?.severity, absent?.sinceMs]).to.deep.equal(['page', seenAtMs]);
  });

  it('name unreadable parts and send the rest', async () => {
    programs.down = true;
    look = async () => ({ ...NOTHING, missing: ['mysql is away'] });
    const snapshot = await next(listen());
    expect(snapshot).to.deep.include({ programs: [], sales: [], everyMs: 1000 });
    expect(snapshot.missing).to.deep.equal(['mysql is away', 'memory program reports are down']);
  });

  const condition: Condition = {
    key: 'SeckillRedisFull',
    name: 'SeckillRedisFull',
    severity: 'page',
    about: null,
    text: 'Redis is full.',
    sinceMs: 1,
  };
  const namesIn = ({ conditions }: Snapshot): string[] =>
    conditions.map(({ name, severity, about }) => `${name} ${severity} ${about}`);

  it('show what this api knows while Redis is down, and nothing about other programs', async () => {
    const problems = ['redis: there is no connection to Redis.'];
    const unready = { ready: false, notReadySinceMs: 1, problems };
    const report = reportOf({ kind: 'api', id: 'shop-1:9', ...unready, conditions: [condition] });
    own = { report, atMs: clock.monotonicMs(), refusal: { why: 'there is no connection to Redis', sinceMs: 1 } };
    programs.down = true;
    const got = listen();
    const first = await next(got);
    expect(first.programs).to.deep.equal([
      { kind: 'api', id: 'shop-1:9', version: '1.0.0', ready: false, notReadySinceMs: 1, problems, seenMsAgo: 0 },
    ]);
    expect(namesIn(first)).to.have.members([
      'SeckillRedisFull page null',
      'ProgramNotReady page shop-1:9',
      'ProgramsUnknown page redis',
    ]);
    expect(
      first.conditions.map(({ sinceMs }) => sinceMs),
      'as long as the api knows',
    ).to.deep.equal([1, 1, 1]);
    expect(first.conditions.find(({ name }) => name === 'ProgramsUnknown')?.text).to.equal(
      'Other programs may run unseen, because Redis does not keep their reports: memory program reports are down.',
    );
    programs.down = false;
    own = { ...own, refusal: null };
    await programs.report('a', reportOf(), 600_000);
    expect(namesIn(await next(got))).to.not.include('ProgramsUnknown page redis');
  });

  it("show this api's newest report even while Redis accepts no reports", async () => {
    const old = reportOf({ kind: 'api', id: 'shop-1:9' });
    await programs.report('a', old, 10_000);
    const problems = ['redis: Redis is full (maxmemory) and refuses writes. Give it memory.'];
    const refusal = { why: 'report a program: OOM', sinceMs: clock.nowMs() };
    own = { report: { ...old, ready: false, problems }, atMs: clock.monotonicMs(), refusal };
    const got = listen();
    const first = await next(got);
    expect(first.programs.map(({ id, ready }) => [id, ready])).to.deep.equal([['shop-1:9', false]]);
    expect(namesIn(first)).to.have.members(['ProgramNotReady info shop-1:9', 'ProgramsUnknown info redis']);
  });

  it('log a bug, lose one snapshot and make the next snapshot', async () => {
    const bug = new TypeError('a bug');
    look = () => Promise.reject(bug);
    const got = listen();
    await until(() => logged.length === 1);
    expect(logged).to.deep.equal([[{ err: bug }, 'a bug: could not make a live snapshot for the consoles']]);
    look = async () => NOTHING;
    wake();
    await until(() => got.length === 1);
    expect(logged).to.have.length(1);
  });

  it('report an error that does not come from a server as a bug', async () => {
    programs.live = () => Promise.reject(new RangeError('a bug'));
    listen();
    await until(() => logged.length === 1);
  });
});

describe('GET /admin/v1/live', () => {
  let server: Started;
  let live: LiveSnapshots;
  let look: () => Promise<Look>;
  const clients: EventStreamClient[] = [];
  const serve = async (
    streamTimes = { heartbeatMs: 15_000, streamMaxMs: 60_000, retryMs: 2000 },
    clock = systemClock,
    overrides: Partial<HttpServices> = {},
  ): Promise<void> => {
    const programs = new MemoryProgramReports(systemClock);
    const log = {
      error: (fields: object): void => {
        throw new Error('a bug', { cause: fields });
      },
    };
    look = async () => NOTHING;
    live = new LiveSnapshots(
      { sales: partial({ look: () => look() }), programs, own: () => null, clock, log: partial(log) },
      2,
    );
    server = await startServer(new FakeServices({ live, streamTimes, ...overrides }));
  };
  const listen = async (roles = ['viewer']): Promise<EventStreamClient> => {
    const client = await EventStreamClient.open(`${server.operatorsUrl}/admin/v1/live`, {
      token: bearer('ann', roles),
    });
    clients.push(client);
    return client;
  };
  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    await server.stop();
  });

  it('streams snapshots to a viewer, and refuses callers without a role', async () => {
    await serve();
    const client = await listen();
    expect([client.status, client.headers['content-type']]).to.deep.equal([200, 'text/event-stream']);
    await client.received('snapshot');
    expect(client.events[0]?.data).to.include({ everyMs: 1000, moreSales: 0 });
    expect(client.retryMs).to.equal(2000);
    const buyer = await listen([]);
    expect(buyer.status).to.equal(403);
  });

  it('returns 503 at the maximum number of listeners, until a client leaves', async () => {
    await serve();
    const first = await listen();
    await listen();
    const { body } = await request(server.operatorsUrl)
      .get('/admin/v1/live')
      .set('authorization', bearer('ann', ['viewer']))
      .expect(503);
    expect(body.code).to.equal('overloaded');
    expect(body.detail).to.include('Too many consoles');
    first.close();
    await until(() => live.listening === 1);
    await (await listen()).received('snapshot');
  });

  it('returns the headers of the stream for HEAD without taking a place', async () => {
    await serve();
    const { headers } = await request(server.operatorsUrl)
      .head('/admin/v1/live')
      .set('authorization', bearer('ann', ['viewer']))
      .expect(200);
    expect(headers).to.include({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
    });
    expect(headers).to.have.property('trace-id');
    expect(live.listening).to.equal(0);
  });

  it('ends at the next heartbeat when the role or token is withdrawn', async () => {
    for (const later of ['revoked', { userId: 'ann', roles: [], expiresAtMs: Infinity }] as const) {
      let answer: Principal | Denial = { userId: 'ann', roles: ['viewer'], expiresAtMs: Infinity };
      const streamTimes = { heartbeatMs: 10, streamMaxMs: 60_000, retryMs: 10 };
      await serve(streamTimes, systemClock, { auth: { authenticate: () => answer } });
      const client = await listen();
      await until(() => client.comments > 1);
      answer = later;
      await client.end();
      expect(live.listening).to.equal(0);
      await server.stop();
    }
  });

  it('ends after its maximum time, and when the API drains', async () => {
    await serve({ heartbeatMs: 15_000, streamMaxMs: 50, retryMs: 10 });
    await (await listen()).end();
    await until(() => live.listening === 0);
    await server.stop();
    await serve();
    const client = await listen();
    await client.received('snapshot');
    await Promise.all([server.drain(5000), client.end()]);
    expect(live.listening).to.equal(0);
  });
});
