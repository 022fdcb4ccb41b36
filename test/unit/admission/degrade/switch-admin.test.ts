import { expect } from 'chai';
import { SwitchAdmin } from '../../../../src/admission/degrade/switches.js';
import { RuleAdmin } from '../../../../src/admission/rules/rule-admin.js';
import { silentLog } from '../../../../src/core/ports/log.js';
import { MemoryRuleBroadcast, MemoryRuleRepository } from '../../../helpers/memory/memory-rule-repository.js';

const SALE_L1 = { endpoint: 'sale', level: 'L1', percent: 25 } as const;

/** Between the look and the publishing of a switch somebody else is faster, so many times. */
class BusyRepository extends MemoryRuleRepository {
  rivals = 0;

  override async store(...asked: Parameters<MemoryRuleRepository['store']>): ReturnType<MemoryRuleRepository['store']> {
    const [, version] = asked;
    if (this.rivals-- > 0) await super.store({ lists: { mode: 'dry_run' } }, version, 'rival');
    return super.store(...asked);
  }
}

describe('entry/degrade: the desk of the switches', () => {
  let repository: BusyRepository;
  let broadcast: MemoryRuleBroadcast;
  let rules: RuleAdmin;
  let admin: SwitchAdmin;
  beforeEach(() => {
    [repository, broadcast] = [new BusyRepository(), new MemoryRuleBroadcast()];
    rules = new RuleAdmin({ repository, broadcast, log: silentLog });
    admin = new SwitchAdmin(rules);
  });

  it('where nobody has published rules all stand at the full answer, and none is in force', async () => {
    const found = await admin.show();
    expect(found).to.deep.include({ outcome: 'found', version: 0, mode: 'off' });
    expect(
      'switches' in found && found.switches.map(({ endpoint, level, inForce }) => [endpoint, level, inForce]),
    ).to.deep.equal(['purchase', 'status', 'sale', 'order'].map((endpoint) => [endpoint, 'L0', false]));
  });

  it('a switch is a new version of the rules with nothing else changed, audited under the name of who set it', async () => {
    await rules.publish({ lists: { mode: 'on', users: { deny: ['eve'] } } }, 0, 'boss');
    expect(await admin.set(SALE_L1, 'ann')).to.deep.equal({
      ...{ outcome: 'switched', version: 2, seenAtOnce: true },
      row: { ...SALE_L1, inForce: true },
    });
    expect(repository.audited.at(-1)).to.deep.include({ actor: 'ann', action: 'rules.published' });
    expect(repository.audited.at(-1)?.after).to.deep.equal({ version: 2, changed: ['degrade'] });
    expect(await repository.current())
      .to.have.nested.property('rules.lists.users.deny')
      .that.deep.equals(['eve']);
    expect(await broadcast.newerThan(1), 'told at once').to.have.nested.property('stored.version', 2);
    const found = await admin.show();
    expect('switches' in found && found.switches[2]).to.deep.equal({ ...SALE_L1, inForce: true });
  });

  it('who is overtaken sets it in the newer rules, and nothing of those is lost', async () => {
    repository.rivals = 3;
    const answer = await admin.set(SALE_L1, 'ann');
    expect(answer).to.include({ outcome: 'switched', version: 4 });
    expect(await repository.current()).to.have.nested.property('rules.lists.mode', 'dry_run');
    expect(await repository.current()).to.have.nested.property('rules.degrade.switches.sale.level', 'L1');
  });

  it('who is overtaken again and again is told so, and nothing was switched', async () => {
    repository.rivals = 100;
    expect(await admin.set(SALE_L1, 'ann')).to.deep.equal({ outcome: 'version_conflict', version: 5 });
    expect(await repository.current()).not.to.have.nested.property('rules.degrade');
  });

  it('rules that this program cannot read are not overwritten', async () => {
    await repository.store({ tomorrow: { mode: 'on' } }, 0, 'newer');
    expect(await admin.show()).to.deep.equal({
      outcome: 'rules_unfit',
      reasons: [{ path: 'tomorrow', message: 'is not known here' }],
    });
    expect(await admin.set(SALE_L1, 'ann')).to.have.property('outcome', 'rules_unfit');
    expect(await repository.current()).to.include({ version: 1 });
  });

  it('Redis is away: it is stored all the same, and the answer says it takes longer', async () => {
    broadcast.down = true;
    expect(await admin.set(SALE_L1, 'ann')).to.include({ outcome: 'switched', seenAtOnce: false });
  });

  it('in a dry run it is set, and not in force', async () => {
    await rules.publish({ degrade: { mode: 'dry_run' } }, 0, 'boss');
    expect(await admin.set(SALE_L1, 'ann')).to.have.nested.property('row.inForce', false);
  });
});
