import { Command } from 'commander';
import { createVerifier } from 'fast-jwt';
import { expect } from 'chai';
import { PassThrough } from 'node:stream';
import sinon from 'sinon';
import { UsageError } from '../../../src/process/cli-error.js';
import { ignoreClosedPipe, report, runCommandLine } from '../../../src/cli/run-command-line.js';

describe('command failure', () => {
  let printed: unknown[][];
  beforeEach(() => {
    printed = [];
    sinon.stub(console, 'error').callsFake((...parts: unknown[]) => void printed.push(parts));
  });
  afterEach(() => sinon.restore());

  const wrongKey = (): Error => {
    try {
      createVerifier({ key: 'x'.repeat(40), algorithms: ['RS256'] });
    } catch (error) {
      return error as Error;
    }
    throw new Error('a secret was taken for a public key');
  };

  for (const [name, make, words] of [
    ['RS256 with a secret', wrongKey, /public key in PEM/],
    ['a read-only folder', () => Object.assign(new Error('EROFS: read-only'), { code: 'EROFS', path: '/x' }), /\/x/],
    ['a wrong sentinel', () => new Error('All sentinels are unreachable'), /REDIS_URL/],
    ['an unknown host', () => Object.assign(new Error('getaddrinfo ENOTFOUND h'), { code: 'ENOTFOUND' }), /address/],
  ] as const) {
    it(`prints one sentence without a stack: ${name}`, () => {
      expect(report(make())).to.equal(1);
      expect(printed).to.have.length(1);
      expect(printed[0]).to.have.length(1);
      expect(printed[0]?.[0]).to.match(words).and.not.include('\n');
    });
  }

  it('exits with code 2 if an option is wrong', () => {
    expect(report(new UsageError('--title must have 1 to 200 characters.'))).to.equal(2);
  });

  it('reports a usage error and runs nothing if an argument is not UTF-8', async () => {
    const { exitCode } = process;
    const ran = sinon.fake();
    sinon.stub(process, 'argv').value(['node', 'seckill', 'go', Buffer.from('caf\u00e9', 'latin1').toString()]);
    await runCommandLine(new Command('seckill'), [new Command('go').argument('<name>').action(ran)]);
    expect([process.exitCode, ran.callCount]).to.deep.equal([2, 0]);
    process.exitCode = exitCode;
    expect(printed).to.deep.equal([['seckill: an argument is not valid UTF-8: check the argument and your locale.']]);
  });

  it('ignores a reader of stdout that leaves early, and reports any other error of stdout', () => {
    const output = new PassThrough();
    ignoreClosedPipe(output);
    output.emit('error', Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    const full = Object.assign(new Error('write ENOSPC'), { code: 'ENOSPC' });
    expect(() => output.emit('error', full)).to.throw(full.message);
  });

  it('keeps the stack of an unexpected error', () => {
    const error = new Error('x');
    expect(report(error)).to.equal(1);
    expect(printed[0]?.[0]).to.include(error.stack);
  });
});
