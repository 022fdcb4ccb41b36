import { expect } from 'chai';
import { KeyedLimiter, createChecker, type CheckedMessage } from '../../../src/rocketmq/checker.js';
import { silentLog } from '../../helpers/silent-log.js';
import type { CheckBack, CheckBackAnswer, OpenHalf } from '../../../src/core/ports/channels.js';
import { partial } from '../../helpers/partial.js';

const NO_ANSWER = 0;
const COMMIT = 1;
const ROLLBACK = 2;

function open(checkBack: CheckBack, checksInParallel = 2) {
  const counted: CheckBackAnswer[] = [];
  const metrics = { checkedBack: (answer: CheckBackAnswer): void => void counted.push(answer) };
  const checker = createChecker({ checkBack, checksInParallel, log: silentLog, metrics: partial(metrics) });
  const ask = (messageId: string): Promise<number> =>
    checker.check({
      messageId,
      keys: [messageId],
      body: Buffer.from(`body of ${messageId} ü`),
      properties: new Map([['signature', 's']]),
    } as CheckedMessage & never);
  return { ask, counted };
}

describe('checker: the answer to the broker', () => {
  for (const [answer, resolution] of [
    ['commit', COMMIT],
    ['rollback', ROLLBACK],
    ['no_answer', NO_ANSWER],
  ] as const) {
    it(`sends ${answer} to the broker in its own encoding, and counts it`, async () => {
      const halves: OpenHalf[] = [];
      const { ask, counted } = open(async (half) => (halves.push(half), answer));
      expect(await ask('m1')).to.equal(resolution);
      expect(counted).to.deep.equal([answer]);
      const properties = new Map([['signature', 's']]);
      expect(halves).to.deep.equal([{ messageId: 'm1', body: 'body of m1 ü', properties }]);
    });
  }

  it('treats a check-back that throws or rejects as no answer, never as a rollback [T10]', async () => {
    const rejecting = open(() => Promise.reject(new Error('redis is down')));
    expect(await rejecting.ask('m1')).to.equal(NO_ANSWER);
    const throwing = open(() => {
      throw new Error('a bug');
    });
    expect(await throwing.ask('m1')).to.equal(NO_ANSWER);
    expect(throwing.counted).to.deep.equal(['no_answer']);
  });

  it('runs few checks at once, and only one check of a message [M12]', async () => {
    let running = 0;
    let most = 0;
    const { ask } = open(async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return 'commit';
    }, 3);
    const names = Array.from({ length: 12 }, (_, index) => `m${index}`);
    const answers = await Promise.all([...names, 'm0'].map(ask));
    expect(most).to.equal(3);
    expect(answers).to.deep.equal([...names.map(() => COMMIT), NO_ANSWER]);
  });
});

/** Jobs that end at `end(name)`. */
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

describe('KeyedLimiter: a burst of check-backs [M12]', () => {
  it('runs a limited number at once, and the rest in order', async () => {
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

  it('refuses a key that waits or runs, and accepts it again afterwards', async () => {
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

  it('skips jobs that its queue cannot hold', async () => {
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

  it('frees the place of a failed job', async () => {
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
