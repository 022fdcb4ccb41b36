import { expect } from 'chai';
import { parseRules } from '../../../src/admission/rules/rule-set.js';
import { createTokenSigner } from '../../../src/http/token.js';
import { attackFigures, loadOfBoth, wonPerSecond } from '../../../bench/attack/attack-figures.js';
import {
  AttackRequests,
  withForgedToken,
  type AttackResult,
  type AttackTally,
} from '../../../bench/attack/attack-process.js';
import {
  addressesIn,
  addressIn,
  attackRules,
  ATTACKS,
  honestAddresses,
  splitRate,
} from '../../../bench/attack/attackers.js';
import { buyerRecord } from '../../../bench/load/buyers.js';
import type { OpenLoopResult } from '../../../bench/load/open-loop.js';
import { allLayersOn } from '../../../bench/scenarios/sold-out.js';
import { hmacAuth } from '../../helpers/authenticator.js';

const latency = (p99: number): OpenLoopResult['latency'] => ({ p50: 1, p99, p999: p99, max: p99 });

const honestLoad = (changes: Partial<OpenLoopResult> = {}): OpenLoopResult => ({
  sent: 1000,
  answered: 1000,
  accepted: 1000,
  errors: 0,
  startedAtMs: 5000,
  endedAtMs: 15_000,
  latency: latency(20),
  acceptedLatency: latency(30),
  sendDelay: latency(2),
  unavailable: { count: 0, firstMs: 0, lastMs: 0 },
  ranOutOfBuyers: false,
  cpuSeconds: 1,
  outcomes: '',
  ...changes,
});

const tally = (byStatus: AttackTally['byStatus'] = {}): AttackTally => {
  const answered = Object.values(byStatus).reduce((sum, count) => sum + count, 0);
  return { sent: answered, answered, byStatus };
};

const attackLoad = (tallies: Partial<AttackResult['tallies']> = {}): AttackResult => ({
  tallies: { flood: tally(), forged: tally(), replayed: tally(), oversized: tally(), ...tallies },
  outcomes: '',
  startedAtMs: 4000,
  endedAtMs: 16_000,
  cpuSeconds: 0.5,
  slow: { opened: 30, closed: 20, answered408: 20, longestMs: 5400 },
});

describe('rates of an attack', () => {
  it('a fifth is honest, and the parts add up to the whole', () => {
    for (const perSecond of [10_000, 999, 10]) {
      const { honest, attack } = splitRate(perSecond);
      const attacks = ATTACKS.reduce((sum, kind) => sum + attack[kind], 0);
      expect(honest + attacks, `${perSecond}`).to.equal(perSecond);
      expect(honest).to.equal(Math.round(perSecond / 5));
    }
  });
});

describe('addresses on this machine', () => {
  it('differ, are all loopback, and end like those of hosts', () => {
    const addresses = [...addressesIn('honest', 1000), ...addressesIn('flood', 1000)];
    expect(new Set(addresses).size).to.equal(2000);
    for (const address of addresses) expect(address).to.match(/^127\.\d{1,2}\.[0-3]\.([1-9]|\d\d|1\d\d|2[0-4]\d|250)$/);
  });

  it('honest ones stay within half of the limit, the flood does not', () => {
    const { honest, attack } = splitRate(10_000);
    const { limits } = rulesOf(attackRules('k1:secret', ['7']));
    const { limit, windowMs } = limits.purchase.ip ?? { limit: 0, windowMs: 0 };
    expect(((honest / honestAddresses(honest)) * windowMs) / 1000).to.be.at.most(limit / 2);
    expect((attack.flood * windowMs) / 1000 / 8).to.be.greaterThan(10 * limit);
  });
});

function rulesOf(rules: object) {
  const parsed = parseRules(rules);
  if ('reasons' in parsed) throw new Error(JSON.stringify(parsed.reasons));
  return parsed.rules;
}

describe('rules of scenarios', () => {
  it('attack: lists, limits and signatures of these sales; one address of the flood is denied, no secret is shown', () => {
    const rules = attackRules('k1:first-secret,k2:second-secret', ['7', '8']);
    const { lists, limits, sign } = rulesOf(rules);
    expect([lists.mode, limits.mode, sign.mode]).to.deep.equal(['on', 'on', 'on']);
    expect(lists.addresses.deny).to.include(addressIn('flood', 0)).and.not.include(addressIn('flood', 1));
    expect(sign).to.deep.include({ sales: ['7', '8'], keys: ['k1', 'k2'] });
    expect(JSON.stringify(rules)).not.to.include('secret');
  });

  it('sold-out --admission on: each layer is on', () => {
    const { lists, limits, sign, queue, breaker, degrade } = rulesOf(
      allLayersOn({ sign: `s1:${'s'.repeat(32)}`, seal: `q1:${'q'.repeat(32)}` }),
    );
    const modes = [lists, limits, sign, sign.tokens, queue, breaker, degrade].map(({ mode }) => mode);
    expect(modes).to.deep.equal(Array(7).fill('on'));
  });
});

