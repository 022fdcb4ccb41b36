import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import fc from 'fast-check';
import { NetworkSet } from '../../../src/admission/lists/network-set.js';
import { createClientAddress } from '../../../src/http/client-address.js';

const addressOf = (trusted: string[], peer: string | undefined, forwarded?: string): string => {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
  const req = { socket: { remoteAddress: peer }, headers } as unknown as IncomingMessage;
  return createClientAddress(new NetworkSet(trusted))(req);
};
const OURS = ['10.0.0.0/8', '2001:db8::/32'];

describe('client address', () => {
  it('is the peer address if no proxy is trusted, whatever the header says', () => {
    expect(addressOf([], '192.0.2.1', '198.51.100.7')).to.equal('192.0.2.1');
    expect(addressOf([], '10.0.0.1', '198.51.100.7')).to.equal('10.0.0.1');
    expect(addressOf([], undefined)).to.equal('');
  });

  it('ignores the header of a client that is not a trusted proxy', () => {
    expect(addressOf(OURS, '192.0.2.1', '10.0.0.1')).to.equal('192.0.2.1');
    expect(addressOf(OURS, '192.0.2.1', '10.0.0.1, 198.51.100.7')).to.equal('192.0.2.1');
  });

  it('is the address that the first of our proxies saw, not an address further left [S5]', () => {
    expect(addressOf(OURS, '10.0.0.1', '198.51.100.7')).to.equal('198.51.100.7');
    expect(addressOf(OURS, '10.0.0.1', '203.0.113.9, 198.51.100.7')).to.equal('198.51.100.7');
    expect(addressOf(OURS, '10.0.0.1', '203.0.113.9,198.51.100.7,10.0.0.2 , 2001:db8::5')).to.equal('198.51.100.7');
  });

  it('is the leftmost address if every address is a trusted proxy', () => {
    expect(addressOf(OURS, '10.0.0.1', '10.0.0.3, 10.0.0.2')).to.equal('10.0.0.3');
    expect(addressOf(OURS, '10.0.0.1')).to.equal('10.0.0.1');
  });

  it('is the address of the proxy if the next entry is not an address', () => {
    for (const odd of ['unknown', '', ' ', '1.2.3', 'x, ', '198.51.100.7, unknown', '_hidden']) {
      expect(addressOf(OURS, '10.0.0.1', odd), odd).to.equal('10.0.0.1');
    }
  });

  it('normalises IPv4-mapped IPv6 addresses and ignores ports', () => {
    expect(addressOf([], '::ffff:192.0.2.1')).to.equal('192.0.2.1');
    expect(addressOf(OURS, '::ffff:10.0.0.1', '::ffff:198.51.100.7')).to.equal('198.51.100.7');
    expect(addressOf(OURS, '10.0.0.1', '198.51.100.7:4711')).to.equal('198.51.100.7');
    expect(addressOf(OURS, '10.0.0.1', '[2001:41d0::1]:4711')).to.equal('2001:41d0::1');
    expect(addressOf(OURS, '10.0.0.1', '2001:41d0::1')).to.equal('2001:41d0::1');
  });

  it('is the address that the trusted proxy added, whatever text the client sent before it', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), (made) => {
        expect(addressOf(OURS, '10.0.0.1', `${made}, 198.51.100.7, 10.9.9.9`)).to.equal('198.51.100.7');
      }),
    );
  });
});
