import { expect } from 'chai';
import {
  compareThirds,
  judgePrograms,
  judgeServers,
  MEMORY_LIMIT,
  type ProgramSample,
  type ServerSample,
} from '../../chaos/long/flatness.js';

const MIB = 1024 * 1024;

describe('soak: flat or grown', () => {
  const line = (from: number, to: number, count = 30): number[] =>
    Array.from({ length: count }, (_, index) => from + ((to - from) * index) / (count - 1));

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

  it('finds connections that are not given back', () => {
    const leaking = serverLife((share) => ({ redisConnections: 20 + 90 * share, mysqlConnections: 30 + 90 * share }));
    const grown = judgeServers(leaking).filter(({ flat }) => !flat);
    expect(grown.map(({ what }) => what)).to.deep.equal(['Redis connections', 'MySQL connections']);
  });
});
