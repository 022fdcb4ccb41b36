import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { ServerMemory } from '../../../src/core/store-memory.js';
import { watchRedisMemory } from '../../../src/recovery/watch-redis-memory.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { noRecoveryMetrics } from '../../helpers/no-metrics.js';

const HOUR_MS = 3_600_000;

describe('keeper: watch-redis-memory', () => {
  let clock: ManualClock;
  let servers: (ServerMemory | OperationalError)[];
  let published: readonly (ServerMemory & { readonly daysLeft: number | null })[];
  let runOnce: () => Promise<unknown>;
  beforeEach(() => {
    clock = new ManualClock();
    servers = [{ server: 'a:1', usedBytes: 100, maxBytes: 1000 }];
    published = [];
    const metrics = { ...noRecoveryMetrics, redisMemory: (memory: typeof published) => void (published = memory) };
    ({ runOnce } = watchRedisMemory({ readMemory: async () => servers, clock, metrics }));
  });
  /** Lets hours pass in which the first server grows evenly. */
  const grow = async (hours: number, bytesPerHour: number): Promise<void> => {
    for (let quarter = 0; quarter < hours * 4; quarter++) {
      clock.advance(HOUR_MS / 4);
      const [first, ...others] = servers as [ServerMemory, ...ServerMemory[]];
      servers = [{ ...first, usedBytes: first.usedBytes + bytesPerHour / 4 }, ...others];
      await runOnce();
    }
  };

  it('publishes use and limit of each server, and the days left at a known rate', async () => {
    servers.push({ server: 'b:2', usedBytes: 7, maxBytes: 9 });
    await runOnce();
    expect(published).to.deep.equal(servers.map((memory) => ({ ...memory, daysLeft: null })));
    await grow(5, 10);
    expect(published[0]?.daysLeft).to.equal(null);
    await grow(1, 10);
    expect(published[0]?.daysLeft).to.be.closeTo((1000 - 160) / 240, 0.001);
    expect(published[1]?.daysLeft, 'it does not grow').to.equal(Infinity);
  });

  it('uses the growth of the last day, and reports infinite days if memory shrinks', async () => {
    await grow(12, 20);
    await grow(24, 2);
    expect(published[0]?.daysLeft).to.be.closeTo((1000 - 388) / 48, 0.3);
    await grow(25, -1);
    expect(published[0]?.daysLeft).to.equal(Infinity);
  });

  it('shows other servers and known growth if a server does not answer', async () => {
    await grow(7, 10);
    const [known] = servers;
    const noAnswer = new OperationalError('redis', 'no answer', { retryable: true });
    servers = [known as ServerMemory, noAnswer];
    expect(await runOnce().catch((error: unknown) => error)).to.equal(noAnswer);
    expect(published.map(({ server }) => server)).to.deep.equal(['a:1']);
    expect(published[0]?.daysLeft).to.be.a('number');
    servers = [noAnswer, { server: 'b:2', usedBytes: 7, maxBytes: 9 }];
    await runOnce().catch(() => undefined);
    servers = [known as ServerMemory];
    await runOnce();
    expect(published[0]?.daysLeft, 'its growth was not forgotten').to.be.a('number');
  });

  it('reports zero days left for a full server', async () => {
    await grow(8, 200);
    expect(published[0]?.daysLeft).to.equal(0);
  });
});
