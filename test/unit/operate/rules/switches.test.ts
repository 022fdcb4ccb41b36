import { expect } from 'chai';
import fc from 'fast-check';
import { LEVELS } from '../../../../src/admission/degrade/degrade.js';
import {
  readSwitchArguments,
  readSwitchChange,
  switchRows,
  withSwitch,
  type SwitchChange,
  SwitchAdmin,
} from '../../../../src/operate/rules/switches.js';
import { ENDPOINTS } from '../../../../src/admission/layer.js';
import { rulesOf } from '../../admission/degrade/degrade-world.js';
import { RuleAdmin } from '../../../../src/operate/rules/rule-admin.js';
import { silentLog } from '../../../helpers/silent-log.js';
import { MemoryRuleBroadcast, MemoryRuleRepository } from '../../../helpers/memory/memory-rule-repository.js';

describe('switches', () => {
  it('name the expected value of each field in whole sentences', () => {
    const sentences = (input: unknown): string[] => {
      const answer = readSwitchChange(input);
      return answer.read === 'change' ? [] : answer.errors.map(({ message }) => message);
    };
    expect(sentences({ endpoint: 'admin', level: 'L9', percent: -1 })).to.deep.equal([
      `endpoint must be one of ${ENDPOINTS.join(', ')}.`,
      `level must be one of ${LEVELS.join(', ')}.`,
      'percent must be at least 0.',
    ]);
    expect(sentences({ level: 'L1', percent: '5' })).to.deep.equal([
      `endpoint is missing: it must be one of ${ENDPOINTS.join(', ')}.`,
      'percent must be a number.',
    ]);
    expect(sentences(null)).to.deep.equal(['body must be an object.']);
  });

  it('read the same change from the arguments of the command line', () => {
    const change = { endpoint: 'order', level: 'L1', percent: 12.5 };
    expect(readSwitchArguments('order', 'L1', '12.5')).to.deep.equal({ read: 'change', change });
    expect(readSwitchArguments('order', 'L1')).to.deep.equal({ read: 'change', change: { ...change, percent: 100 } });
    for (const percent of ['', ' ', 'half', '101', '-1', 'NaN', 'Infinity']) {
      expect(readSwitchArguments('order', 'L1', percent).read, percent).to.equal('refused');
    }
  });

  it('set one switch and leave the other rules unchanged', () => {
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

  it('turn on a layer that is off, but never a layer in a dry run', () => {
    const modeAfter = (mode: 'off' | 'dry_run' | 'on', level: SwitchChange['level']): string =>
      withSwitch({ degrade: rulesOf({ mode }) }, { endpoint: 'sale', level, percent: 100 }).degrade.mode;
    expect(modeAfter('off', 'L1')).to.equal('on');
    expect(modeAfter('off', 'L0')).to.equal('off');
    expect(modeAfter('dry_run', 'L1')).to.equal('dry_run');
    expect(modeAfter('on', 'L0')).to.equal('on');
  });

  it('are reset when a new switch turns on a layer that was off', () => {
    const before = rulesOf({ mode: 'off', switches: { purchase: { level: 'L4', percent: 100 } } });
    const { switches } = withSwitch({ degrade: before }, { endpoint: 'sale', level: 'L1', percent: 100 }).degrade;
    expect([switches.purchase.level, switches.sale.level]).to.deep.equal(['L0', 'L1']);
  });

  it('show every endpoint and whether its switch is in force', () => {
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

const SALE_L1 = { endpoint: 'sale', level: 'L1', percent: 25 } as const;

/** Another admin publishes this many times between the read and the write of a switch. */
class BusyRepository extends MemoryRuleRepository {
  rivals = 0;

  override async store(...asked: Parameters<MemoryRuleRepository['store']>): ReturnType<MemoryRuleRepository['store']> {
    const [, version] = asked;
    if (this.rivals-- > 0) await super.store({ lists: { mode: 'dry_run' } }, version, 'rival');
    return super.store(...asked);
  }
}

describe('switch admin', () => {
  let repository: BusyRepository;
  let broadcast: MemoryRuleBroadcast;
  let rules: RuleAdmin;
  let admin: SwitchAdmin;
  beforeEach(() => {
    [repository, broadcast] = [new BusyRepository(), new MemoryRuleBroadcast()];
    rules = new RuleAdmin({ repository, broadcast, log: silentLog });
    admin = new SwitchAdmin(rules);
  });

  it('publishes a switch as a new version with no other change, audited with its actor', async () => {
    await rules.publish({ lists: { mode: 'on', users: { deny: ['eve'] } } }, 0, 'boss');
    expect(await admin.set(SALE_L1, 'ann')).to.deep.equal({
      outcome: 'switched',
      version: 2,
      seenAtOnce: true,
      unchanged: false,
      row: { ...SALE_L1, inForce: true },
    });
    expect(repository.audited.at(-1)).to.deep.include({ actor: 'ann', action: 'rules.published' });
    expect(repository.audited.at(-1)?.after).to.deep.equal({ version: 2, changed: ['degrade'] });
    expect(await repository.current())
      .to.have.nested.property('rules.lists.users.deny')
      .that.deep.equals(['eve']);
    expect(await broadcast.newerThan(1), 'notified at once').to.have.nested.property('stored.version', 2);
    const found = await admin.show();
    expect('switches' in found && found.switches[2]).to.deep.equal({ ...SALE_L1, inForce: true });
  });

  it('keeps the changes of a concurrent publication and sets the switch in them', async () => {
    repository.rivals = 3;
    const answer = await admin.set(SALE_L1, 'ann');
    expect(answer).to.include({ outcome: 'switched', version: 4 });
    expect(await repository.current()).to.have.nested.property('rules.lists.mode', 'dry_run');
    expect(await repository.current()).to.have.nested.property('rules.degrade.switches.sale.level', 'L1');
  });

  it('returns version_conflict and sets nothing after too many concurrent publications', async () => {
    repository.rivals = 100;
    expect(await admin.set(SALE_L1, 'ann')).to.deep.equal({ outcome: 'version_conflict', version: 5 });
    expect(await repository.current()).not.to.have.nested.property('rules.degrade');
  });

  it('does not overwrite rules that this program cannot read', async () => {
    await repository.store({ tomorrow: { mode: 'on' } }, 0, 'newer');
    expect(await admin.show()).to.deep.equal({
      outcome: 'rules_unfit',
      reasons: [{ path: 'tomorrow', message: 'is not a known field' }],
    });
    expect(await admin.set(SALE_L1, 'ann')).to.have.property('outcome', 'rules_unfit');
    expect(await repository.current()).to.include({ version: 1 });
  });

  it('sets a switch in a dry run and reports that it is not in force', async () => {
    await rules.publish({ degrade: { mode: 'dry_run' } }, 0, 'boss');
    expect(await admin.set(SALE_L1, 'ann')).to.have.nested.property('row.inForce', false);
  });
});
