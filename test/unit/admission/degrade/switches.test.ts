import { expect } from 'chai';
import fc from 'fast-check';
import { LEVELS } from '../../../../src/admission/degrade/degrade.js';
import {
  readSwitchArguments,
  readSwitchChange,
  switchRows,
  withSwitch,
  type SwitchChange,
} from '../../../../src/admission/degrade/switches.js';
import { ENDPOINTS } from '../../../../src/admission/layer.js';
import { rulesOf } from './degrade-world.js';

const fieldsOf = (input: unknown): string[] | null => {
  const answer = readSwitchChange(input);
  return answer.read === 'change' ? null : answer.errors.map(({ field }) => field);
};

describe('entry/degrade: switches', () => {
  it('a change is read whole or refused field by field', () => {
    const change = { endpoint: 'sale', level: 'L2', percent: 25 };
    expect(readSwitchChange(change)).to.deep.equal({ read: 'change', change });
    expect(readSwitchChange({ endpoint: 'sale', level: 'L2' })).to.deep.equal({
      ...{ read: 'change', change: { ...change, percent: 100 } },
    });
    expect(fieldsOf({ endpoint: 'admin', level: 'L9', percent: -1 })).to.deep.equal(['endpoint', 'level', 'percent']);
    expect(fieldsOf({ endpoint: 'sale', level: 'L1', percent: '5' })).to.deep.equal(['percent']);
    expect(fieldsOf({ ...change, until: 'noon' })).to.have.length(1);
    expect(fieldsOf(null)).to.have.length(1);
    for (const level of LEVELS) {
      const isKnown = level === 'L0' || level === 'L4';
      expect(fieldsOf({ endpoint: 'purchase', level })).to.deep.equal(isKnown ? null : ['level']);
    }
  });

  it('the words of a command line are the same change', () => {
    const change = { endpoint: 'order', level: 'L1', percent: 12.5 };
    expect(readSwitchArguments('order', 'L1', '12.5')).to.deep.equal({ read: 'change', change });
    expect(readSwitchArguments('order', 'L1')).to.deep.equal({ read: 'change', change: { ...change, percent: 100 } });
    for (const percent of ['', ' ', 'half', '101', '-1', 'NaN', 'Infinity']) {
      expect(readSwitchArguments('order', 'L1', percent).read, percent).to.equal('refused');
    }
  });

  it('sets one switch, and leaves the rest of the rule set as it was', () => {
    const changes = fc.record({
      endpoint: fc.constantFrom(...ENDPOINTS),
      level: fc.constantFrom(...LEVELS),
      percent: fc.integer({ min: 0, max: 100 }),
    });
    fc.assert(
      fc.property(fc.array(changes, { maxLength: 12 }), (all) => {
        const known = all.filter((change) => readSwitchChange(change).read === 'change') as SwitchChange[];
        const limits = { mode: 'dry_run' as const };
        const first = { limits, degrade: rulesOf({ asked: { mysql: { order: 'L3' } }, cache: { ttlMs: 10_000 } }) };
        const before = structuredClone(first);
        const last = known.reduce(withSwitch, first);
        expect(first, 'the old rule set is untouched').to.deep.equal(before);
        expect(last.limits).to.equal(limits);
        expect({ ...last.degrade, switches: null }).to.deep.equal({ ...first.degrade, switches: null });
        for (const endpoint of ENDPOINTS) {
          const set = known.findLast((change) => change.endpoint === endpoint);
          const { level, percent } = set ?? { level: 'L0', percent: 100 };
          expect(last.degrade.switches[endpoint]).to.deep.equal({ level, percent });
        }
      }),
    );
  });

  it('a switch puts a layer that is off in force, never one in a dry run, and level 0 changes no mode', () => {
    const modeAfter = (mode: 'off' | 'dry_run' | 'on', level: SwitchChange['level']): string =>
      withSwitch({ degrade: rulesOf({ mode }) }, { endpoint: 'sale', level, percent: 100 }).degrade.mode;
    expect(modeAfter('off', 'L1')).to.equal('on');
    expect(modeAfter('off', 'L0')).to.equal('off');
    expect(modeAfter('dry_run', 'L1')).to.equal('dry_run');
    expect(modeAfter('on', 'L0')).to.equal('on');
  });

  it('what was set before the layer went off does not come back with another switch', () => {
    const before = rulesOf({ mode: 'off', switches: { purchase: { level: 'L4', percent: 100 } } });
    const { switches } = withSwitch({ degrade: before }, { endpoint: 'sale', level: 'L1', percent: 100 }).degrade;
    expect([switches.purchase.level, switches.sale.level]).to.deep.equal(['L0', 'L1']);
  });

  it('the rows show every endpoint, and whether it is in force', () => {
    const rules = rulesOf({ switches: { purchase: { level: 'L4', percent: 10 } } });
    expect(switchRows(rules)).to.deep.equal([
      { endpoint: 'purchase', level: 'L4', percent: 10, inForce: true },
      { endpoint: 'status', level: 'L0', percent: 100, inForce: true },
      { endpoint: 'sale', level: 'L0', percent: 100, inForce: true },
      { endpoint: 'order', level: 'L0', percent: 100, inForce: true },
    ]);
    for (const mode of ['off', 'dry_run'] as const) {
      expect(switchRows({ ...rules, mode }).map(({ inForce }) => inForce)).to.deep.equal(ENDPOINTS.map(() => false));
    }
  });
});
