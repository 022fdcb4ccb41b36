import { expect } from 'chai';
import { Command } from 'commander';
import {
  addFilters,
  filterOf,
  operatorName,
  parseDeadLetterIds,
  type FilterFlags,
} from '../../../src/cli/dlq-options.js';
import { parseTime } from '../../../src/cli/options.js';

describe('dlq options', () => {
  const parse = (...args: string[]): FilterFlags => {
    const command = addFilters(new Command('x'))
      .exitOverride()
      .configureOutput({ writeErr: () => undefined });
    return command.parse(args, { from: 'user' }).opts<FilterFlags>();
  };

  it('no filter lets every letter through', () => {
    expect(filterOf(parse())).to.deep.equal({});
  });

  it('every filter is read, a time before now too', () => {
    const flags = parse(
      ...['--group', 'seckill-order-writer', '--sale', '7', '--key', 'k-1', '--reason', 'undecodable'],
      ...['--since', '-2h', '--until', '2030-01-31T20:00:00Z', '--limit', '9'],
    );
    const { sinceMs = 0, ...filter } = filterOf(flags);
    expect(filter).to.deep.equal({
      ...{ group: 'seckill-order-writer', saleId: '7', key: 'k-1', reason: 'undecodable' },
      untilMs: Date.UTC(2030, 0, 31, 20),
    });
    expect(sinceMs).to.be.closeTo(Date.now() - 7_200_000, 5000);
    expect(flags.limit).to.equal(9);
  });

  it('what is no group, sale, key, reason, time or count is refused', () => {
    for (const [flag, value] of [
      ...[['--group', 'nobody'] as const, ['--sale', 'x'] as const, ['--key', 'a"b'] as const],
      ...[['--reason', 'bad'] as const, ['--since', 'yesterday'] as const, ['--limit', '0'] as const],
    ]) {
      expect(() => parse(flag, value), `${flag} ${value}`).to.throw(/invalid/);
    }
  });

  it('letters are numbers', () => {
    expect(parseDeadLetterIds('18', ['17'])).to.deep.equal(['17', '18']);
    for (const wrong of ['0', '-1', '1.5', 'x', '', '1'.repeat(19)]) expect(() => parseDeadLetterIds(wrong)).to.throw();
  });

  it('times go both ways from now', () => {
    expect(parseTime('-1d')).to.be.closeTo(Date.now() - 86_400_000, 5000);
    expect(parseTime('+10m')).to.be.closeTo(Date.now() + 600_000, 5000);
    expect(() => parseTime('2h')).to.throw();
  });

  it('the operator has a name', () => {
    expect(operatorName()).to.have.length.above(0);
  });
});
