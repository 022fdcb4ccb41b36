import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import { ClockWatch } from '../../../src/orders/clock-watch.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';

describe('keeper: the clocks of the servers', () => {
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
      metrics: { clockAhead: (server, aheadMs) => void (seen[server] = aheadMs) },
    });
  });
  const problem = async (): Promise<string | null> => {
    clock.advance(1_000);
    return watch.agree().then(
      () => null,
      (error: Error) => error.message,
    );
  };

  it('agree up to 2 s apart, and say which one differs beyond that [D10]', async () => {
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

  it('compare every Redis server; one without an answer says nothing [D10]', async () => {
    redis = [async () => clock.nowMs(), () => Promise.reject(new Error('gone')), async () => clock.nowMs() - 5_000];
    expect(await problem()).to.match(/^the clock of Redis is 5000 ms behind/);
    redis.pop();
    expect(await problem()).to.equal(null);
  });

  it('a slow answer of a right clock is no difference', async () => {
    mysqlMs = () => {
      clock.advance(10_000); // on the way there
      const nowMs = clock.nowMs();
      clock.advance(10_000); // and back
      return nowMs;
    };
    expect(await problem()).to.equal(null);
  });

  it('those who ask together share one read', async () => {
    await Promise.all([watch.agree(), watch.agree(), watch.agree()]);
    expect(reads).to.equal(1);
    clock.advance(250);
    await watch.agree();
    expect(reads).to.equal(2);
  });

  it('without an answer of MySQL nobody knows [D1]', async () => {
    mysqlMs = () => {
      throw new OperationalError('mysql', 'gone', { retryable: true });
    };
    expect(await problem()).to.equal('gone');
  });
});
