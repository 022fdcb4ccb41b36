import { expect } from 'chai';
import {
  DEFAULT_RULES,
  isAnyOn,
  parseRules,
  missingSecrets,
  type KnownKeys,
  type RuleSet,
} from '../../../src/admission/rules/rule-set.js';
import { RuleAdmin } from '../../../src/operate/rules/rule-admin.js';
import { CurrentRules } from '../../../src/admission/rules/current-rules.js';
import { silentLog } from '../../helpers/silent-log.js';
import {
  MemoryRuleBroadcast,
  MemoryRuleReports,
  MemoryRuleRepository,
} from '../../helpers/memory/memory-rule-repository.js';
import { SteppedClock } from '../../helpers/memory/stepped-clock.js';
import { noAdmissionMetrics } from '../../helpers/no-metrics.js';

const reasonsOf = (rules: unknown): string[] => {
  const parsed = parseRules(rules);
  return 'reasons' in parsed ? parsed.reasons.map(({ path, message }) => `${path}: ${message}`) : [];
};

describe('rule set', () => {
  it('turns everything off if there are no rules', () => {
    expect(parseRules({})).to.deep.equal({ rules: DEFAULT_RULES });
    for (const [name, { mode }] of Object.entries(DEFAULT_RULES))
      expect(mode, name).to.equal(name === 'orders' ? 'on' : 'off');
    expect(isAnyOn(DEFAULT_RULES)).to.equal(false);
  });

  it('fills in defaults, and can read its own result', () => {
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

  it('names the place of each mistake', () => {
    const reasons = reasonsOf({
      lists: { mode: 'sometimes', addresses: { deny: ['10.0.0.0/8', '10.0.0.1/8'] }, users: { dney: [] } },
      limit: {},
    });
    expect(reasons.map((reason) => reason.split(':')[0])).to.have.members([
      'lists.mode',
      'lists.addresses.deny.1',
      'lists.users.dney',
      'limit',
    ]);
    expect(reasons.join()).to.contain('must be an IP address or a network such as 10.0.0.0/8');
  });

  it("describes the expected value in our words, not in the library's", () => {
    const rules = {
      lists: { mode: 'sometimes', users: 7 },
      limits: 'all',
      breaker: { openAt: 9, weights: { rate: '1' } },
    };
    const texts = reasonsOf(rules);
    expect(texts).to.include('lists.mode: must be one of off, dry_run, on');
    expect(texts).to.include('lists.users: must be an object');
    for (const text of [...texts, ...reasonsOf(null)]) expect(text).to.match(/^[\w.]+: (is missing: it )?must /);
  });

  it('checks breaker and degradation like all other rules, and can enable each alone', () => {
    const reasons = reasonsOf({
      breaker: { mode: 'on', weights: { rate: 0.9 } },
      degrade: { mode: 'on', switches: { purchase: { level: 'L1' } }, asked: { mysql: { order: 'L7' } } },
    });
    expect(reasons.map((reason) => reason.split(':')[0])).to.have.members([
      'breaker.weights.rate',
      'degrade.switches.purchase.level',
      'degrade.asked.mysql.order',
    ]);
    for (const layer of ['breaker', 'degrade']) {
      const parsed = parseRules({ [layer]: { mode: 'on' } });
      expect('rules' in parsed && isAnyOn(parsed.rules), layer).to.equal(true);
    }
  });

  it('refuses a value that is not an object, in a few words', () => {
    for (const rules of [null, 7, 'rules', [], undefined]) expect(reasonsOf(rules)).to.have.length(1);
    expect(reasonsOf(null)[0]).to.match(/^rules: /);
  });

  it('names only twenty of ten thousand mistakes, and shortens a long name', () => {
    expect(reasonsOf({ lists: { addresses: { deny: Array<string>(9000).fill('x') } } })).to.have.length(20);
    expect(reasonsOf({ ['x'.repeat(5000)]: 1 })[0]).to.have.length.below(100);
  });

  it('limits the length of lists', () => {
    const deny = Array.from({ length: 10_001 }, (_, i) => `u${i}`);
    expect(reasonsOf({ lists: { users: { deny } } })).to.have.length(1);
    expect(reasonsOf({ lists: { users: { deny: deny.slice(1) } } })).to.deep.equal([]);
    expect(reasonsOf({ lists: { agents: { deny: deny.slice(0, 101) } } })).to.have.length(1);
    expect(reasonsOf({ lists: { agents: { deny: [' '] } } })).to.have.length(1);
  });
});

const keys = (sign: readonly string[], seal: number): KnownKeys => ({ sign: new Set(sign), seal: { size: seal } });
const rulesOf = (raw: object): RuleSet => (parseRules(raw) as { rules: RuleSet }).rules;
const pathsOf = (raw: object, known: KnownKeys): string[] =>
  missingSecrets(rulesOf(raw), known).map(({ path }) => path);

describe('stored rules', () => {
  const publish = async (rules: object): Promise<unknown> => {
    const [repository, broadcast] = [new MemoryRuleRepository(), new MemoryRuleBroadcast()];
    await new RuleAdmin({ repository, broadcast, log: silentLog }).publish(rules, 0, 'ann');
    const { orders } = (await repository.current()).rules as { readonly orders: object };
    const announced = await broadcast.newerThan(0);
    expect(announced.is === 'newer' && announced.stored.rules, 'announced').to.deep.include({ orders });
    return orders;
  };

  it('can be read by the previous release, which does not know `declines`', async () => {
    expect(await publish({})).to.not.have.property('declines');
    expect(await publish({ orders: { declines: { perOrder: 8 } } })).to.not.have.property('declines');
  });

  it('contain `declines` if an operator changed it', async () => {
    expect(await publish({ orders: { declines: { perOrder: 3 } } })).to.have.nested.property('declines.perOrder', 3);
  });
});

describe('rules that need secrets', () => {
  it('need no secret while their layer is off', () => {
    expect(pathsOf({ sign: { keys: ['app-1'] } }, keys([], 0))).to.deep.equal([]);
  });

  for (const mode of ['on', 'dry_run']) {
    it(`${mode}: need a secret for each named key, and a sealing key for tokens and queue`, () => {
      const rules = { sign: { mode, keys: ['app-1', 'app-2'], tokens: { mode } }, queue: { mode } };
      expect(pathsOf(rules, keys([], 0))).to.deep.equal([
        'sign.keys.0',
        'sign.keys.1',
        'sign.tokens.mode',
        'queue.mode',
      ]);
      expect(pathsOf(rules, keys(['app-1'], 1))).to.deep.equal(['sign.keys.1']);
      expect(pathsOf(rules, keys(['app-2', 'app-1', 'old'], 1))).to.deep.equal([]);
      expect(pathsOf({ queue: { mode } }, keys([], 0))).to.deep.equal(['queue.mode']);
      expect(pathsOf({ sign: { tokens: { mode } } }, keys([], 0))).to.deep.equal(['sign.tokens.mode']);
    });

    it(`${mode}: enable admission with purchase tokens alone`, () => {
      expect(isAnyOn(rulesOf({ sign: { tokens: { mode } } }))).to.equal(true);
      expect(isAnyOn(rulesOf({ queue: { mode } }))).to.equal(true);
      expect(isAnyOn(rulesOf({ sign: { mode, keys: ['app-1'] } }))).to.equal(true);
    });
  }

  it('refuse signatures if no key is named', () => {
    expect(parseRules({ sign: { mode: 'on' } })).to.deep.equal({
      reasons: [{ path: 'sign.keys', message: 'must name a key, or nobody can sign' }],
    });
  });

  describe('in a process without the secret', () => {
    const named = (...keyIds: string[]): object => ({ sign: { mode: 'on', keys: keyIds } });
    const unfit = (rules: RuleSet) => missingSecrets(rules, keys(['app-1'], 1));
    let repository: MemoryRuleRepository;
    let broadcast: MemoryRuleBroadcast;
    beforeEach(() => void ([repository, broadcast] = [new MemoryRuleRepository(), new MemoryRuleBroadcast()]));

    it('are not published, and a check names the reason', async () => {
      const admin = new RuleAdmin({ repository, broadcast, log: silentLog, unfit });
      expect(await admin.publish(named('app-1', 'app-2'), 0, 'ann')).to.deep.equal({
        outcome: 'invalid',
        reasons: [{ path: 'sign.keys.1', message: 'has no secret here: add it to ADMISSION_SIGN_KEYS' }],
      });
      expect(admin.check(named('app-2'))).to.have.length(1);
      expect(admin.check(named('app-1'))).to.deep.equal([]);
      expect(await admin.publish(named('app-1'), 0, 'ann')).to.include({ outcome: 'published', version: 1 });
    });

    it('are refused if another process published them, and the current rules stay', async () => {
      const errors: string[] = [];
      let refused = 0;
      const log = { ...silentLog, error: (fields: object) => void errors.push(JSON.stringify(fields)) };
      const metrics = { ...noAdmissionMetrics, rulesRefused: () => void refused++ };
      const clock = new SteppedClock();
      const reporter = { processId: 'p1', host: 'shop-1', pid: 7 };
      const reports = new MemoryRuleReports(clock);
      const current = new CurrentRules({ broadcast, repository, reports, reporter, clock, metrics, log, unfit });
      const admin = new RuleAdmin({ repository, broadcast, log: silentLog }); // The command line has no secrets.
      await admin.publish(named('app-1'), 0, 'ann');
      await current.start();
      expect(await admin.publish(named('app-2'), 1, 'ann')).to.include({ outcome: 'published' });
      await current.runOnce();
      expect(current.rules.sign.keys).to.deep.equal(['app-1']);
      expect(refused).to.equal(1);
      expect(errors).to.have.length(1);
      expect(errors[0]).to.contain('sign.keys.0');
    });
  });
});