describe('requests of attackers', () => {
  const secret = 'a secret of the test with enough bytes';
  const token = createTokenSigner(secret)({ userId: 'u1', roles: [], ttlMs: 3_600_000 }); // a whole run of the tests takes minutes
  const record = buyerRecord(token, 'key-1');
  const auth = hmacAuth(secret, { cacheMax: 0 });
  const tokenIn = (text: string): string => /Authorization: (.*)\r\n/.exec(text)?.[1] ?? '';

  it('a forged token says the same and is not accepted; nothing else changes', () => {
    expect(auth.authenticate(tokenIn(record))).to.deep.include({ userId: 'u1' });
    const forged = withForgedToken(record);
    expect(auth.authenticate(tokenIn(forged))).to.equal('bad_signature');
    expect(forged).to.have.length(record.length);
    const cut = record.lastIndexOf('.');
    expect(forged.slice(0, cut)).to.equal(record.slice(0, cut));
    expect(forged.slice(forged.indexOf('\r\n'))).to.equal(record.slice(record.indexOf('\r\n')));
  });

  it('an oversized request has a valid token and the body that it announces, which is JSON', () => {
    const requests = new AttackRequests({ port: 1, path: '/v1/sales/7/purchases' });
    const [head = '', body = ''] = requests.oversized(Buffer.from(record)).toString().split('\r\n\r\n');
    expect(body.length).to.be.greaterThan(4096);
    expect(head)
      .to.match(new RegExp(`^Content-Length: ${body.length}$`, 'm'))
      .and.include(record.trimEnd());
    expect(JSON.parse(body)).to.have.property('quantity', 1);
  });
});

describe('figures of an attack', () => {
  const baseline = { baseline: honestLoad(), headersTimeoutMs: 5000 };

  it('the rate of honest buyers is what they won, over the time until their last answer', () => {
    expect(wonPerSecond({ accepted: 1000, startedAtMs: 5000, endedAtMs: 15_000 })).to.equal(100);
    expect(wonPerSecond({ accepted: 0, startedAtMs: 5000, endedAtMs: 5000 })).to.equal(0);
  });

  it('their share counts neither attackers nor refusals, and is less when answers come late', () => {
    const attack = attackLoad({ flood: tally({ 202: 500, 429: 4000 }) });
    const shareOf = (honest: OpenLoopResult): unknown =>
      attackFigures(baseline, { honest, attack })['honest: share of their rate without attack'];
    expect(shareOf(honestLoad({ accepted: 900 }))).to.equal(0.9);
    const units = attackFigures(baseline, { honest: honestLoad({ accepted: 900, endedAtMs: 25_000 }), attack });
    expect(units['honest: share of their units without attack']).to.equal(0.9);
    expect(shareOf(honestLoad({ endedAtMs: 25_000 }))).to.equal(0.5);
  });

  it('p99 is that of honest winners, however quickly attackers are refused', () => {
    const honest = honestLoad({ acceptedLatency: latency(80), latency: latency(60) });
    const attack = attackLoad({ flood: tally({ 429: 100_000 }) });
    expect(attackFigures(baseline, { honest, attack })).to.include({
      'honest: p99 of winners, ms': 80,
      'honest: p99 of winners without attack, ms': 30,
    });
    expect(loadOfBoth(honest, attack).latency).to.equal(honest.latency);
  });

  it('all units that were won count as accepted; a replayed answer is no purchase', () => {
    const both = loadOfBoth(
      honestLoad({ accepted: 950 }),
      attackLoad({
        flood: tally({ 202: 40, 429: 60 }),
        replayed: tally({ 202: 7, 401: 3 }),
        forged: tally({ 401: 5 }),
      }),
    );
    expect(both).to.include({ sent: 1115, answered: 1115, accepted: 990, startedAtMs: 4000, endedAtMs: 16_000 });
  });

  it('the share of the attack is measured, not planned', () => {
    const attack = attackLoad({ flood: tally({ 429: 2500 }), forged: tally({ 401: 500 }) });
    expect(attackFigures(baseline, { honest: honestLoad(), attack })['attack: share of all requests']).to.equal(0.75);
  });
});
