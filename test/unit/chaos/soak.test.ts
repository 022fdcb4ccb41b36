import { COLLECT_GARBAGE, type Program } from '../../chaos/harness/programs.js';
import { expect } from 'chai';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { until } from '../../chaos/harness/wait.js';
import { createRandom } from '../../chaos/random.js';
import { NO_FIGURES, type RowResult } from '../../chaos/scenario.js';
import { type Fault, FAULT_KINDS, FaultBag, keeperMayDie } from '../../chaos/soak/faults.js';
import {
  compareThirds,
  judgePrograms,
  judgeServers,
  median,
  MEMORY_LIMIT,
  type ProgramSample,
  type ServerSample,
} from '../../chaos/soak/flatness.js';
import { heldForNobody, Soak } from '../../chaos/soak/soak.js';
import { Pulse } from '../../chaos/soak/load.js';
import { openOf, samplePrograms } from '../../chaos/soak/samples.js';
import { soakLines, soakPage, soakSentence } from '../../chaos/soak/soak-report.js';

const MIB = 1024 * 1024;
const MINUTE_MS = 60_000;

describe('soak: the draw of faults', () => {
  const drawn = (seed: number, count: number, keeperMayDie = true): Fault[] => {
    const bag = new FaultBag(createRandom(`${seed} a test`));
    return Array.from({ length: count }, () => bag.draw({ keeperMayDie }));
  };

  it('is the same for the same seed, and another for another one', () => {
    expect(drawn(1, 40)).to.deep.equal(drawn(1, 40));
    expect(drawn(1, 40)).to.not.deep.equal(drawn(2, 40));
  });

  it('has every kind once before any comes again', () => {
    for (let seed = 0; seed < 20; seed++) {
      const kinds = drawn(seed, 2 * FAULT_KINDS.length).map(({ kind }) => kind);
      expect(kinds.slice(0, FAULT_KINDS.length)).to.have.members([...FAULT_KINDS]);
      expect(kinds.slice(FAULT_KINDS.length)).to.have.members([...FAULT_KINDS]);
    }
  });

  it('never kills a keeper that must live, and goes on with the others', () => {
    const kinds = drawn(3, 100, false).map(({ kind }) => kind);
    expect(kinds).to.not.include('keeper_killed');
    expect(new Set(kinds).size).to.equal(FAULT_KINDS.length - 1);
  });

  it('stalls what it stalls for seconds, below the time after which deliveries go to others; nothing else has a time', () => {
    for (const { kind, stallMs } of drawn(5, 300)) {
      if (!kind.endsWith('_stalled')) expect(stallMs, kind).to.equal(0);
      else expect(stallMs, kind).to.be.within(3_000, kind === 'mysql_stalled' ? 10_000 : 8_000);
    }
  });

  it('leaves the keeper of a judged soak three minutes to live, and begins with its death allowed', () => {
    expect(keeperMayDie(20_000, 15 * MINUTE_MS)).to.equal(true);
    expect(keeperMayDie(8 * MINUTE_MS, 15 * MINUTE_MS)).to.equal(false);
    expect(keeperMayDie(50_000, 5 * MINUTE_MS)).to.equal(true);
    expect(keeperMayDie(65_000, 5 * MINUTE_MS)).to.equal(false);
    expect(keeperMayDie(100_000, 2 * MINUTE_MS), 'nobody is judged').to.equal(true);
  });
});

