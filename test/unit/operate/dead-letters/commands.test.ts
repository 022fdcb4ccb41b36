import { expect } from 'chai';
import { Command } from 'commander';
import { addFilters, filterOf, parseDeadLetterIds } from '../../../../src/operate/dead-letters/commands.js';

describe('seckill dlq: filters', () => {
  const parse = (...args: string[]) => {
    const command = addFilters(new Command('x'))
      .exitOverride()
      .configureOutput({ writeErr: () => undefined });
    return command.parse(args, { from: 'user' }).opts<Parameters<typeof filterOf>[0]>();
  };

  it('match every dead letter without an option', () => {
    expect(filterOf(parse())).to.deep.equal({});
  });

  it('turn each option into a condition, including relative times', () => {
    const flags = parse(
      '--group',
      'seckill-order-writer',
      '--sale',
      '7',
      '--key',
      'k-1',
      '--reason',
      'undecodable',
      '--since',
      '-2h',
      '--until',
      '2030-01-31T20:00:00Z',
      '--limit',
      '9',
    );
    const { sinceMs = 0, ...filter } = filterOf(flags);
    expect(filter).to.deep.equal({
      group: 'seckill-order-writer',
      saleId: '7',
      key: 'k-1',
      reason: 'undecodable',
      untilMs: Date.UTC(2030, 0, 31, 20),
    });
    expect(sinceMs).to.be.closeTo(Date.now() - 7_200_000, 5000);
    expect(flags.limit).to.equal(9);
  });

  it('refuse a wrong group, sale, key, reason, time or count', () => {
    for (const [flag, value] of [
      ['--group', 'nobody'],
      ['--sale', 'x'],
      ['--key', 'a"b'],
      ['--reason', 'bad'],
      ['--since', 'yesterday'],
      ['--limit', '0'],
    ] as const) {
      expect(() => parse(flag, value), `${flag} ${value}`).to.throw(/invalid/);
    }
  });

  it('accept dead letters by number', () => {
    expect(parseDeadLetterIds('18', ['17'])).to.deep.equal(['17', '18']);
    for (const wrong of ['0', '-1', '1.5', 'x', '', '1'.repeat(19)]) expect(() => parseDeadLetterIds(wrong)).to.throw();
  });
});
