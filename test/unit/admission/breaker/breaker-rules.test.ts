import { expect } from 'chai';
import { breakerRules } from '../../../../src/admission/breaker/breaker-rules.js';

describe('breaker rules', () => {
  const reasonsFor = (input: unknown): string[] => {
    const parsed = breakerRules.safeParse(input);
    return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  };

  it('are off by default, and have a value for every field', () => {
    const rules = breakerRules.parse({});
    expect(rules.mode).to.equal('off');
    expect(rules.weights).to.deep.equal({ rate: 0.2, failures: 0.6, latency: 0.4 });
    expect(rules.rate.ramp).to.deep.equal({ from: 2, to: 5 });
    expect(rules.probe).to.deep.equal({ firstMs: 1000, capMs: 30_000, jitter: 0.2, calmMs: 30_000 });
  });

  it('keep the defaults of a group when only part of the group is given', () => {
    const { weights, probe } = breakerRules.parse({ weights: { latency: 0.5 }, probe: { capMs: 5000 } });
    expect(weights).to.deep.equal({ rate: 0.2, failures: 0.6, latency: 0.5 });
    expect(probe.capMs).to.equal(5000);
    expect(probe.firstMs).to.equal(1000);
  });

  it('refuse impossible values with the place and the reason', () => {
    expect(reasonsFor({ weights: { rate: 0.5 } })).to.deep.equal([
      'weights.rate: must be below openAt: a high rate alone is normal in a sale',
    ]);
    expect(reasonsFor({ weights: { rate: 0, failures: 0.2, latency: 0.2 } })).to.deep.equal([
      'weights: must add up to openAt or more, or the breaker never opens',
    ]);
    expect(reasonsFor({ failures: { from: 0.5, to: 0.5 } })).to.deep.equal([
      'failures: must have a from that is less than to',
    ]);
    expect(reasonsFor({ probe: { firstMs: 2000, capMs: 1000 } })).to.deep.equal([
      'probe: must have a firstMs that is not greater than capMs',
    ]);
    expect(reasonsFor({ callsmin: 3 }).join()).to.include('callsmin');
    expect(reasonsFor({ quorumShare: 0 })).to.have.length(1);
  });
});