describe('soak: flat or grown', () => {
  const line = (from: number, to: number, count = 30): number[] =>
    Array.from({ length: count }, (_, index) => from + ((to - from) * index) / (count - 1));

  it('takes the middle value, not the highest', () => {
    expect(median([5, 1, 900])).to.equal(5);
    expect(median([4, 1, 2, 3])).to.equal(3);
    expect(median([])).to.be.NaN;
  });

  it('compares the medians of the first and the last third', () => {
    expect(compareThirds([1, 1, 1, 900, 900, 900, 2, 2, 500], { ratio: 1, slack: 0 })).to.deep.equal({
      ...{ first: 1, last: 2, flat: false },
    });
  });

  it('says nothing of a few values', () => expect(compareThirds([1, 2, 3], MEMORY_LIMIT)).to.equal(null));

  it('needs growth beyond the ratio and beyond the slack, both', () => {
    expect(compareThirds(line(100 * MIB, 300 * MIB), MEMORY_LIMIT)?.flat, 'both').to.equal(false);
    expect(compareThirds(line(20 * MIB, 50 * MIB), MEMORY_LIMIT)?.flat, 'a small heap that filled').to.equal(true);
    expect(compareThirds(line(400 * MIB, 480 * MIB), MEMORY_LIMIT)?.flat, 'a fifth of much').to.equal(true);
    expect(compareThirds(line(300 * MIB, 100 * MIB), MEMORY_LIMIT)?.flat, 'less').to.equal(true);
  });

  const life = (program: string, minutes: number, at: (share: number) => Partial<ProgramSample>): ProgramSample[] => {
    const count = minutes * 12;
    return Array.from({ length: count }, (_, index) => ({
      ...{
        program,
        ageMs: index * 5_000 + 5_000,
        rssBytes: 100 * MIB,
        heapBytes: 30 * MIB,
        handles: 40,
        sockets: 30,
        guests: 20,
      },
      ...at(index / count),
    }));
  };

  it('judges each life by itself, after its first minute, and only one of three minutes or more', () => {
    const started = life('api 1', 10, (share) => (share < 0.1 ? { rssBytes: 10 * MIB, handles: 3 } : {}));
    const short = life('api 2', 2, (share) => ({ rssBytes: share * 1000 * MIB }));
    const verdicts = judgePrograms([...started, ...short]);
    expect(verdicts.map(({ what }) => what)).to.deep.equal(
      ['memory', 'heap', 'handles', 'sockets'].map((what) => `api 1 ${what}`),
    );
    expect(verdicts.every(({ flat }) => flat)).to.equal(true);
  });

  it('finds memory, heap, handles and sockets that grow', () => {
    const leaks: Record<string, (share: number) => Partial<ProgramSample>> = {
      memory: (share) => ({ rssBytes: (100 + 200 * share) * MIB }),
      heap: (share) => ({ heapBytes: (30 + 100 * share) * MIB }),
      handles: (share) => ({ handles: 40 + 100 * share }),
      sockets: (share) => ({ sockets: 30 + 100 * share }),
    };
    for (const [what, leak] of Object.entries(leaks)) {
      const grown = judgePrograms(life('worker 7', 10, leak)).filter(({ flat }) => !flat);
      expect(grown.map((verdict) => verdict.what)).to.deep.equal([`worker 7 ${what}`]);
    }
    const little = judgePrograms(life('api 7', 10, (share) => ({ heapBytes: (40 + 15 * share) * MIB })));
    expect(
      little.filter(({ flat }) => !flat).map(({ what }) => what),
      'a heap of what is in use',
    ).to.deep.equal(['api 7 heap']);
  });

  it('leaves out a heap that was not told', () => {
    const verdicts = judgePrograms(life('keeper 9', 10, (share) => (share < 0.98 ? { heapBytes: null } : {})));
    expect(verdicts.map(({ what }) => what)).to.not.include('keeper 9 heap');
  });

  const serverLife = (at: (share: number) => Partial<ServerSample>): ServerSample[] =>
    Array.from({ length: 120 }, (_, index) => ({
      ...{ ageMs: index * 5_000, redisConnections: 20, mysqlConnections: 30 },
      ...{ redisBytes: 2 * MIB + 400 * index * 100, redisKeys: 10 + index * 100, orders: index * 100 },
      ...at(index / 120),
    }));

  it('lets Redis grow with the orders, and no faster', () => {
    const flat = judgeServers(serverLife(() => ({})));
    expect(flat.map(({ what, last }) => [what, last])).to.deep.equal([
      ['Redis connections', 20],
      ['MySQL connections', 30],
      ['Redis memory', 400],
      ['Redis keys', 1],
    ]);
    expect(flat.every((verdict) => verdict.flat)).to.equal(true);
    const leaking = judgeServers(
      serverLife((share) => ({ redisBytes: share * 120 * 100 * 3000, redisKeys: share * 120 * 100 * 4 })),
    );
    expect(leaking.filter((verdict) => !verdict.flat).map(({ what }) => what)).to.deep.equal([
      ...['Redis memory', 'Redis keys'],
    ]);
  });

  it('says nothing of servers that it watched for a short time', () => {
    expect(judgeServers(serverLife(() => ({})).slice(0, 35))).to.deep.equal([]);
  });

  it('does not take buffers of connections for what orders cost', () => {
    const few = serverLife((share) => ({ redisBytes: (2 + 3 * share) * MIB, orders: Math.round(200 * share) }));
    expect(judgeServers(few).find(({ what }) => what === 'Redis memory')?.flat).to.equal(true);
  });

  it('finds connections that are not given back', () => {
    const leaking = serverLife((share) => ({ redisConnections: 20 + 90 * share, mysqlConnections: 30 + 90 * share }));
    const grown = judgeServers(leaking).filter(({ flat }) => !flat);
    expect(grown.map(({ what }) => what)).to.deep.equal(['Redis connections', 'MySQL connections']);
  });
});

