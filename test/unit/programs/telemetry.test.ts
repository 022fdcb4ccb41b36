import { expect } from 'chai';
import { loggedError } from '../../../src/programs/telemetry.js';

describe('an error in the log', () => {
  it('has its message and its stack, and not the command that an error of Redis carries: it may be a password', () => {
    const refused = Object.assign(new Error('WRONGPASS invalid username-password pair'), {
      command: { name: 'auth', args: ['seckill', 'a-secret'] },
    });
    const several = Object.assign(new AggregateError([refused], 'all failed'), { previousErrors: [refused] });
    expect(loggedError(refused)).to.include({ message: refused.message }).and.not.have.property('command');
    for (const error of [refused, several]) {
      const text = JSON.stringify(loggedError(error));
      expect(text).to.contain('WRONGPASS').and.not.contain('a-secret');
    }
  });
});
