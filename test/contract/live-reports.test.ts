import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { BREAKER_STATES, type BreakerReport, type BreakerState } from '../../src/core/ports/admission-stores.js';
import type { Clock } from '../../src/core/ports/clock.js';
import type { ProgramReport } from '../../src/core/ports/program-reports.js';
import { systemClock } from '../../src/process/system-clock.js';
import { createBreakerStore } from '../../src/redis/breaker-store.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { createHotSaleStore } from '../../src/redis/hot-sale-store.js';
import { BREAKER_UNTIL_KEY, BREAKER_VOTES_KEY, HOT_PROCESSES_KEY, hotReportKey } from '../../src/redis/keys.js';
import { createProgramReports } from '../../src/redis/program-reports.js';
import { createRuleReports } from '../../src/redis/rule-reports.js';
import { pause } from '../chaos/harness/wait.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryBreakerStore } from '../helpers/memory/memory-admission-stores.js';
import { MemoryHotSaleStore } from '../helpers/memory/memory-hot-sale-store.js';
import { MemoryProgramReports } from '../helpers/memory/memory-program-reports.js';
import { MemoryRuleReports } from '../helpers/memory/memory-rule-repository.js';
import { onRedisCluster } from '../helpers/redis-cluster.js';
import { silentLog } from '../helpers/silent-log.js';
import { stackEnv } from '../helpers/stack-env.js';
import { onEachWorld, useWorld } from './on-each-world.js';

const LONG_MS = 60_000;
const SHORT_MS = 300;

/** The four stores in which processes report. Other tests may use the same server. */
const inMemory = (clock: Clock) => ({
  programs: new MemoryProgramReports(clock),
  rules: new MemoryRuleReports(clock),
  hotSales: new MemoryHotSaleStore(clock),
  breakers: new MemoryBreakerStore(clock),
});
const inRedis = (connection: RedisConnection) => ({
  // separate keys, because operators in other tests would see these programs and APIs
  programs: createProgramReports(connection, systemClock, `sk:{live}:programs:${randomUUID()}`),
  rules: createRuleReports(connection, `sk:{entry}:rules:apis:${randomUUID()}`),
  hotSales: createHotSaleStore(connection),
  breakers: createBreakerStore(connection),
});

async function memoryWorld() {
  const clock = new ManualClock();
  return { ...inMemory(clock), clock: clock as Clock, close: async () => undefined };
}

