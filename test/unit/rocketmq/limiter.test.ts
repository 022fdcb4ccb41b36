import { expect } from 'chai';
import { KeyedLimiter } from '../../../src/rocketmq/limiter.js';

/** Jobs that end when told. */
function manualJobs() {
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const job = (name: string) => async (): Promise<string> => {
    started.push(name);
    await new Promise<void>((end) => ends.set(name, end));
    return name;
  };
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { started, job, end };
}

describe('KeyedLimiter (M12: a burst of check-backs)', () => {
  it('runs so many at once and the rest in order', async () => {
    const limiter = new KeyedLimiter(2, 10);
    const { started, job, end } = manualJobs();
    const results = ['a', 'b', 'c', 'd'].map((name) => limiter.run(name, job(name)));
    expect(started).to.deep.equal(['a', 'b']);
    await end('b');
    expect(started).to.deep.equal(['a', 'b', 'c']);
    await end('a');
    await end('c');
    await end('d');
    expect(await Promise.all(results)).to.deep.equal(['a', 'b', 'c', 'd']);
  });

  it('does not take a key twice while it waits or runs, and takes it again afterwards', async () => {
    const limiter = new KeyedLimiter(1, 10);
    const { job, end } = manualJobs();
    const first = limiter.run('a', job('a'));
    expect(await limiter.run('a', job('a'))).to.equal('skipped');
    await end('a');
    await first;
    const again = limiter.run('a', job('a'));
    await end('a');
    expect(await again).to.equal('a');
  });

  it('skips what its queue cannot hold', async () => {
    const limiter = new KeyedLimiter(1, 1);
    const { started, job, end } = manualJobs();
    const running = limiter.run('a', job('a'));
    const waiting = limiter.run('b', job('b'));
    expect(await limiter.run('c', job('c'))).to.equal('skipped');
    await end('a');
    await end('b');
    await Promise.all([running, waiting]);
    expect(started).to.deep.equal(['a', 'b']);
  });

  it('a job that fails gives its place back', async () => {
    const limiter = new KeyedLimiter(1, 1);
    const failing = limiter.run('a', async () => {
      throw new Error('redis is down');
    });
    const next = limiter.run('b', async () => 'b');
    const [outcome] = await Promise.allSettled([failing]);
    expect(outcome?.status).to.equal('rejected');
    expect(await next).to.equal('b');
    expect(await limiter.run('c', async () => 'c')).to.equal('c');
  });
});