describe('soak: a look at a program', () => {
  let metrics: Server;
  /** Alone in its process, so that what it has open can be counted: connects as often as it is told to. */
  let program: ChildProcess;
  let pid: number;
  let port: number;
  let rssBytes: number;
  before(async () => {
    metrics = createServer((_req, res) => res.end('nodejs_heap_size_used_bytes{program="api"} 4711\n'));
    await new Promise<void>((resolve) => metrics.listen(0, '127.0.0.1', resolve));
    const text = `
      import { connect, createServer } from 'node:net';
      const server = createServer().listen(0, '127.0.0.1', () => {
        process.send({ port: server.address().port, rssBytes: process.memoryUsage.rss() });
      });
      process.on('message', async ({ port, count }) => {
        const open = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
        await Promise.all(open.map((one) => new Promise((resolve) => one.on('connect', resolve))));
        process.send('open');
      });`;
    const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] as const;
    program = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: [...stdio] });
    [{ port, rssBytes }] = (await once(program, 'message')) as [{ port: number; rssBytes: number }];
    pid = program.pid as number;
  });
  after(() => {
    program.kill('SIGKILL');
    metrics.closeAllConnections();
    metrics.close();
  });
  const addressOf = (server: Server): AddressInfo => server.address() as AddressInfo;
  const look = async (pid: number) => {
    const program = { name: 'api', pid, probeUrl: `http://127.0.0.1:${addressOf(metrics).port}` } as Program;
    return samplePrograms({ running: () => [{ program, ageMs: 5 }] });
  };
  const guestsAre = (count: number): Promise<void> =>
    until(`it has ${count} guests`, () => openOf({ pid })?.guests === count);

  it('counts what it has open, sockets apart and guests by themselves, and asks it for its heap', async () => {
    const [before] = await look(pid);
    expect(before).to.include({ program: `api ${pid}`, ageMs: 5, heapBytes: 4711, guests: 0 });
    expect(before?.rssBytes).to.be.within(0.5 * rssBytes, 2 * rssBytes);
    program.send({ port: addressOf(metrics).port, count: 20 });
    await once(program, 'message');
    const guests = Array.from({ length: 30 }, () => connect(port, '127.0.0.1'));
    await guestsAre(30);
    const [after] = await look(pid);
    for (const guest of guests) guest.destroy();
    expect(after?.guests).to.equal(30);
    expect((after?.sockets ?? 0) - (before?.sockets ?? 0), 'its own').to.equal(20);
    expect((after?.handles ?? 0) - (before?.handles ?? 0), 'of them handles').to.equal(20);
    await guestsAre(0);
  });

  it('tells of connections that are kept when every buyer has hung up', async () => {
    const kept = connect(port, '127.0.0.1');
    await guestsAre(1);
    expect(await heldForNobody([{ pid }], 100)).to.deep.equal([
      `api ${pid} holds 1 connections whose buyers have hung up`,
    ]);
    kept.destroy();
    expect(await heldForNobody([{ pid }])).to.deep.equal([]);
  });

  it('hears of a heap without its garbage', () => {
    const preload = COLLECT_GARBAGE;
    const heapBytesAfter = (imports: readonly string[]): number => {
      const program = `
        let garbage = [];
        for (let i = 0; i < 1_000_000; i++) garbage.push({ i });
        globalThis.last = garbage.pop(); garbage = null;
        console.log(process.memoryUsage().heapUsed);`;
      const flags = ['--max-semi-space-size=128', ...imports.flatMap((name) => ['--import', name])];
      const args = [...flags, '--input-type=module', '-e', program];
      return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }));
    };
    const withGarbage = heapBytesAfter(['tsx']);
    expect(withGarbage - heapBytesAfter(['tsx', preload])).to.be.at.least(20 * MIB);
  });

  it('leaves out one that is gone', async () => expect(await look(2 ** 30)).to.deep.equal([]));
});

