import { expect } from 'chai';
import fc from 'fast-check';
import type { Dependency } from '../../../../src/core/errors.js';
import { homeBucket } from '../../../../src/core/bucket.js';
import {
  Degrade,
  refusesChange,
  degradeRules,
  type DegradeRules,
  LEVELS,
  type Level,
  percentileOf,
  rulingFor,
  DegradeLayer,
} from '../../../../src/admission/degrade/degrade.js';
import { ENDPOINTS, type Endpoint } from '../../../../src/admission/layer.js';
import { rulesOf } from './degrade-world.js';
import { Admission } from '../../../../src/admission/admission.js';
import { noAdmissionMetrics } from '../../../helpers/no-metrics.js';
import { partial } from '../../../helpers/partial.js';

const ALL = ['redis', 'rocketmq', 'mysql'] as const;
const level = fc.constantFrom(...LEVELS);
const purchaseLevel = fc.constantFrom('L0' as const, 'L4' as const);
const levels = fc.record({ purchase: purchaseLevel, status: level, sale: level, order: level });
const percent = fc.oneof(fc.constantFrom(0, 100), fc.double({ min: 0, max: 100, noNaN: true }));
const anyRules = fc.record({
  switches: fc.record({
    purchase: fc.record({ level: purchaseLevel, percent }),
    status: fc.record({ level, percent }),
    sale: fc.record({ level, percent }),
    order: fc.record({ level, percent }),
  }),
  asked: fc.record({ redis: levels, rocketmq: levels, mysql: levels }),
});

