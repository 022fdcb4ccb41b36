import { expect } from 'chai';
import { ALL_OFF, isAnyOn, parseRules } from '../../../src/admission/rules/rule-set.js';

const reasonsOf = (rules: unknown): string[] => {
  const parsed = parseRules(rules);
  return 'reasons' in parsed ? parsed.reasons.map(({ path, message }) => `${path}: ${message}`) : [];
};

describe('entry: the rule set', () => {
  it('no rules are good rules: everything is off', () => {
    expect(parseRules({})).to.deep.equal({ rules: ALL_OFF });
    for (const layer of Object.values(ALL_OFF)) expect(layer.mode).to.equal('off');
    expect(isAnyOn(ALL_OFF)).to.equal(false);
  });

  it('what is left out is filled in, and what was read can be read again', () => {
    const parsed = parseRules({ lists: { mode: 'dry_run', users: { deny: ['eve'] } } });
    const rules = 'rules' in parsed ? parsed.rules : null;
    expect(rules?.lists).to.deep.equal({
      mode: 'dry_run',
      addresses: { allow: [], deny: [] },
      agents: { allow: [], deny: [] },
      users: { allow: [], deny: ['eve'] },
    });
    expect(rules !== null && isAnyOn(rules)).to.equal(true);
    expect(parseRules(JSON.parse(JSON.stringify(rules)))).to.deep.equal({ rules });
  });

  it('says where each slip is', () => {
    const reasons = reasonsOf({
      lists: { mode: 'sometimes', addresses: { deny: ['10.0.0.0/8', '10.0.0.1/8'] }, users: { dney: [] } },
      limit: {},
    });
    expect(reasons.map((reason) => reason.split(':')[0])).to.have.members([
      ...['lists.mode', 'lists.addresses.deny.1', 'lists.users.dney', 'limit'],
    ]);
    expect(reasons.join()).to.contain('must be an IP address or a network such as 10.0.0.0/8');
  });

  it('breaker and degradation are rules like all others: validated with their reasons, and on by themselves', () => {
    const reasons = reasonsOf({
      breaker: { mode: 'on', weights: { rate: 0.9 } },
      degrade: { mode: 'on', switches: { purchase: { level: 'L1' } }, asked: { mysql: { order: 'L7' } } },
    });
    expect(reasons.map((reason) => reason.split(':')[0])).to.have.members([
      ...['breaker.weights.rate', 'degrade.switches.purchase.level', 'degrade.asked.mysql.order'],
    ]);
    for (const layer of ['breaker', 'degrade']) {
      const parsed = parseRules({ [layer]: { mode: 'on' } });
      expect('rules' in parsed && isAnyOn(parsed.rules), layer).to.equal(true);
    }
  });

  it('what is no object at all is refused, in a few words', () => {
    for (const rules of [null, 7, 'rules', [], undefined]) expect(reasonsOf(rules)).to.have.length(1);
    expect(reasonsOf(null)[0]).to.match(/^rules: /);
  });

  it('ten thousand slips are told as twenty, and a long name is cut', () => {
    expect(reasonsOf({ lists: { addresses: { deny: Array<string>(9000).fill('x') } } })).to.have.length(20);
    expect(reasonsOf({ ['x'.repeat(5000)]: 1 })[0]).to.have.length.below(100);
  });

  it('lists end somewhere', () => {
    const deny = Array.from({ length: 10_001 }, (_, i) => `u${i}`);
    expect(reasonsOf({ lists: { users: { deny } } })).to.have.length(1);
    expect(reasonsOf({ lists: { users: { deny: deny.slice(1) } } })).to.deep.equal([]);
    expect(reasonsOf({ lists: { agents: { deny: deny.slice(0, 101) } } })).to.have.length(1);
    expect(reasonsOf({ lists: { agents: { deny: [' '] } } })).to.have.length(1);
  });
});
