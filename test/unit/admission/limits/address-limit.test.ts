import { expect } from 'chai';
import fc from 'fast-check';
import { AddressLimit } from '../../../../src/admission/limits/address-limit.js';
import { createLimitedAddress } from '../../../../src/admission/limits/limited-addresses.js';
import { NetworkSet } from '../../../../src/admission/lists/network-set.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { noAdmissionMetrics } from '../../../helpers/no-metrics.js';

describe('address limit without rules', () => {
  let clock: ManualClock;
  let counted: string[];
  beforeEach(() => {
    clock = new ManualClock();
    counted = [];
  });

  const limitOf = (max: number): AddressLimit =>
    new AddressLimit(max, {
      limited: createLimitedAddress(new NetworkSet(['127.0.0.0/8']), new NetworkSet(['10.0.0.0/8', 'fc00::/7'])),
      clock,
      metrics: { ...noAdmissionMetrics, limitRefused: (...words) => void counted.push(words.join(' ')) },
    });
  /** @returns the number of these requests that pass */
  const allowed = (limit: AddressLimit, address: string, requests: number): number =>
    Array.from({ length: requests }, () => limit.refuses(address, 'sale')).filter((refused) => !refused).length;

  it('admits its maximum per address in ten seconds, and counts refusals by endpoint', () => {
    const limit = limitOf(5);
    expect(allowed(limit, '203.0.113.7', 8)).to.equal(5);
    expect(allowed(limit, '203.0.113.8', 5)).to.equal(5);
    expect(counted).to.deep.equal(['sale address on', 'sale address on', 'sale address on']);
  });

  it('counts older requests less and less, and refused requests never', () => {
    const limit = limitOf(100);
    expect(allowed(limit, '203.0.113.7', 1000)).to.equal(100);
    clock.advance(10_000);
    expect(allowed(limit, '203.0.113.7', 10)).to.equal(0);
    clock.advance(5000);
    expect(allowed(limit, '203.0.113.7', 100)).to.equal(50);
    clock.advance(25_000);
    expect(allowed(limit, '203.0.113.7', 100)).to.equal(100);
  });

  it('admits little more than the limit in any ten seconds, however requests are spread', () => {
    const limit = limitOf(100);
    const passedAtMs: number[] = [];
    for (let ms = 0; ms < 60_000; ms += 10, clock.advance(10)) {
      if (!limit.refuses('203.0.113.7', 'sale')) passedAtMs.push(ms);
    }
    for (let ms = 0; ms < 50_000; ms += 100) {
      const inWindow = passedAtMs.filter((at) => at >= ms && at < ms + 10_000).length;
      expect(inWindow, `from ${ms} ms on`).to.be.at.most(200);
    }
    expect(passedAtMs.length).to.be.within(500, 700);
  });

  it('counts an IPv6 network as one address, and ignores loopback, proxies and private networks', () => {
    const limit = limitOf(3);
    const inNetwork = Array.from({ length: 6 }, (_, nth) => limit.refuses(`2001:db8::${nth + 1}`, 'sale'));
    expect(inNetwork.filter((refused) => refused)).to.have.length(3);
    expect(allowed(limit, '2001:db8:0:1::1', 1)).to.equal(1);
    for (const address of ['127.0.0.1', '10.1.2.3', 'fd00::1', '']) expect(allowed(limit, address, 10)).to.equal(10);
  });

  it('counts all networks of one IPv6 customer together', () => {
    const hex = fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 255 }), hex, hex), { maxLength: 200, size: 'max' }),
        (asked) => {
          const limit = limitOf(10);
          const passed = new Map<number, number>();
          for (const [network, left, right] of asked) {
            const address = `2001:db8:0:ab${network.toString(16).padStart(2, '0')}:${left}::${right}`;
            if (!limit.refuses(address, 'sale')) passed.set(network, (passed.get(network) ?? 0) + 1);
          }
          expect(Math.max(0, ...passed.values()), 'of one /64').to.be.at.most(10);
          const all = [...passed.values()].reduce((sum, one) => sum + one, 0);
          expect(all, 'of the /56').to.be.at.most(40);
          if (all < 40) expect(all).to.equal(served(asked.map(([network]) => network)));
          expect(limit.refuses('2001:db8:0:ac00::1', 'sale'), 'the /56 beside it').to.equal(false);
        },
      ),
    );
    /** Returns how many requests of these networks pass when each network may send ten. */
    function served(networks: readonly number[]): number {
      return [...new Set(networks)].reduce(
        (sum, one) => sum + Math.min(10, networks.filter((other) => other === one).length),
        0,
      );
    }
  });

  it('uses limited memory for a crowd of addresses, and keeps counting the addresses it knows', () => {
    const limit = limitOf(2);
    expect(allowed(limit, '203.0.113.7', 2)).to.equal(2);
    for (let nth = 0; nth < 60_000; nth++) limit.refuses(`198.18.${nth >> 8}.${nth & 255}`, 'sale');
    expect(allowed(limit, '203.0.113.7', 1)).to.equal(0);
    expect(allowed(limit, '192.0.2.9', 10), 'beyond the bound').to.equal(10);
  });

  it('counts other addresses even if one network has many addresses', () => {
    const limit = limitOf(2);
    for (let nth = 0; nth < 120_000; nth++)
      limit.refuses(`2001:db8::${(nth >> 16).toString(16)}:${(nth & 0xffff).toString(16)}`, 'sale');
    expect(allowed(limit, '192.0.2.9', 10)).to.equal(2);
    expect(allowed(limit, '2001:db8::ffff:1', 10), 'its own limit').to.equal(0);
  });

  it('is off when the maximum is 0', () => {
    expect(limitOf(0).isOn).to.equal(false);
  });
});