describe('degradation levels', () => {
  const reasonsFor = (input: unknown): string[] => {
    const parsed = degradeRules.safeParse(input);
    return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  };

  it('are off by default: every answer is full', () => {
    const rules = degradeRules.parse({});
    expect(rules.mode).to.equal('off');
    for (const endpoint of ENDPOINTS) expect(rules.switches[endpoint]).to.deep.equal({ level: 'L0', percent: 100 });
    expect(rules.cache).to.deep.equal({ ttlMs: 60_000, factor: 0.7, ttlMinMs: 5000 });
  });

  it('reject rules that would give a purchase an old or partial answer', () => {
    for (const poor of ['L1', 'L2', 'L3']) {
      expect(reasonsFor({ switches: { purchase: { level: poor } } })).to.deep.equal([
        'switches.purchase.level: must be L0 or L4 for a purchase',
      ]);
    }
    expect(reasonsFor({ asked: { redis: { purchase: 'L1' } } })).to.deep.equal([
      'asked.redis.purchase: must be L0 or L4 for a purchase',
    ]);
    expect(reasonsFor({ switches: { sale: { level: 'L1', percent: 101 } } })).to.have.length(1);
    expect(reasonsFor({ switches: { admin: { level: 'L4' } } })).to.have.length(1);
    expect(reasonsFor({ cache: { ttlMs: 1000 } })).to.deep.equal(['cache.ttlMinMs: must not be larger than ttlMs']);
  });

  it('use the higher of the switch and the level of open breakers', () => {
    fc.assert(
      fc.property(
        ...([anyRules, fc.constantFrom(...ENDPOINTS), fc.uuid(), fc.subarray([...ALL])] as const),
        (rules, endpoint, who, open) => {
          const asked: Dependency[] = [];
          const ruling = rulingFor(rules, endpoint, who, (dependency) => {
            asked.push(dependency);
            return open.includes(dependency);
          });
          const { level: switched, percent: share } = rules.switches[endpoint];
          const byBreakers = open.map((dependency) => rules.asked[dependency][endpoint]);
          const all: Level[] = [percentileOf(who) < share ? switched : 'L0', ...byBreakers];
          expect(ruling.level).to.equal(all.toSorted().at(-1));
          if (ruling.level !== 'L4') {
            expect(ruling.sparesSource).to.equal(byBreakers.some((wanted) => wanted !== 'L0'));
          }
          expect(new Set(asked).size, 'no breaker is asked twice').to.equal(asked.length);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('ask no breaker whose answer would change nothing', () => {
    const never = (): boolean => expect.fail('asked');
    expect(rulingFor(rulesOf({ switches: { purchase: { level: 'L4' } } }), 'purchase', 'u', never).level).to.equal(
      'L4',
    );
    const rules = rulesOf();
    const asked: Dependency[] = [];
    rulingFor(rules, 'order', 'u', (dependency) => {
      asked.push(dependency);
      return false;
    });
    expect(asked).to.deep.equal(['mysql']);
  });

  it('affect exactly the given share of users, and keep these users when the share grows', () => {
    const users = Array.from({ length: 10_000 }, (_, index) => `user-${index}`);
    let before = new Set<string>();
    for (const share of [1, 10, 50, 90, 100]) {
      const rules = rulesOf({ switches: { sale: { level: 'L2', percent: share } } });
      const chosen = new Set(users.filter((user) => rulingFor(rules, 'sale', user, () => false).level === 'L2'));
      expect(chosen.size / users.length).to.be.closeTo(share / 100, 0.015);
      expect([...before].filter((user) => !chosen.has(user)).length, 'no user has left').to.equal(0);
      for (const bucket of share <= 10 ? [0, 1, 2, 3, 4, 5, 6, 7] : []) {
        const own = users.filter((user) => homeBucket(user, 8) === bucket);
        const part = own.filter((user) => chosen.has(user)).length / own.length;
        expect(part, `bucket ${bucket}`).to.be.closeTo(share / 100, share === 1 ? 0.015 : 0.04);
      }
      before = chosen;
    }
    const none = rulesOf({ switches: { sale: { level: 'L2', percent: 0 } } });
    expect(users.some((user) => rulingFor(none, 'sale', user, () => false).level !== 'L0')).to.equal(false);
  });

  it('ask no breaker while off, and refuse nothing in a dry run', () => {
    let rules: DegradeRules = rulesOf({ mode: 'off', switches: { sale: { level: 'L2' } } });
    const counted: string[] = [];
    let asked = 0;
    const degrade = new Degrade({
      rules: () => rules,
      refuses: () => ++asked > 0,
      metrics: { ...noAdmissionMetrics, degraded: (endpoint, at, mode) => counted.push(`${endpoint} ${at} ${mode}`) },
    });
    expect([degrade.isOn, degrade.rulingOf('sale', 'u'), degrade.levelOf('sale', 'u')]).to.deep.equal([
      false,
      null,
      'L0',
    ]);
    expect([counted.length, asked]).to.deep.equal([0, 0]);

    rules = rulesOf({ mode: 'dry_run', switches: { sale: { level: 'L2' } } });
    expect(degrade.rulingOf('sale', 'u')).to.equal(null);
    expect(counted.splice(0)).to.deep.equal(['sale L2 dry_run']);
    expect(degrade.levelOf('sale', 'u'), 'for callers that handle a dry run themselves').to.equal('L2');
    expect(counted.splice(0)).to.deep.equal(['sale L2 dry_run']);

    rules = rulesOf({ switches: { sale: { level: 'L2' } } });
    expect(degrade.rulingOf('sale', 'u')).to.deep.equal({ level: 'L2', sparesSource: true });
    expect(counted.splice(0)).to.deep.equal(['sale L2 on']);
    expect(degrade.levelOf('purchase', 'u'), 'as the breakers ask').to.equal('L4');

    rules = rulesOf({ asked: { redis: { sale: 'L0' } } });
    counted.length = 0;
    expect(degrade.levelOf('sale', 'u')).to.equal('L0');
    expect(counted, 'a full answer is not counted').to.deep.equal([]);
  });

  it('refuse a change at L4 only', () => {
    expect(LEVELS.map((at) => refusesChange({ level: at, sparesSource: false }))).to.deep.equal([
      false,
      false,
      false,
      false,
      true,
    ]);
    expect(refusesChange(null)).to.equal(false);
  });
});

const caller = (endpoint: Endpoint) => ({ endpoint, address: '192.0.2.1', agent: '' });
const REFUSED = { word: 'degraded', retryAfterMs: null };

describe('degradation as a layer', () => {
  let rules: DegradeRules;
  let open: Dependency[];
  let asked: Dependency[];
  let counted: string[];
  let entry: Admission;
  beforeEach(() => {
    rules = rulesOf();
    [open, asked, counted] = [[], [], []];
    const degrade = new Degrade({
      rules: () => rules,
      refuses: (dependency) => {
        asked.push(dependency);
        return open.includes(dependency);
      },
      metrics: { ...noAdmissionMetrics, degraded: (...words) => void counted.push(words.join(' ')) },
    });
    const metrics = { ...noAdmissionMetrics, refused: (...words: string[]) => void counted.push(words.join(' ')) };
    entry = new Admission(partial({ isAnyOn: true }), [new DegradeLayer(degrade)], metrics);
  });

  it('refuses only purchases at L4, because reads have smaller answers', () => {
    const at = { level: 'L4' as const };
    rules = rulesOf({ switches: { purchase: at, status: at, sale: at, order: at } });
    expect(entry.buyer(caller('purchase'), 'ann')).to.deep.equal(REFUSED);
    expect(counted.splice(0)).to.deep.equal(['purchase L4 on', 'degrade degraded on']);
    for (const endpoint of ENDPOINTS) {
      expect(entry.anonymous(caller(endpoint)), endpoint).to.equal(null);
      if (endpoint !== 'purchase') expect(entry.buyer(caller(endpoint), 'ann'), endpoint).to.equal(null);
    }
    expect([counted, asked], 'neither breaker nor metric was called').to.deep.equal([[], []]);
  });

  it('refuses a purchase if a breaker it needs is open, and asks no other breaker', () => {
    expect(entry.buyer(caller('purchase'), 'ann')).to.equal(null);
    expect(asked).to.deep.equal(['redis', 'rocketmq']);
    for (const dependency of ['redis', 'rocketmq'] as const) {
      open = [dependency];
      expect(entry.buyer(caller('purchase'), 'ann'), dependency).to.deep.equal(REFUSED);
    }
    open = ['mysql'];
    expect(entry.buyer(caller('purchase'), 'ann')).to.equal(null);
  });

  it('in a dry run, counts refusals but refuses nothing', () => {
    rules = rulesOf({ mode: 'dry_run', switches: { purchase: { level: 'L4' } } });
    expect(entry.buyer(caller('purchase'), 'ann')).to.equal(null);
    expect(counted).to.deep.equal(['purchase L4 dry_run', 'degrade degraded dry_run']);
  });

  it('refuses the same users each time when a switch covers a share of the users', () => {
    rules = rulesOf({ switches: { purchase: { level: 'L4', percent: 30 } } });
    const users = Array.from({ length: 500 }, (_, i) => `user-${i}`);
    const refused = (): string[] => users.filter((user) => entry.buyer(caller('purchase'), user) !== null);
    const first = refused();
    expect(first.length).to.be.within(100, 200);
    expect(refused()).to.deep.equal(first);
  });
});
