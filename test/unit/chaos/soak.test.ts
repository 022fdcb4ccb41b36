import { expect } from 'chai';
import { createRandom } from '../../chaos/random.js';
import { NO_FIGURES } from '../../chaos/scenario-sales.js';
import { type Fault, FAULT_KINDS, FaultDraw, keeperMayDie } from '../../chaos/soak/faults.js';
import {
  compareThirds,
  judgePrograms,
  judgeServers,
  MEMORY_LIMIT,
  type ProgramSample,
  type ServerSample,
} from '../../chaos/soak/flatness.js';
import { LastSuccess } from '../../chaos/soak/load.js';
import { soakSentence } from '../../chaos/soak/soak-report.js';
import { Soak } from '../../chaos/soak/soak.js';

const MIB = 1024 * 1024;
const MINUTE_MS = 60_000;

describe('soak: the draw of faults', () => {
  const drawn = (seed: number, count: number, keeperMayDie = true): Fault[] => {
    const draw = new FaultDraw(createRandom(`${seed} a test`));
    return Array.from({ length: count }, () => draw.draw({ keeperMayDie }));
  };

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

  it('leaves the last keeper of a judged soak three minutes, and allows kills before', () => {
    expect(keeperMayDie(20_000, 15 * MINUTE_MS)).to.equal(true);
    expect(keeperMayDie(8 * MINUTE_MS, 15 * MINUTE_MS)).to.equal(false);
    expect(keeperMayDie(50_000, 5 * MINUTE_MS)).to.equal(true);
    expect(keeperMayDie(65_000, 5 * MINUTE_MS)).to.equal(false);
    expect(keeperMayDie(100_000, 2 * MINUTE_MS), 'nothing is judged').to.equal(true);
  });
});

describe('soak: flat or grown', () => {
  const line = (from: number, to: number, count = 30): number[] =>
    Array.from({ length: count }, (_, index) => from + ((to - from) * index) / (count - 1));

  it('compares the medians of the first and the last third', () => {
    const compared = compareThirds([1, 1, 1, 900, 900, 900, 2, 2, 500], { ratio: 1, slack: 0 });
    expect(compared).to.deep.equal({ first: 1, last: 2, flat: false });
  });

  it('needs growth beyond the ratio and beyond the slack, both', () => {
    expect(compareThirds(line(100 * MIB, 300 * MIB), MEMORY_LIMIT)?.flat, 'both').to.equal(false);
    expect(compareThirds(line(20 * MIB, 50 * MIB), MEMORY_LIMIT)?.flat, 'a small heap that filled').to.equal(true);
    expect(compareThirds(line(400 * MIB, 480 * MIB), MEMORY_LIMIT)?.flat, 'a fifth of much').to.equal(true);
    expect(compareThirds(line(300 * MIB, 100 * MIB), MEMORY_LIMIT)?.flat, 'less').to.equal(true);
  });

  const life = (program: string, minutes: number, at: (share: number) => Partial<ProgramSample>): ProgramSample[] => {
    const count = minutes * 12;
    return Array.from({ length: count }, (_, index) => ({
      program,
      ageMs: index * 5_000 + 5_000,
      rssBytes: 100 * MIB,
      heapBytes: 30 * MIB,
      handles: 40,
      sockets: 30,
      inbound: 20,
      ...at(index / count),
    }));
  };

  it('judges each program by itself, after its first minute, and only after three minutes or more', () => {
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

  const serverLife = (at: (share: number) => Partial<ServerSample>): ServerSample[] =>
    Array.from({ length: 120 }, (_, index) => ({
      ageMs: index * 5_000,
      redisConnections: 20,
      mysqlConnections: 30,
      redisBytes: 2 * MIB + 400 * index * 100,
      redisKeys: 10 + index * 100,
      orders: index * 100,
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
      'Redis memory',
      'Redis keys',
    ]);
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

describe('soak: when purchases succeed again', () => {
  it('counts purchases that were sent after the fault only, and needs one of every sale', () => {
    const lastSuccess = new LastSuccess();
    lastSuccess.accepted('1', 100);
    expect(lastSuccess.acceptedSince(100, ['1']), 'sent before it').to.equal(false);
    lastSuccess.accepted('1', 101);
    expect(lastSuccess.acceptedSince(100, ['1', '2']), 'the other sale').to.equal(false);
    lastSuccess.accepted('2', 150);
    lastSuccess.accepted('2', 90); // an earlier purchase whose answer came later
    expect(lastSuccess.acceptedSince(100, ['1', '2'])).to.equal(true);
    expect(lastSuccess.orderedSince(100, ['1']), 'an accepted purchase is no order').to.equal(false);
    lastSuccess.ordered('1', 101);
    expect(lastSuccess.orderedSince(100, ['1'])).to.equal(true);
  });
});

describe('soak: the result', () => {
  it('does not call memory flat that was not judged, and says why it is red', () => {
    const { signal } = new AbortController();
    const soak = new Soak({ minutes: 2, faultEveryMs: 20_000, onFault: () => undefined, signal });
    const result = {
      scenario: 'soak',
      ids: ['soak'],
      title: 'a soak',
      seed: 7,
      outcome: 'green',
      reason: null,
      figures: NO_FIGURES,
      recoveryMs: 1,
      tookMs: 1000,
      observations: [],
      findings: [],
    } as const;
    expect(soakSentence(soak, result, 2)).to.equal(
      '0 oversold, 0 duplicate, 0 lost, too short to judge memory in 2 minutes and 0 faults',
    );
    const red = { ...result, outcome: 'red', reason: 'I1 sold 11 of 10' } as const;
    expect(soakSentence(soak, red, 15)).to.match(/^RED after 15 minutes .*I1 sold 11 of 10$/);
  });
});
