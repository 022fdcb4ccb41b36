import { expect } from 'chai';
import { openStack } from '../../deploy/local/stack/stack.js';
import { until } from '../chaos/harness/wait.js';

describe('RocketMQ admin tool of the stack', () => {
  const stack = openStack({ dir: process.env.SECKILL_TEST_STACK });

  it('exits with 1 if a command fails, although the tool itself exits with 0', async () => {
    // a busy broker may make the tool fail
    await until('it answers', async () => {
      const { stdout, exitCode } = await stack.mqadmin(['help', 'consumerProgress']);
      return exitCode === 0 && stdout.includes('--groupName');
    });
    for (const args of [['topicStatus', '-t', 'no-such-topic'], ['noSuchCommand']]) {
      expect((await stack.mqadmin(args)).exitCode, args.join(' ')).to.equal(1);
    }
  });
});
