import { expect } from 'chai';
import { DEFAULT_RULES, parseRules } from '../../../../src/admission/rules/rule-set.js';
import type { Json, JsonObject } from '../../../../web/console/api/types.js';
import { en } from '../../../../web/console/i18n/en.js';
import { zh } from '../../../../web/console/i18n/zh.js';
import { valueAt, withValue } from '../../../../web/console/logic/diff.js';
import {
  allRuleFields,
  numberFault,
  ruleFault,
  ruleName,
  ruleTitle,
  withRule,
  type RuleField,
} from '../../../../web/console/logic/rule-fields.js';

const DEFAULTS = DEFAULT_RULES as unknown as JsonObject;
const FIELDS = allRuleFields();
const numbers = FIELDS.filter((field): field is Extract<RuleField, { kind: 'number' }> => field.kind === 'number');

/** Returns the path of every value of a document that is not an object. */
function leavesOf(value: Json, path = ''): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
  return Object.entries(value).flatMap(([name, inside]) => leavesOf(inside, path === '' ? name : `${path}.${name}`));
}

/** The defaults with every optional part switched on. */
const whole = FIELDS.reduce(
  (rules, field) => (field.kind === 'optional' ? withRule(rules, field.path, field.initial) : rules),
  DEFAULTS,
);
const faultsAt = (rules: Json, path: string): string[] => {
  const parsed = parseRules(rules);
  return 'reasons' in parsed
    ? parsed.reasons.filter((reason) => reason.path === path).map(({ message }) => message)
    : [];
};

describe('form of the rules', () => {
  it('has a field for exactly the values of the rules', () => {
    const paths = FIELDS.filter(({ kind }) => kind !== 'optional').map(({ path }) => path);
    expect([...paths].sort()).to.deep.equal(leavesOf(whole).sort());
    expect(parseRules(whole)).to.have.property('rules');
  });

  it("has the schema's limits for each number", () => {
    for (const { path, min, max } of numbers) {
      for (const [value, isAllowed] of [
        [min - 1, false],
        [max + 1, false],
        [max, true],
      ] as const) {
        const isBound =
          isAllowed || !/^breaker\.(openAt|quorumShare)|^degrade\.cache\.factor/.test(path) || value !== min;
        if (!isBound) continue;
        const faults = faultsAt(withValue(whole, path, value), path).filter((text) =>
          /at (least|most)|more than/.test(text),
        );
        expect(faults.length > 0, `${path} = ${value}`).to.equal(!isAllowed);
      }
    }
  });

  it("offers the schema's values for each choice", () => {
    for (const field of FIELDS) {
      if (field.kind !== 'choice') continue;
      for (const option of field.options) {
        expect(faultsAt(withValue(whole, field.path, option), field.path), `${field.path} = ${option}`).to.deep.equal(
          [],
        );
      }
      expect(faultsAt(withValue(whole, field.path, 'no-such-word'), field.path), field.path).to.have.length(1);
    }
  });

  it('reports a number out of bounds before the api does', () => {
    const [field] = numbers.filter(({ path }) => path === 'limits.replyTimeoutMs') as [(typeof numbers)[number]];
    expect([4, 5, 5.5, 5_000, 5_001, Number.NaN].map((value) => numberFault(field, value) === null)).to.deep.equal([
      false,
      true,
      false,
      true,
      false,
      false,
    ]);
  });

  for (const [language, { rules }] of Object.entries({ en, zh })) {
    it(`names each field in words of its own in ${language}`, () => {
      const inside = new Set(FIELDS.flatMap((field) => (field.kind === 'optional' ? field.fields : [])));
      const names = FIELDS.filter((field) => !inside.has(field)).map(({ path }) => ruleName(path, rules));
      expect(names.filter((name, index) => names.indexOf(name) !== index && !/^(Mode|模式)$/.test(name))).to.deep.equal(
        [],
      );
      for (const { path } of FIELDS) {
        if (/^\w+\.mode$/.test(path)) continue; // the switch of a layer has its own label
        expect(ruleName(path, rules), path).not.to.match(/[a-z]\.[a-z]|[a-z][A-Z][a-z]+Ms/);
      }
      const used = FIELDS.map(({ path }) =>
        ruleName(path, {
          ...rules,
          names: Object.fromEntries(Object.keys(rules.names).map((key) => [key, `<${key}>`])),
        }),
      );
      expect(Object.keys(rules.names).filter((key) => !used.some((name) => name.includes(`<${key}>`)))).to.deep.equal(
        [],
      );
    });
  }

  it('names a field with its endpoint and its server', () => {
    expect(ruleName('limits.purchase.user', en.rules)).to.equal('Purchase: each user');
    expect(ruleName('limits.purchase.user.windowMs', en.rules)).to.equal('Within (ms)');
    expect(ruleName('degrade.asked.mysql.order', en.rules)).to.equal('MySQL, Orders: level while its breaker is open');
    expect(ruleName('queue.order', en.rules)).to.equal('Order of buyers');
  });

  it('names a change by its layer, its field and the optional field around it', () => {
    const titles = (...paths: string[]): string[] => paths.map((path) => ruleTitle(path, en.rules));
    expect(titles('orders.cancelsMax', 'orders.mode', 'sign.tokens.mode', 'limits')).to.deep.equal([
      'Unpaid orders › Cancelled orders per buyer and sale',
      'Unpaid orders › Mode',
      'Signatures and tokens › Purchase tokens',
      'Limits',
    ]);
    expect(titles('limits.purchase.user', 'limits.purchase.user.windowMs', 'lists.users.deny.2')).to.deep.equal([
      'Limits › Purchase: each user',
      'Limits › Purchase: each user › Within (ms)',
      'Lists › Users to refuse 3',
    ]);
    expect(titles('new.field', 'orders.unknown')).to.deep.equal(['new.field', 'orders.unknown']);
  });

  it('names no change by its path, in any language', () => {
    for (const { rules } of [en, zh]) {
      for (const { path } of FIELDS)
        expect(ruleTitle(path, rules), path)
          .to.match(/^[^.]+ › /)
          .and.not.contain(path);
    }
  });

  it('says what is wrong with a field without showing its path', () => {
    const said = (message: string) => ruleFault({ field: 'orders.cancelsMax', message }, en.rules);
    const name = 'Unpaid orders › Cancelled orders per buyer and sale';
    expect(said('orders.cancelsMax must be a whole number.')).to.deep.equal({ name, fault: 'must be a whole number.' });
    expect(said('Too many.')).to.deep.equal({ name, fault: 'Too many.' });
  });

  it('changes a copy and leaves the current rules unchanged', () => {
    const changed = withRule(DEFAULTS, 'queue.mode', 'on');
    expect([valueAt(DEFAULTS, 'queue.mode'), valueAt(changed, 'queue.mode')]).to.deep.equal(['off', 'on']);
  });
});
