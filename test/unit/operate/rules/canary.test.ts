import { expect } from 'chai';
import { Admission } from '../../../../src/admission/admission.js';
import { Lists } from '../../../../src/admission/lists/lists.js';
import { canaryTerms, judges } from '../../../../src/admission/rules/canary.js';
import { CurrentRules } from '../../../../src/admission/rules/current-rules.js';
import type { CanaryCounts } from '../../../../src/core/ports/rules.js';
import { endCanary } from '../../../../src/operate/rules/canary.js';
import { diffRules } from '../../../../src/operate/rules/diff-rules.js';
import { RuleAdmin, type NewestRules } from '../../../../src/operate/rules/rule-admin.js';
import { SwitchAdmin } from '../../../../src/operate/rules/switches.js';
import {
  MemoryRuleBroadcast,
  MemoryRuleReports,
  MemoryRuleRepository,
} from '../../../helpers/memory/memory-rule-repository.js';
import { SteppedClock } from '../../../helpers/memory/stepped-clock.js';
import { noAdmissionMetrics } from '../../../helpers/no-metrics.js';
import { silentLog } from '../../../helpers/silent-log.js';

const TERMS = canaryTerms.parse({ percent: 50, minutes: 10 });
const denying = (...deny: string[]) => ({ lists: { mode: 'on', users: { deny } } });
const GOOD: CanaryCounts = { since: 2, others: { accepted: 900, refused: 0 }, tried: { accepted: 300, refused: 0 } };

