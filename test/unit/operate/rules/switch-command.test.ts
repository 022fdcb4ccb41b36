import { expect } from 'chai';
import sinon from 'sinon';
import { CliError } from '../../../../src/process/cli-error.js';
import { setSwitch, showSwitches, switchCommand } from '../../../../src/operate/rules/commands.js';
import type { Found } from '../../../../src/operate/rules/where-in-force.js';
import { SwitchAdmin } from '../../../../src/operate/rules/switches.js';
import { RuleAdmin } from '../../../../src/operate/rules/rule-admin.js';
import { silentLog } from '../../../helpers/silent-log.js';
import { MemoryRuleBroadcast, MemoryRuleRepository } from '../../../helpers/memory/memory-rule-repository.js';
import { partial } from '../../../helpers/partial.js';

describe('seckill switch', () => {
  let lines: string[];
  let repository: MemoryRuleRepository;
  let broadcast: MemoryRuleBroadcast;
  let rules: RuleAdmin;
  let admin: SwitchAdmin;
  beforeEach(() => {
    lines = [];
    sinon.stub(console, 'log').callsFake((line: string) => void lines.push(line));
    [repository, broadcast] = [new MemoryRuleRepository(), new MemoryRuleBroadcast()];
    rules = new RuleAdmin({ repository, broadcast, log: silentLog });
    admin = new SwitchAdmin(rules);
  });
  afterEach(() => sinon.restore());

  const everywhere = async (version: number): Promise<Found> => ({
    inForce: 'everywhere',
    version,
    apis: [{ processId: 'p', host: 'h', pid: 1, version, refused: null, canary: null, follows: true }],
  });
  const SALE = { endpoint: 'sale', level: 'L1', percent: 20 } as const;
  const json = (): unknown => JSON.parse(lines.at(-1) ?? '');

  it('prints the switch, the affected users and when it takes effect', async () => {
    await setSwitch(admin, SALE, {}, everywhere);
    expect(lines.splice(0)).to.deep.equal([
      'sale is at L1 for 20 of 100 users (version 1).',
      'Version 1 is in force in the only running api.',
    ]);
    await setSwitch(admin, SALE, {}, everywhere);
    expect(lines.splice(0)[0], 'again').to.equal('sale is already at L1 for 20 of 100 users (version 1).');
    expect(repository.audited.length).to.equal(1);
    await rules.publish({ degrade: { mode: 'dry_run' } }, 1, 'boss');
    await setSwitch(admin, SALE, {}, everywhere);
    expect(lines.shift()).to.contain('but has no effect');
  });

  it('prints the new setting and fails when an API does not follow', async () => {
    const unknown = async (version: number): Promise<Found> => ({ inForce: 'unknown', version, why: 'Redis is away' });
    const error = await setSwitch(admin, SALE, {}, unknown).catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(CliError).with.property('message').that.contains('Redis is away');
    expect(lines).to.deep.equal(['sale is at L1 for 20 of 100 users (version 1).']);
  });

  it('shows every switch, as text and as JSON', async () => {
    await setSwitch(admin, SALE, { json: true }, everywhere);
    expect(json()).to.deep.include({ outcome: 'switched', version: 1, seenAtOnce: true, inForce: true, ...SALE });
    expect(json()).to.have.nested.property('rules.inForce', 'everywhere');
    lines = [];
    await showSwitches(admin, {});
    expect(lines).to.have.length(5);
    expect(lines).to.include('sale       L1      20        yes');
    await showSwitches(admin, { json: true });
    expect(json()).to.include({ version: 1, mode: 'on' });
    expect(json()).to.have.property('switches').with.length(4);
  });

  it('explains in one sentence why no switch was set', async () => {
    const why = (work: Promise<void>): Promise<string> =>
      work.then(
        () => 'done',
        (error: unknown) => (error instanceof CliError ? error.message : 'no sentence'),
      );
    const busy = { set: () => Promise.resolve({ outcome: 'version_conflict' as const, version: 7 }) };
    expect(await why(setSwitch(partial(busy), SALE, {}, everywhere))).to.match(/nothing was switched/);
    await repository.store({ '\u001b[2Jtomorrow': {} }, 0, 'newer');
    for (const message of [await why(showSwitches(admin, {})), await why(setSwitch(admin, SALE, {}, everywhere))]) {
      expect(message)
        .to.match(/cannot read the newest rules/)
        .and.contain('tomorrow')
        .and.not.contain('\u001b');
    }
  });

  /** Returns the error of a wrong call that reaches no server. */
  async function usage(...words: string[]): Promise<string> {
    const command = switchCommand()
      .exitOverride()
      .configureOutput({ writeErr: () => undefined });
    return command.parseAsync(words, { from: 'user' }).then(
      () => 'done',
      (error: Error) => error.message,
    );
  }

  it('prints its usage when it is called wrongly', async () => {
    expect(await usage('sale')).to.match(/give a level for sale/);
    expect(await usage('admin', 'L1')).to.match(/^error: endpoint must be one of /);
    expect(await usage('sale', 'L9')).to.match(/^error: level must be one of /);
    expect(await usage('purchase', 'L1')).to.equal('error: level must be L0 or L4 for a purchase.');
    expect(await usage('sale', 'L1', '--percent', 'half')).to.equal('error: percent must be a number.');
    expect(await usage('--percent', '20')).to.match(/needs an endpoint/);
    expect(await usage('sale', 'L1', 'now')).to.match(/too many arguments/);
  });
});
