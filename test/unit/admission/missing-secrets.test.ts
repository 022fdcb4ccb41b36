import { expect } from 'chai';
import { RuleAdmin } from '../../../src/admission/rules/rule-admin.js';
import { CurrentRules } from '../../../src/admission/rules/current-rules.js';
import {
  missingSecrets,
  type KnownKeys,
  isAnyOn,
  parseRules,
  type RuleSet,
} from '../../../src/admission/rules/rule-set.js';
import { silentLog } from '../../../src/core/ports/log.js';
import { MemoryRuleBroadcast, MemoryRuleRepository } from '../../helpers/memory/memory-rule-repository.js';
import { SteppedClock } from '../../helpers/memory/stepped-clock.js';

const keys = (sign: readonly string[], seal: number): KnownKeys => ({ sign: new Set(sign), seal: { size: seal } });
const rulesOf = (raw: object): RuleSet => (parseRules(raw) as { rules: RuleSet }).rules;
const pathsOf = (raw: object, known: KnownKeys): string[] =>
  missingSecrets(rulesOf(raw), known).map(({ path }) => path);

describe('entry: rules that need secrets', () => {
  it('what is off needs none', () => {
    expect(pathsOf({ sign: { keys: ['app-1'] } }, keys([], 0))).to.deep.equal([]);
  });

  for (const mode of ['on', 'dry_run']) {
    it(`${mode}: each key that is named needs its secret, tokens and queue one to seal with`, () => {
      const rules = { sign: { mode, keys: ['app-1', 'app-2'], tokens: { mode } }, queue: { mode } };
      expect(pathsOf(rules, keys([], 0))).to.deep.equal([
        ...['sign.keys.0', 'sign.keys.1', 'sign.tokens.mode', 'queue.mode'],
      ]);
      expect(pathsOf(rules, keys(['app-1'], 1))).to.deep.equal(['sign.keys.1']);
      expect(pathsOf(rules, keys(['app-2', 'app-1', 'old'], 1))).to.deep.equal([]);
      expect(pathsOf({ queue: { mode } }, keys([], 0))).to.deep.equal(['queue.mode']);
      expect(pathsOf({ sign: { tokens: { mode } } }, keys([], 0))).to.deep.equal(['sign.tokens.mode']);
    });

    it(`${mode}: purchase tokens alone switch the entry on`, () => {
      expect(isAnyOn(rulesOf({ sign: { tokens: { mode } } }))).to.equal(true);
      expect(isAnyOn(rulesOf({ queue: { mode } }))).to.equal(true);
      expect(isAnyOn(rulesOf({ sign: { mode, keys: ['app-1'] } }))).to.equal(true);
    });
  }

  it('nobody is asked to sign while no key is believed', () => {
    expect(parseRules({ sign: { mode: 'on' } })).to.deep.equal({
      reasons: [{ path: 'sign.keys', message: 'must name a key: without one nobody can sign' }],
    });
  });

  describe('in a process that lacks one', () => {
    const named = (...keyIds: string[]): object => ({ sign: { mode: 'on', keys: keyIds } });
    const unfit = (rules: RuleSet) => missingSecrets(rules, keys(['app-1'], 1));
    let repository: MemoryRuleRepository;
    let broadcast: MemoryRuleBroadcast;
    beforeEach(() => void ([repository, broadcast] = [new MemoryRuleRepository(), new MemoryRuleBroadcast()]));

    it('they are not published, and a check says why', async () => {
      const admin = new RuleAdmin({ repository, broadcast, log: silentLog, unfit });
      expect(await admin.publish(named('app-1', 'app-2'), 0, 'ann')).to.deep.equal({
        outcome: 'invalid',
        reasons: [{ path: 'sign.keys.1', message: 'has no secret here: ADMISSION_SIGN_KEYS must have it' }],
      });
      expect(admin.check(named('app-2'))).to.have.length(1);
      expect(admin.check(named('app-1'))).to.deep.equal([]);
      expect(await admin.publish(named('app-1'), 0, 'ann')).to.include({ outcome: 'published', version: 1 });
    });

    it('published past it, they are refused with an error, and those in force stay', async () => {
      const errors: string[] = [];
      let refused = 0;
      const log = { ...silentLog, error: (fields: object) => void errors.push(JSON.stringify(fields)) };
      const metrics = { rulesTaken: () => undefined, rulesRefused: () => void refused++ };
      const current = new CurrentRules({ broadcast, repository, clock: new SteppedClock(), metrics, log, unfit });
      const admin = new RuleAdmin({ repository, broadcast, log: silentLog }); // as at the command line, where no secret is
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