describe('a canary of rules', () => {
  const users = Array.from({ length: 400 }, (_, index) => `u${index}`);
  let clock: SteppedClock;
  let repository: MemoryRuleRepository;
  let broadcast: MemoryRuleBroadcast;
  let reports: MemoryRuleReports;
  let admin: RuleAdmin;
  let ageMs: number;
  beforeEach(async () => {
    [clock, repository, broadcast, ageMs] = [
      new SteppedClock(),
      new MemoryRuleRepository(),
      new MemoryRuleBroadcast(),
      0,
    ];
    reports = new MemoryRuleReports(clock);
    admin = new RuleAdmin({ repository, broadcast, log: silentLog });
    await admin.publish(denying('eve'), 0, 'ann');
  });

  const start = (rules: object = denying('eve', 'bob')) => admin.publish(rules, 1, 'ann', TERMS);
  const counted = (canary: CanaryCounts) =>
    reports.report({ processId: 'p', host: 'h', pid: 1, version: 2, refused: null, canary }, 60_000);
  const judge = () => endCanary({ admin, reports, ageMs: async () => ageMs, log: silentLog }).runOnce();
  const actions = () => repository.audited.map(({ actor, action }) => `${actor} ${action}`);
  const denied = async () =>
    ((await repository.current()).rules as { lists: { users: { deny: string[] } } }).lists.users.deny;

  const follow = async (): Promise<CurrentRules> => {
    const reporter = { processId: 'p', host: 'h', pid: 1 };
    const current = new CurrentRules({
      ...{ broadcast, repository, reports, reporter, clock, metrics: noAdmissionMetrics, log: silentLog },
    });
    await current.start();
    return current;
  };

  it('judges operators by the rules in force', async () => {
    const [operator = ''] = users.filter((userId) => judges({ ...TERMS, since: 3 }, userId));
    await admin.publish(denying(operator), 1, 'ann');
    await admin.publish({}, 2, 'ann', TERMS);
    const current = await follow();
    const admission = new Admission(current, [new Lists((userId) => current.of(userId).lists)], noAdmissionMetrics);
    expect(admission.buyer({ endpoint: 'purchase', address: '', agent: '' }, operator), 'as a buyer').to.equal(null);
    expect(admission.operator(operator)).to.include({ word: 'denied' });
  });

  it('judges its share of the users, counts their answers separately and reports them', async () => {
    const current = await follow();
    expect(current.of('bob')).to.equal(current.rules);
    await start();
    await current.runOnce();
    const tried = users.filter((userId) => current.of(userId) !== current.rules);
    expect(tried.length).to.be.within(150, 250);
    expect(current.of(tried[0] ?? '').lists.users.deny).to.deep.equal(['eve', 'bob']);
    expect(current.of(null), 'no user').to.equal(current.rules);
    expect(current.isAnyOn).to.equal(true);

    const admission = new Admission(current, [], noAdmissionMetrics);
    for (const userId of users) admission.answered(userId, tried.includes(userId) ? 'rate_limited' : 'sold_out');
    clock.advance(1000);
    await current.runOnce();
    await new Promise((resolve) => setImmediate(resolve));
    expect((await reports.live())[0]?.canary).to.deep.equal({
      since: 2,
      others: { accepted: 400 - tried.length, refused: 0 },
      tried: { accepted: 0, refused: tried.length },
    });
  });

  it('cannot be replaced by `set` until it is promoted or rolled back', async () => {
    expect(await start()).to.include({ outcome: 'published', version: 2 });
    expect(await admin.publish({}, 2, 'bob')).to.deep.equal({ outcome: 'canary_running' });
    expect(await admin.publish({}, 2, 'bob', TERMS)).to.deep.equal({ outcome: 'canary_running' });
    const newest = await admin.read();
    if ('outcome' in newest) throw new Error('unreadable');
    expect(await admin.endCanary(newest, 'promoted', 'ann')).to.include({ outcome: 'published', version: 3 });
    expect(await admin.endCanary(newest, 'rolled_back', 'bob'), 'too late').to.include({ outcome: 'version_conflict' });
    expect(await denied()).to.deep.equal(['eve', 'bob']);
    expect(await admin.publish({}, 3, 'bob')).to.include({ outcome: 'published', version: 4 });
    expect(actions()).to.deep.equal([
      ...['ann rules.published', 'ann rules.canary_started', 'ann rules.canary_promoted', 'bob rules.published'],
    ]);
  });

  it('is refused if a share of users cannot try a change', async () => {
    const answer = await start({ ...denying('eve'), breaker: { mode: 'on' } });
    expect(answer).to.deep.equal({
      outcome: 'invalid',
      reasons: [{ path: 'breaker', message: 'cannot be tried on a share of users: change it without a canary' }],
    });
  });

  it('continues through a switch, which applies to its users too', async () => {
    await start();
    await new SwitchAdmin(admin).set({ endpoint: 'purchase', level: 'L4', percent: 100 }, 'ann');
    const newest = await admin.read();
    if ('outcome' in newest || newest.canary === null) throw new Error('no canary');
    expect([newest.version, newest.canary.since]).to.deep.equal([3, 2]);
    for (const { degrade } of [newest.rules, newest.canary.rules]) {
      expect([degrade.mode, degrade.switches.purchase.level]).to.deep.equal(['on', 'L4']);
    }
  });

  it('is promoted by a keeper when its time is over', async () => {
    await start();
    await counted(GOOD);
    await judge();
    expect((await repository.current()).version, 'before its time').to.equal(2);
    ageMs = 600_000;
    await Promise.all([judge(), judge()]); // two keepers
    expect(await denied()).to.deep.equal(['eve', 'bob']);
    expect(actions().slice(2)).to.deep.equal(['keeper rules.canary_promoted']);
    const { tried, others } = GOOD;
    expect(repository.audited.at(-1)?.after).to.deep.include({ version: 3, since: 2, why: 'passed', tried, others });
  });

  it('is not judged until every api has had time to report again after Redis lost reports', async () => {
    await start();
    ageMs = 600_000;
    await judge();
    expect((await repository.current()).version, 'no report').to.equal(2);
    await counted(GOOD);
    await reports.report({ processId: 'q', host: 'h', pid: 2, version: 1, refused: null, canary: null }, 60_000);
    await judge();
    expect((await repository.current()).version, 'an api has not read the canary').to.equal(2);
    ageMs = 630_000;
    await judge();
    expect(actions().at(-1)).to.equal('keeper rules.canary_promoted');
  });

  it('leaves a version that can be published again', async () => {
    await start();
    const stored = await admin.find(2);
    await admin.endCanary((await admin.read()) as NewestRules, 'rolled_back', 'ann');
    expect(await admin.publish(stored?.rules, 3, 'ann')).to.include({ outcome: 'published' });
    expect(await denied()).to.deep.equal(['eve']);
  });

  it('is rolled back by a keeper when it refuses too much, whatever earlier canaries refused', async () => {
    await start();
    const bad = { ...GOOD, tried: { accepted: 210, refused: 90 } };
    await counted({ ...bad, since: 1 });
    await judge();
    expect((await repository.current()).version).to.equal(2);
    await counted(bad);
    await judge();
    expect(await denied()).to.deep.equal(['eve']);
    expect(actions().at(-1)).to.equal('keeper rules.canary_rolled_back');
    expect((await repository.current()).canary).to.equal(null);
  });
});

describe('the difference of rules', () => {
  it('names each value that differs, and the entries of a list', () => {
    const before = { lists: { users: { deny: ['eve', 'bob'] } }, limits: { purchase: { user: { limit: 10 } } } };
    const after = { lists: { users: { deny: ['eve', 'zoe'] } }, limits: { purchase: { user: { limit: 5 } } } };
    expect(diffRules(before, before)).to.deep.equal([]);
    expect(diffRules(before, after)).to.deep.equal([
      'lists.users.deny: without ["bob"], with ["zoe"]',
      'limits.purchase.user.limit: 10 -> 5',
    ]);
    expect(diffRules({ limits: { leaky: null } }, { limits: { leaky: { ratePerSecond: 1 } } })).to.deep.equal([
      'limits.leaky: null -> {"ratePerSecond":1}',
    ]);
  });
});
