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

describe('the leak check of long runs', () => {
  const line = (from: number, to: number, count = 30): number[] =>
    Array.from({ length: count }, (_, index) => from + ((to - from) * index) / (count - 1));

  it('reports growth only when it exceeds both the ratio and the slack', () => {
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

  it('judges each program that ran for three minutes, without its first minute', () => {
    const started = life('api 1', 10, (share) => (share < 0.1 ? { rssBytes: 10 * MIB, handles: 3 } : {}));
    const short = life('api 2', 2, (share) => ({ rssBytes: share * 1000 * MIB }));
    const verdicts = judgePrograms([...started, ...short]);
    expect(verdicts.map(({ what }) => what)).to.deep.equal(
      ['memory', 'heap', 'handles', 'sockets'].map((what) => `api 1 ${what}`),
    );
    expect(verdicts.every(({ flat }) => flat)).to.equal(true);
  });

  it('reports growing memory, heap, handles and sockets', () => {
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

  it('reports connections that are not returned', () => {
    const samples: ServerSample[] = Array.from({ length: 120 }, (_, index) => ({
      ageMs: index * 5_000,
      redisConnections: 20 + (90 * index) / 120,
      mysqlConnections: 30,
    }));
    const verdicts = judgeServers(samples);
    expect(verdicts.map(({ what, flat }) => [what, flat])).to.deep.equal([
      ['Redis connections', false],
      ['MySQL connections', true],
    ]);
  });
});