async function redisWorld(url = stackEnv().REDIS_URL) {
  const connection = await connectRedis({ url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);
  return { ...inRedis(connection), connection, clock: systemClock, close: () => connection.close() };
}

type Stores = ReturnType<typeof inMemory | typeof inRedis>;
type World = Stores & { readonly clock: Clock; close(): Promise<void> };

const newId = (): string => `test-${randomUUID()}`;
const programOf = (id: string, parts: Partial<ProgramReport> = {}): ProgramReport => ({
  ...{
    kind: 'api',
    id,
    version: '1.0.0',
    ready: true,
    notReadySinceMs: null,
    problems: [],
    conditions: [],
    waiting: {},
  },
  ...parts,
});
const ruleReportOf = (processId: string, version: number | null) => ({
  ...{ processId, host: 'shop-1', pid: 7, refused: null, canary: null },
  version,
});
const breakersOf = (redis: BreakerState, mysql: BreakerState = 'closed'): BreakerReport => ({
  ...{ redis, rocketmq: 'closed', mysql },
});
/** Sale that only one process of these tests reports. */
const saleIdOf = (processId: string): string => `9${BigInt(`0x${processId.slice(-12)}`)}`;

/** Reports a value from 0 to 2 of a process in each store, and reads the values of processes. */
const STORES: readonly {
  readonly name: string;
  report(stores: Stores, processId: string, value: number, lifeMs: number): Promise<unknown>;
  withdraw(stores: Stores, processId: string): Promise<unknown>;
  shown(stores: Stores, processIds: readonly string[]): Promise<(number | undefined)[]>;
}[] = [
  {
    name: 'ProgramReports',
    report: ({ programs }, id, value, lifeMs) => programs.report(id, programOf(id, { waiting: { 7: value } }), lifeMs),
    withdraw: ({ programs }, id) => programs.withdraw(id),
    shown: async ({ programs }, ids) => {
      const live = await programs.live();
      return ids.map((id) => live.find((one) => one.id === id)?.waiting[7]);
    },
  },
  {
    name: 'RuleReports',
    report: ({ rules }, id, value, lifeMs) => rules.report(ruleReportOf(id, value), lifeMs),
    withdraw: ({ rules }, id) => rules.withdraw(id),
    shown: async ({ rules }, ids) => {
      const live = await rules.live();
      return ids.map((id) => live.find(({ processId }) => processId === id)?.version ?? undefined);
    },
  },
  {
    name: 'HotSaleStore',
    report: ({ hotSales }, id, perSecond, lifeMs) => hotSales.report(id, [{ saleId: saleIdOf(id), perSecond }], lifeMs),
    withdraw: ({ hotSales }, id) => hotSales.withdraw(id),
    shown: async ({ hotSales }, ids) => {
      const sales = (await hotSales.reports()).flat();
      return ids.map((id) => sales.find(({ saleId }) => saleId === saleIdOf(id))?.perSecond);
    },
  },
  {
    name: 'BreakerStore',
    report: ({ breakers }, id, value, lifeMs) =>
      breakers.exchange(id, breakersOf(BREAKER_STATES[value] as BreakerState), lifeMs),
    withdraw: ({ breakers }, id) => breakers.withdraw(id),
    shown: async ({ breakers }, ids) => {
      const live = await breakers.exchange(newId(), breakersOf('closed'), 1);
      const stateOf = (id: string) => live.find(({ processId }) => processId === id)?.report.redis;
      return ids.map(stateOf).map((state) => (state === undefined ? undefined : BREAKER_STATES.indexOf(state)));
    },
  },
];

const WORLDS = [
  ['memory', memoryWorld],
  ['redis', () => redisWorld()],
  ['a Redis cluster', () => onRedisCluster(redisWorld)],
] as const;

onEachWorld<World>('contract reports of live processes', WORLDS, (world) => {
  for (const { name, report, withdraw, shown } of STORES) {
    describe(name, () => {
      it('shows the last report of every process', async () => {
        const [one, other] = [newId(), newId()];
        await Promise.all([report(world, one, 1, LONG_MS), report(world, other, 2, LONG_MS)]);
        expect(await shown(world, [one, other])).to.deep.equal([1, 2]);
        await report(world, one, 0, LONG_MS);
        expect(await shown(world, [one, other])).to.deep.equal([0, 2]);
      });

      it('drops a process without a timely report, and accepts it again later', async () => {
        const [late, renewed, other] = [newId(), newId(), newId()];
        await Promise.all([late, renewed].map((id) => report(world, id, 1, SHORT_MS)));
        await Promise.all([renewed, other].map((id) => report(world, id, 2, LONG_MS)));
        await world.clock.sleep(SHORT_MS + 20);
        expect(await shown(world, [late, renewed, other])).to.deep.equal([undefined, 2, 2]);
        await report(world, late, 1, LONG_MS);
        expect(await shown(world, [late])).to.deep.equal([1]);
      });

      it('drops a withdrawn report at once, and allows another withdrawal', async () => {
        const [one, other] = [newId(), newId()];
        await Promise.all([one, other].map((id) => report(world, id, 1, LONG_MS)));
        await withdraw(world, one);
        await withdraw(world, one);
        expect(await shown(world, [one, other])).to.deep.equal([undefined, 1]);
      });
    });
  }

  it('reads programs unchanged, by kind and id, with the time since they were seen', async () => {
    const condition = {
      key: 'SeckillSaleNotReady 7',
      name: 'SeckillSaleNotReady',
      severity: 'info' as const,
      about: '7',
      text: 'Sale 7 starts soon.',
      sinceMs: Date.UTC(2030, 0, 1),
    };
    const keeper = programOf(newId(), { kind: 'keeper', conditions: [condition] });
    const api = programOf(newId(), { ready: false, problems: ['redis: does not answer.'], waiting: { 7: 3 } });
    for (const report of [keeper, api]) await world.programs.report(newId(), report, LONG_MS);
    await world.clock.sleep(SHORT_MS);
    const live = await world.programs.live();
    const kinds = live.map(({ kind }) => kind);
    expect(kinds).to.deep.equal([...kinds].sort());
    for (const report of [keeper, api]) {
      const { seenMsAgo = -1, ...read } = live.find(({ id }) => id === report.id) ?? {};
      expect(read).to.deep.equal(report);
      expect(seenMsAgo).to.be.within(SHORT_MS - 20, LONG_MS / 2);
    }
  });

  it('names a vanished program until the program or its replacement reports', async () => {
    const { programs, clock } = world;
    const [gone, stopped, back, api] = [newId(), newId(), newId(), newId()];
    const report = (id: string, kind: ProgramReport['kind'], lifeMs: number): Promise<void> =>
      programs.report(id, programOf(id, { kind }), lifeMs);
    const vanished = async (): Promise<string[]> => {
      const ours = new Set([gone, stopped, back, api]);
      return (await programs.vanished()).map(({ id }) => id).filter((id) => ours.has(id));
    };
    for (let nth = 0; nth < 2; nth++) {
      await Promise.all([gone, stopped, back].map((id) => report(id, 'worker', SHORT_MS)));
      await clock.sleep(20); // the second report of each process is later than all first reports
    }
    await programs.withdraw(stopped);
    expect(await vanished()).to.deep.equal([]);
    await clock.sleep(SHORT_MS + 20);
    expect(await vanished()).to.have.members([gone, back]);
    await report(back, 'worker', LONG_MS);
    await report(api, 'api', LONG_MS);
    expect(await vanished()).to.deep.equal([gone]);
    await report(newId(), 'worker', LONG_MS);
    expect(await vanished()).to.deep.equal([]);
  });

  it('reads rule reports unchanged', async () => {
    const refused = { version: 4, reasons: ['sign.keys.0 has no secret here', 'limit is not known here'] };
    const report = { ...ruleReportOf(newId(), null), refused };
    await world.rules.report(report, LONG_MS);
    expect((await world.rules.live()).find(({ processId }) => processId === report.processId)).to.deep.equal(report);
  });

  it('reads all hot sales of a process, or none', async () => {
    const [id, ...saleIds] = [newId(), saleIdOf(newId()), saleIdOf(newId())];
    const sales = saleIds.map((saleId, index) => ({ saleId, perSecond: 20.5 + index }));
    const read = async () => (await world.hotSales.reports()).flat().filter(({ saleId }) => saleIds.includes(saleId));
    await world.hotSales.report(id, sales, LONG_MS);
    expect(await read()).to.deep.equal(sales);
    await world.hotSales.report(id, [], LONG_MS);
    expect(await read()).to.deep.equal([]);
  });

  it('returns the breakers of all processes to a process that reports', async () => {
    const [one, other] = [newId(), newId()];
    const reports = { [one]: breakersOf('open'), [other]: breakersOf('closed', 'half_open') };
    await world.breakers.exchange(one, reports[one] as BreakerReport, LONG_MS);
    const live = await world.breakers.exchange(other, reports[other] as BreakerReport, LONG_MS);
    const ours = live.filter(({ processId }) => processId in reports);
    expect(Object.fromEntries(ours.map(({ processId, report }) => [processId, report]))).to.deep.equal(reports);
  });
});

describe('reports of live processes in Redis', () => {
  const world = useWorld(redisWorld);

  /** Writes reports of another release. @returns their process ids */
  async function writeTexts(list: string, texts: readonly string[], keyOf = (id: string) => `${list}:${id}`) {
    const ids = texts.map(newId);
    for (const [index, id] of ids.entries()) {
      await world.connection.redis.sadd(list, id);
      await world.connection.redis.set(keyOf(id), texts[index] ?? '', 'PX', LONG_MS);
    }
    return ids;
  }

  it('omits an unreadable program, and lets the keys expire', async () => {
    const key = `sk:{live}:programs:${randomUUID()}`;
    const reports = createProgramReports(world.connection, systemClock, key);
    await writeTexts(key, ['', 'null', '{"kind":"api"}', 'nonsense', '{"kind":"baker","id":"x"}']);
    expect(await reports.live()).to.deep.equal([]);
    await reports.report('good', programOf('good'), LONG_MS);
    expect(await reports.live()).to.have.length(1);
    expect(await world.connection.redis.pttl(key)).to.be.within(1, 3_600_000);
    expect(await world.connection.redis.pttl(`${key}:good`)).to.be.within(1, LONG_MS);
    expect(await world.connection.redis.pttl(`${key}:seen`)).to.be.within(1, 3_600_000);
  });

  it('forgets unreadable programs and programs that vanished over an hour ago', async () => {
    const key = `sk:{live}:programs:${randomUUID()}`;
    const { redis } = world.connection;
    const atMs = Date.now();
    const seen = (seenAtMs: number): string =>
      JSON.stringify({ kind: 'worker', id: 'w', startedAtMs: seenAtMs - 1000, seenAtMs });
    await redis.hset(`${key}:seen`, { old: seen(atMs - 3_600_001), strange: '{"kind":"baker"}', new: seen(atMs - 5) });
    expect(await createProgramReports(world.connection, systemClock, key).vanished()).to.have.length(1);
    expect(await redis.hkeys(`${key}:seen`)).to.deep.equal(['new']);
  });

  it('keeps one entry of a program that starts and dies again and again', async () => {
    const key = `sk:{live}:programs:${randomUUID()}`;
    for (let nth = 0; nth < 5; nth++) {
      const reports = createProgramReports(world.connection, systemClock, key);
      await reports.report(`${nth}`, programOf(`shop-1:${nth}`), 1);
      await pause(20);
    }
    expect(await world.connection.redis.hlen(`${key}:seen`)).to.equal(1);
  });

  it('shows an API with an unreadable report as following no rules', async () => {
    const key = `sk:{entry}:rules:apis:${randomUUID()}`;
    const ids = await writeTexts(key, ['', 'null', '{"version":"new"}', 'nonsense']);
    const live = await createRuleReports(world.connection, key).live();
    expect(live.map(({ processId }) => processId)).to.have.members(ids);
    for (const report of live) expect(report).to.include({ version: null, refused: null });
  });

  it('keeps the counts of a canary, and reads reports of APIs that do not know canaries', async () => {
    const key = `sk:{entry}:rules:apis:${randomUUID()}`;
    const reports = createRuleReports(world.connection, key);
    const { canary: _none, ...old } = ruleReportOf('old', 3);
    await writeTexts(key, [JSON.stringify(old)]);
    const canary = { since: 4, others: { accepted: 7, refused: 1 }, tried: { accepted: 0, refused: 2 } };
    await reports.report({ ...ruleReportOf('new', 4), canary }, LONG_MS);
    const found = await reports.live();
    expect(found.map((report) => [report.version, report.canary])).to.have.deep.members([
      [3, null],
      [4, canary],
    ]);
  });

  it('ignores unreadable hot sales', async () => {
    const saleId = saleIdOf(newId());
    const strange = ['', 'null', '7', '{"7":1}', `[["x",1],["${saleId}","1"],["${saleId}",-1],7,["${saleId}",5]]`];
    const ids = await writeTexts(HOT_PROCESSES_KEY, strange, hotReportKey);
    const read = (await world.hotSales.reports()).flat().filter((sale) => sale.saleId === saleId);
    expect(read).to.deep.equal([{ saleId, perSecond: 5 }]);
    for (const id of ids) await world.hotSales.withdraw(id);
  });

  it('counts a process with unreadable breakers as live and healthy', async () => {
    const texts = ['', 'nonsense', 'null', '7', '{"redis":"ajar","mysql":"open","kafka":"open"}'];
    const ids = texts.map(newId);
    for (const [index, id] of ids.entries()) {
      await world.connection.redis.zadd(BREAKER_UNTIL_KEY, Date.now() + LONG_MS, id);
      await world.connection.redis.hset(BREAKER_VOTES_KEY, id, texts[index] ?? '');
    }
    const live = await world.breakers.exchange(newId(), breakersOf('closed'), LONG_MS);
    const read = ids.map((id) => live.find(({ processId }) => processId === id)?.report);
    expect(read).to.deep.equal([...Array(4).fill(breakersOf('closed')), breakersOf('closed', 'open')]);
    for (const id of ids) await world.breakers.withdraw(id);
  });

  it('keeps nothing of a dead process, and lets the keys expire', async () => {
    const { redis } = world.connection;
    const [dead, live] = [newId(), newId()];
    await world.hotSales.report(dead, [], 1);
    await world.breakers.exchange(dead, breakersOf('open'), 1);
    await pause(20); // Uses the clock of Redis, which a test cannot move.
    await world.hotSales.report(live, [], LONG_MS);
    await world.hotSales.reports();
    await world.breakers.exchange(live, breakersOf('open'), LONG_MS);
    expect([
      await redis.sismember(HOT_PROCESSES_KEY, dead),
      await redis.sismember(HOT_PROCESSES_KEY, live),
    ]).to.deep.equal([0, 1]);
    expect(await redis.hexists(BREAKER_VOTES_KEY, dead)).to.equal(0);
    expect(await redis.zscore(BREAKER_UNTIL_KEY, dead)).to.equal(null);
    for (const key of [HOT_PROCESSES_KEY, BREAKER_VOTES_KEY, BREAKER_UNTIL_KEY]) {
      expect(await redis.pttl(key), key).to.be.within(1, 3_600_000);
    }
    expect(await redis.pttl(hotReportKey(live))).to.be.within(1, LONG_MS);
    await Promise.all([world.hotSales.withdraw(live), world.breakers.withdraw(live)]);
  });
});
