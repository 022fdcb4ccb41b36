import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import { ClockWatch } from '../../../src/orders/clock-watch.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { partial } from '../../helpers/partial.js';

describe('keeper: clock watch', () => {
  let clock: ManualClock;
  let mysqlMs: () => number;
  let redis: (() => Promise<number>)[];
  let seen: Record<string, number>;
  let reads: number;
  let watch: ClockWatch;
  beforeEach(() => {
    clock = new ManualClock();
    mysqlMs = () => clock.nowMs();
    redis = [async () => clock.nowMs()];
    seen = {};
    reads = 0;
    watch = new ClockWatch({
      servers: { mysql: async () => (reads++, mysqlMs()), redis: () => redis.map((read) => read()) },
      clock,
      metrics: partial({ clockAhead: (server, aheadMs) => void (seen[server] = aheadMs) }),
    });
  });
  const problem = async (): Promise<string | null> => {
    clock.advance(1_000);
    return watch.agree().then(
      () => null,
      (error: Error) => error.message,
    );
  };

  it('names the clock that differs by more than 2 s [D10]', async () => {
    for (const aheadMs of [0, 2_000, -2_000]) {
      mysqlMs = () => clock.nowMs() + aheadMs;
      expect(await problem(), String(aheadMs)).to.equal(null);
    }
    expect(watch.problem).to.equal(null);
    mysqlMs = () => clock.nowMs() + 2_001;
    expect(await problem()).to.match(/^the clock of MySQL is 2001 ms ahead of/);
    expect(watch.problem).to.match(/clock of MySQL/);
    expect(seen).to.deep.equal({ mysql: 2_001, redis: 0 });
  });

  it('compares every Redis server and skips a server that does not answer [D10]', async () => {
    redis = [async () => clock.nowMs(), () => Promise.reject(new Error('gone')), async () => clock.nowMs() - 5_000];
    expect(await problem()).to.match(/^the clock of Redis is 5000 ms behind/);
    redis.pop();
    expect(await problem()).to.equal(null);
  });

  it('reports no difference if a correct clock answers slowly', async () => {
    mysqlMs = () => {
      clock.advance(10_000); // on the way to the server
      const nowMs = clock.nowMs();
      clock.advance(10_000); // on the way back
      return nowMs;
    };
    expect(await problem()).to.equal(null);
  });

  it('shares one read between concurrent callers', async () => {
    await Promise.all([watch.agree(), watch.agree(), watch.agree()]);
    expect(reads).to.equal(1);
    clock.advance(250);
    await watch.agree();
    expect(reads).to.equal(2);
  });

  it('reports an unknown result if MySQL does not answer [D1]', async () => {
    mysqlMs = () => {
      throw new OperationalError('mysql', 'gone', { retryable: true });
    };
    expect(await problem()).to.equal('gone');
  });
});
