import { expect } from 'chai';
import type { Dependency } from '../../../../src/core/errors.js';
import { Degrade, DegradeLayer, type DegradeRules } from '../../../../src/admission/degrade/degrade.js';
import { ENDPOINTS, type Endpoint } from '../../../../src/admission/layer.js';
import { Admission } from '../../../../src/admission/admission.js';
import { rulesOf } from './degrade-world.js';

const caller = (endpoint: Endpoint) => ({ endpoint, address: '192.0.2.1', agent: '' });
const REFUSED = { word: 'degraded', retryAfterMs: null };

describe('entry/degrade: in the entry', () => {
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
      metrics: { degraded: (...words) => void counted.push(words.join(' ')) },
    });
    const metrics = { refused: (...words: string[]) => void counted.push(words.join(' ')) };
    entry = new Admission({ isAnyOn: true }, [new DegradeLayer(degrade)], metrics);
  });

  it('refuses a purchase at level 4, and nothing else: reads have poorer answers', () => {
    const at = { level: 'L4' as const };
    rules = rulesOf({ switches: { purchase: at, status: at, sale: at, order: at } });
    expect(entry.buyer(caller('purchase'), 'ann')).to.deep.equal(REFUSED);
    expect(counted.splice(0)).to.deep.equal(['purchase L4 on', 'degrade degraded on']);
    for (const endpoint of ENDPOINTS) {
      expect(entry.anonymous(caller(endpoint)), endpoint).to.equal(null);
      if (endpoint !== 'purchase') expect(entry.buyer(caller(endpoint), 'ann'), endpoint).to.equal(null);
    }
    expect([counted, asked], 'nobody was asked').to.deep.equal([[], []]);
  });

  it('a breaker that is open refuses it; one that a purchase does not need is not asked', () => {
    expect(entry.buyer(caller('purchase'), 'ann')).to.equal(null);
    expect(asked).to.deep.equal(['redis', 'rocketmq']);
    for (const dependency of ['redis', 'rocketmq'] as const) {
      open = [dependency];
      expect(entry.buyer(caller('purchase'), 'ann'), dependency).to.deep.equal(REFUSED);
    }
    open = ['mysql'];
    expect(entry.buyer(caller('purchase'), 'ann')).to.equal(null);
  });

  it('a dry run counts whom it would refuse, and lets everybody buy', () => {
    rules = rulesOf({ mode: 'dry_run', switches: { purchase: { level: 'L4' } } });
    expect(entry.buyer(caller('purchase'), 'ann')).to.equal(null);
    expect(counted).to.deep.equal(['purchase L4 dry_run', 'degrade degraded dry_run']);
  });

  it('a switch for a part of the users refuses the same ones each time', () => {
    rules = rulesOf({ switches: { purchase: { level: 'L4', percent: 30 } } });
    const users = Array.from({ length: 500 }, (_, i) => `user-${i}`);
    const refused = (): string[] => users.filter((user) => entry.buyer(caller('purchase'), user) !== null);
    const first = refused();
    expect(first.length).to.be.within(100, 200);
    expect(refused()).to.deep.equal(first);
  });
});