describe('soak: when buyers hear yes again', () => {
  it('counts purchases that were sent after the fault only, and asks for every sale', () => {
    const pulse = new Pulse();
    pulse.heardYes('1', 100);
    expect(pulse.yesSince(100, ['1']), 'sent before it').to.equal(false);
    pulse.heardYes('1', 101);
    expect(pulse.yesSince(100, ['1', '2']), 'the other sale').to.equal(false);
    pulse.heardYes('2', 150);
    pulse.heardYes('2', 90); // an earlier purchase whose answer came later
    expect(pulse.yesSince(100, ['1', '2'])).to.equal(true);
    expect(pulse.ordersSince(100, ['1']), 'a yes is no order').to.equal(false);
    pulse.sawOrder('1', 101);
    expect(pulse.ordersSince(100, ['1'])).to.equal(true);
  });
});

describe('soak: the report', () => {
  const soak = new Soak({
    minutes: 15,
    faultEveryMs: 20_000,
    onFault: () => undefined,
    signal: new AbortController().signal,
  });
  soak.faults.push({ kind: 'redis_killed', atMs: 20_000, stallMs: 0, yesMs: 4_000, ordersMs: 6_000 });
  soak.faults.push({ kind: 'redis_killed', atMs: 60_000, stallMs: 0, yesMs: 2_000, ordersMs: 3_000 });
  soak.faults.push({ kind: 'mysql_stalled', atMs: 40_000, stallMs: 7_000, yesMs: 100, ordersMs: 8_000 });
  const result: RowResult = {
    ...{
      row: 'soak',
      ids: ['soak'],
      title: 'a soak',
      seed: 7,
      outcome: 'green',
      reason: null,
      bites: [],
      findings: [],
    },
    ...{ figures: { ...NO_FIGURES, requests: 12_345, accepted: 9_000, orders: 9_000 }, recoveryMs: 1, tookMs: 1000 },
  };

  it('says how long buyers waited, by kind and over all', () => {
    const lines = new Map(soakLines(soak, result, 15));
    expect(lines.get('requests')).to.equal('12,345');
    expect(lines.get('faults')).to.equal('3');
    expect(lines.get('  redis_killed × 2')).to.equal('yes again 4.0, worst 4.0 s; orders again 6.0, worst 6.0 s');
    expect(lines.get('recovery, median')).to.equal('yes again 2.0, worst 4.0 s; orders again 6.0, worst 8.0 s');
  });

  it('does not call memory flat that was not judged, and names why it is red', () => {
    expect(soakSentence(soak, result, 2)).to.equal(
      '0 oversold, 0 duplicate, 0 lost, too short to judge memory in 2 minutes and 3 faults',
    );
    const red = { ...result, outcome: 'red', reason: 'I1 sold 11 of 10' } as const;
    expect(soakSentence(soak, red, 15)).to.match(/^RED after 15 minutes .*I1 sold 11 of 10$/);
    const page = soakPage({
      ...{ soak, result: red, minutes: 15, date: 'today', again: 'chaos soak --seed 7' },
      facts: { versions: { Node: '20' }, machine: 'a machine' },
    });
    expect(page).to.include('RED').and.to.include('| 40 | mysql_stalled (7.0 s) | 0.1 | 8.0 |');
  });
});
