import { expect } from 'chai';
import {
  canaryTerms,
  judgeCanary,
  judges,
  untriable,
  type Canary,
  type CanaryVerdict,
} from '../../../src/admission/rules/canary.js';
import { percentileOf } from '../../../src/admission/degrade/degrade.js';
import { Limits } from '../../../src/admission/limits/limits.js';
import { LocalLimitStore } from '../../../src/admission/limits/local-limit-store.js';
import { parseRules, type RuleSet } from '../../../src/admission/rules/rule-set.js';
import type { AnswerCount } from '../../../src/core/ports/rules.js';
import { SteppedClock } from '../../helpers/memory/stepped-clock.js';
import { noAdmissionMetrics } from '../../helpers/no-metrics.js';
import { silentLog } from '../../helpers/silent-log.js';

const rulesOf = (raw: object): RuleSet => (parseRules(raw) as { rules: RuleSet }).rules;
const canaryOf = (percent: number, since = 7): Canary => ({
  ...canaryTerms.parse({ percent }),
  ...{ since, rules: rulesOf({}) },
});

describe('the users of a canary', () => {
  const users = Array.from({ length: 100_000 }, (_, index) => `user-${index}`);
  const chosen = (canary: Canary): string[] => users.filter((userId) => judges(canary, userId));

  it('are about the given share, and differ between canaries', () => {
    const [first, second] = [chosen(canaryOf(1, 7)), chosen(canaryOf(1, 8))];
    for (const share of [first.length, second.length]) expect(share).to.be.within(850, 1150);
    const both = new Set(first);
    expect(second.filter((userId) => both.has(userId)).length, 'in both').to.be.below(50);
  });

  it('differ from the users of a switch for the same share', () => {
    const canary = chosen(canaryOf(1));
    const switched = canary.filter((userId) => percentileOf(userId) < 30).length;
    expect(switched / canary.length).to.be.within(0.2, 0.4);
  });
});

describe('the verdict on a canary', () => {
  const terms = canaryTerms.parse({ percent: 1, minutes: 10, maxRefusedPercent: 5 });
  const [EARLY, OVER] = [1000, 600_000];
  const count = (total: number, percent: number): AnswerCount => {
    const refused = Math.round((total * percent) / 100);
    return { accepted: total - refused, refused };
  };
  const CASES: readonly [title: string, tried: AnswerCount, others: AnswerCount, ageMs: number, is: CanaryVerdict][] = [
    ['rolls back early when 30 % more are refused', count(200, 30), count(20_000, 0), EARLY, 'refused_more'],
    ['continues early when the excess may be chance', count(200, 7), count(20_000, 0), EARLY, 'continues'],
    ['rolls back a small excess when the time is over', count(200, 7), count(20_000, 0), OVER, 'refused_more'],
    ['passes when both sides are refused alike', count(300, 40), count(20_000, 40), OVER, 'passed'],
    ['passes when the canary refuses less', count(300, 1), count(20_000, 40), OVER, 'passed'],
    ['continues with too few answers', count(199, 100), count(20_000, 0), EARLY, 'continues'],
    ['rolls back with too few answers when the time is over', count(199, 0), count(20_000, 0), OVER, 'too_few_answers'],
    ['rolls back without other users to compare with', count(900, 0), count(0, 0), OVER, 'too_few_answers'],
  ];
  for (const [title, tried, others, ageMs, is] of CASES) {
    it(title, () => expect(judgeCanary(terms, { tried, others }, ageMs)).to.equal(is));
  }
});

describe('changes that a share of users cannot try', () => {
  const paths = (before: object, after: object): string[] =>
    untriable(rulesOf(before), rulesOf(after)).map(({ path }) => path);
  const window = { limit: 5, windowMs: 1000 };

  it('concern addresses, all buyers, a process, or requests other than purchases', () => {
    const after = {
      lists: { mode: 'on', addresses: { deny: ['192.0.2.1'] } },
      limits: {
        ...{ mode: 'on', processes: 2, status: { user: window } },
        purchase: { ip: window, global: { ratePerSecond: 1, burst: 1 } },
      },
      breaker: { mode: 'on' },
      degrade: { mode: 'on', switches: { sale: { level: 'L1' }, order: { level: 'L4' } } },
      queue: { mode: 'on' },
      orders: { cancelsMax: 1 },
    };
    expect(paths({}, after)).to.have.members([
      ...['lists.addresses', 'limits.purchase.ip', 'limits.purchase.global', 'limits.processes', 'breaker'],
      ...['limits.status.user', 'degrade.mode', 'degrade.switches.sale', 'degrade.switches.order'],
      ...['queue', 'orders.cancelsMax'],
    ]);
  });

  it('do not include a change that only judges single users differently', () => {
    const limits = { mode: 'on', purchase: { user: window } };
    const before = { degrade: { mode: 'on' } };
    const after = {
      ...{ lists: { mode: 'on', users: { deny: ['eve'] } }, limits, orders: { unpaidPauseMs: 1000 } },
      degrade: { mode: 'on', switches: { purchase: { level: 'L4' } } },
    };
    expect(paths(before, after)).to.deep.equal([]);
    const off = { limits: { mode: 'off', purchase: { ip: window } } };
    expect(paths(off, { limits: { mode: 'on', purchase: { ip: window } } }), 'a mode').to.deep.equal([
      'limits.purchase.ip',
    ]);
  });
});

describe('limits during a canary', () => {
  it("apply each user's own limit, even to requests that arrive together", async () => {
    const clock = new SteppedClock();
    const limitOf = (limit: number) =>
      rulesOf({ limits: { mode: 'on', purchase: { user: { limit, windowMs: 1000 } } } });
    const [inForce, tried] = [limitOf(3).limits, limitOf(1).limits];
    const limits = new Limits({
      rules: (userId) => (userId === 'canary' ? tried : inForce),
      store: new LocalLimitStore(clock),
      ...{ clock, metrics: noAdmissionMetrics, log: silentLog },
    });
    const ask = async (userId: string): Promise<string> => {
      const refused = await limits.buyer({ endpoint: 'purchase', address: '', agent: '' }, userId);
      return `${userId} ${refused?.word ?? 'in'}`;
    };
    const words = await Promise.all(['canary', 'other', 'canary', 'other'].map(ask));
    expect(words).to.deep.equal(['canary in', 'other in', 'canary rate_limited', 'other in']);
  });
});
