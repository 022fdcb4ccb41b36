import { expect } from 'chai';
import { NetworkSet } from '../../../../src/admission/lists/network-set.js';
import { flawOfAddress, flawOfUrl } from '../../../../src/operate/webhooks/addresses.js';

const NONE = new NetworkSet([]);
const OFFICE = new NetworkSet(['10.1.0.0/16', 'fd00::/8', '127.0.0.1']);

/** An address of each special-purpose network. */
const NOT_PUBLIC = [
  ['this host', '0.0.0.0'],
  ['private', '10.0.0.1'],
  ['private', '172.16.0.1'],
  ['private', '172.31.255.255'],
  ['private', '192.168.1.1'],
  ['shared', '100.64.0.1'],
  ['loopback', '127.0.0.1'],
  ['loopback', '127.255.255.254'],
  ['link-local, metadata of clouds', '169.254.169.254'],
  ['protocol assignments', '192.0.0.8'],
  ['documentation', '192.0.2.1'],
  ['6to4 relay', '192.88.99.1'],
  ['benchmarks', '198.19.0.1'],
  ['documentation', '198.51.100.1'],
  ['documentation', '203.0.113.1'],
  ['multicast', '224.0.0.1'],
  ['reserved', '240.0.0.1'],
  ['broadcast', '255.255.255.255'],
  ['unspecified', '::'],
  ['loopback', '::1'],
  ['IPv4-mapped loopback', '::ffff:127.0.0.1'],
  ['IPv4-mapped private', '::ffff:a00:1'],
  ['IPv4-compatible', '::10.0.0.1'],
  ['NAT64', '64:ff9b::a00:1'],
  ['local NAT64', '64:ff9b:1::a00:1'],
  ['discard', '100::1'],
  ['Teredo', '2001:0:1::1'],
  ['ORCHID', '2001:20::1'],
  ['documentation', '2001:db8::1'],
  ['6to4 of a private address', '2002:a00:1::1'],
  ['documentation', '3fff::1'],
  ['segment routing', '5f00::1'],
  ['unique local', 'fc00::1'],
  ['unique local', 'fdff::1'],
  ['link-local', 'fe80::1'],
  ['link-local with a zone', 'fe80::1%eth0'],
  ['site-local', 'fec0::1'],
  ['multicast', 'ff02::1'],
  ['no address', 'localhost'],
] as const;

describe('addresses of webhook endpoints', () => {
  for (const [name, address] of NOT_PUBLIC) {
    it(`refuses ${address} (${name})`, () => {
      expect(flawOfAddress(address, true, NONE)).to.equal('is not a public address');
    });
  }

  it('accepts public addresses with https only', () => {
    for (const address of ['1.1.1.1', '172.32.0.1', '223.255.255.254', '2606:4700::1111', '::ffff:8.8.8.8']) {
      expect(flawOfAddress(address, true, NONE), address).to.equal(null);
      expect(flawOfAddress(address, false, OFFICE), address).to.equal('may only be called with https');
    }
  });

  it('accepts addresses of the listed networks, also with http', () => {
    for (const address of ['10.1.2.3', 'fd12::1', '::ffff:10.1.0.1']) {
      expect(flawOfAddress(address, false, OFFICE), address).to.equal(null);
    }
    expect(flawOfAddress('10.2.0.1', true, OFFICE)).to.equal('is not a public address');
  });

  const urls: readonly (readonly [string, RegExp | null])[] = [
    ['https://shop.example/events?x=1', null],
    ['https://shop.example:8443/', null],
    ['https://1.1.1.1/', null],
    ['http://shop.example/', /must begin with https/],
    ['ftp://shop.example/', /must begin with https/],
    ['https://user:word@shop.example/', /user or password/],
    ['https://shop.example/#part', /must not contain #/],
    ['https://127.0.0.1/', /must not point to 127\.0\.0\.1/],
    ['https://2130706433/', /must not point to 127\.0\.0\.1/],
    ['https://0x7f.1/', /must not point to 127\.0\.0\.1/],
    ['https://017700000001/', /must not point to 127\.0\.0\.1/],
    ['https://[::1]/', /must not point to ::1/],
    ['https://[::ffff:7f00:1]/', /must not point to ::ffff:7f00:1/],
    ['https://[64:ff9b::7f00:1]/', /must not point to/],
    ['shop.example', /must be a URL/],
    [`https://shop.example/${'x'.repeat(500)}`, /at most 500/],
  ];
  for (const [url, flaw] of urls) {
    it(`${flaw === null ? 'accepts' : 'refuses'} ${url.slice(0, 40)}`, () => {
      const found = flawOfUrl(url, NONE);
      if (flaw === null) expect(found).to.equal(null);
      else expect(found).to.match(flaw);
    });
  }

  it('accepts http only for the listed networks', () => {
    expect(flawOfUrl('http://127.0.0.1:8090/', OFFICE)).to.equal(null);
    expect(flawOfUrl('http://1.1.1.1/', OFFICE)).to.match(/only be called with https/);
  });
});
