import { expect } from 'chai';
import sinon from 'sinon';
import { parseOptions, type BenchOptions } from '../../../bench/options.js';
import { dueRateOf } from '../../../bench/scenarios/context.js';

class Exit extends Error {
  readonly code: number;
  constructor(code: number) {
    super(`exit ${code}`);
    this.code = code;
  }
}

const parse = (...args: string[]): BenchOptions =>
  parseOptions(args, (code) => {
    throw new Exit(code);
  });

/** How a command line that ends here ends. */
function exitCodeOf(...args: string[]): number {
  sinon.stub(process.stderr, 'write').returns(true);
  sinon.stub(process.stdout, 'write').returns(true);
  try {
    parse(...args);
  } catch (error) {
    if (error instanceof Exit) return error.code;
    throw error;
  } finally {
    sinon.restore();
  }
  throw new Error('the command line was taken');
}

describe('bench options', () => {
  it('without arguments, then every scenario but memory, with its own length', () => {
    const options = parse();
    expect(options.scenarios).to.deep.equal(['win', 'no-group-commit', 'sold-out', 'flash', 'limits']);
    expect(options).to.include({
      seconds: null,
      warmUpSeconds: null,
      connections: 512,
      generator: 'best',
      json: false,
    });
  });

  it('named scenarios, then these, once each and in the order they run', () => {
    expect(parse('flash', 'win', 'flash', '--seconds', '10').scenarios).to.deep.equal(['win', 'flash']);
    expect(parse('win', '--seconds', '10').seconds).to.equal(10);
  });

  it('--memory, then that scenario alone, or with those that are named', () => {
    expect(parse('--memory').scenarios).to.deep.equal(['memory']);
    expect(parse('win', '--memory').scenarios).to.deep.equal(['win', 'memory']);
  });

  it('--in-flight, then a list of numbers', () => {
    expect(parse('--in-flight', '16,64').inFlight).to.deep.equal([16, 64]);
  });

  it('attack, layers, paired, consoles and buckets, then only when named', () => {
    expect(parse('attack', 'layers').scenarios).to.deep.equal(['attack', 'layers']);
    const options = parse('paired', '--against', '/elsewhere', '--pairs', '3');
    expect(options).to.include({ against: '/elsewhere', pairs: 3, admission: 'off' });
    expect(parse().against).to.equal(null);
    expect(parse('consoles', '--pairs', '2')).to.deep.include({ scenarios: ['consoles'], pairs: 2 });
    expect(parse('buckets', '--buckets', '4')).to.deep.include({ scenarios: ['buckets'], buckets: 4 });
    expect(parse().buckets).to.equal(8);
  });

  it('--rate, then for flash and attack; without it each has its own', () => {
    const dueOf = (...args: string[]): number[] => {
      const options = parse(...args);
      return [dueRateOf({ options }, 'flash'), dueRateOf({ options }, 'attack')];
    };
    expect(dueOf()).to.deep.equal([10_000, 2000]);
    expect(dueOf('--rate', '500')).to.deep.equal([500, 500]);
  });

  it('--admission on, then sold-out behind every layer', () => {
    expect(parse('sold-out', '--admission', 'on').admission).to.equal('on');
  });

  it('help, then exit 0', () => {
    expect(exitCodeOf('--help')).to.equal(0);
  });

  for (const args of [
    ['losing'],
    ['--seconds', '0'],
    ['--seconds', '1e3'],
    ['--seconds', '601'],
    ['--connections', 'many'],
    ['--in-flight', '16,,64'],
    ['--in-flight', '0'],
    ['--generator', 'ab'],
    ['--speed', '9'],
    ['paired'],
    ['--admission', 'maybe'],
    ['paired', '--against', '/elsewhere', '--pairs', '0'],
  ]) {
    it(`${args.join(' ')}, then exit 2`, () => {
      expect(exitCodeOf(...args)).to.equal(2);
    });
  }
});
