import { expect } from 'chai';
import { runCommand } from '../../../deploy/local/stack/run-command.js';
import { StackError } from '../../../deploy/local/stack/stack-error.js';

describe('commands that the launcher runs', () => {
  it('end at their time limit even when they ignore SIGTERM', async () => {
    const { exitCode } = await runCommand('sh', ['-c', 'trap "" TERM; while :; do sleep 0.1; done'], {
      timeoutMs: 300,
    });
    expect(exitCode).to.equal(null);
  });

  it('end when their signal is aborted', async () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new StackError('enough')), 100);
    const error = await runCommand('sleep', ['30'], { timeoutMs: 20_000, signal: controller.signal }).catch(
      (e: Error) => e,
    );
    expect(error).to.have.property('message', 'enough');
  });
});
