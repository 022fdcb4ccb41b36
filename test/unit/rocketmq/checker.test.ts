import { expect } from 'chai';
import { silentLog } from '../../../src/core/ports/log.js';
import type { CheckBack, CheckBackAnswer } from '../../../src/core/ports/channels.js';
import { createChecker, type CheckedMessage } from '../../../src/rocketmq/checker.js';

const NO_ANSWER = 0;
const COMMIT = 1;
const ROLLBACK = 2;

function open(checkBack: CheckBack, checksInParallel = 2) {
  const counted: CheckBackAnswer[] = [];
  const metrics = { checkedBack: (answer: CheckBackAnswer): void => void counted.push(answer) };
  const checker = createChecker({ checkBack, checksInParallel, log: silentLog, metrics });
  const ask = (messageId: string): Promise<number> =>
    checker.check({ messageId, keys: [messageId], body: Buffer.from(`body of ${messageId} ü`) } as CheckedMessage &
      never);
  return { ask, counted };
}

describe('checker: the answer to the broker', () => {
  for (const [answer, resolution] of [
    ['commit', COMMIT],
    ['rollback', ROLLBACK],
    ['no_answer', NO_ANSWER],
  ] as const) {
    it(`${answer} reaches the broker as its word and is counted`, async () => {
      const bodies: string[] = [];
      const { ask, counted } = open(async (body) => (bodies.push(body), answer));
      expect(await ask('m1')).to.equal(resolution);
      expect(counted).to.deep.equal([answer]);
      expect(bodies).to.deep.equal(['body of m1 ü']);
    });
  }

  it('a check-back that throws or rejects is no answer, never a rollback [T10]', async () => {
    const rejecting = open(() => Promise.reject(new Error('redis is down')));
    expect(await rejecting.ask('m1')).to.equal(NO_ANSWER);
    const throwing = open(() => {
      throw new Error('a bug');
    });
    expect(await throwing.ask('m1')).to.equal(NO_ANSWER);
    expect(throwing.counted).to.deep.equal(['no_answer']);
  });

  it('a burst runs so many at once; a message asked again meanwhile is no answer [M12]', async () => {
    let running = 0;
    let most = 0;
    const { ask } = open(async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running -= 1;
      return 'commit';
    }, 3);
    const names = Array.from({ length: 12 }, (_, index) => `m${index}`);
    const answers = await Promise.all([...names, 'm0'].map(ask));
    expect(most).to.equal(3);
    expect(answers).to.deep.equal([...names.map(() => COMMIT), NO_ANSWER]);
  });
});
