import { isIP } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import { readAddress, readNetwork } from '../../../src/core/ip-address.js';

describe('IP address', () => {
  it('reads exactly the addresses that the platform accepts', () => {
    const nearly = fc.stringMatching(/^[0-9a-f:.]{0,24}$/);
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), nearly, fc.string()), (text) => {
        expect(readAddress(text) !== null, text).to.equal(isIP(text) !== 0);
      }),
      { numRuns: 3000 },
    );
  });

  it('reads an IPv4-mapped IPv6 address in any notation as IPv4', () => {
    const plain = { family: 4, value: 0x0a010203 };
    for (const text of ['10.1.2.3', '::ffff:10.1.2.3', '::FFFF:a01:203', '0:0:0:0:0:ffff:0a01:0203']) {
      expect(readAddress(text), text).to.deep.equal(plain);
    }
    expect(readAddress('::10.1.2.3')).to.deep.equal({ family: 6, value: 0x0a010203n });
  });

  it('reads every notation of an IPv6 address as the same number', () => {
    for (const text of ['2001:db8::1', '2001:0DB8:0:0:0:0:0:1', '2001:db8:0:0::0.0.0.1', '2001:db8::1%eth0']) {
      expect(readAddress(text), text).to.deep.equal({ family: 6, value: 0x20010db8000000000000000000000001n });
    }
  });

  for (const text of [
    '',
    '1.2.3',
    '1.2.3.256',
    '01.2.3.4',
    '1.2.3.4 ',
    '1::2::3',
    ':::',
    '1:2:3:4:5:6:7',
    '1.2.3.4::',
  ]) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      expect(readAddress(text)).to.equal(null);
    });
  }

  it('reads a network as an address and a prefix length', () => {
    expect(readNetwork('10.0.0.0/8')).to.deep.equal({ start: { family: 4, value: 0x0a000000 }, length: 8 });
    expect(readNetwork('10.1.2.3')?.length).to.equal(32);
    expect(readNetwork('2001:db8::1')?.length).to.equal(128);
    expect(readNetwork('::/0')).to.deep.equal({ start: { family: 6, value: 0n }, length: 0 });
    expect(readNetwork('::ffff:10.0.0.0/104')).to.deep.equal(readNetwork('10.0.0.0/8'));
  });

  for (const text of [
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/',
    '10.0.0.0/08',
    '::/129',
    '::ffff:1.2.3.4/32',
    'fe80::1%eth0/64',
    '10.0.0.0/8/8',
  ]) {
    it(`refuses the network ${text}`, () => {
      expect(readNetwork(text)).to.equal(null);
    });
  }

  it('treats bits beyond the prefix length as a typing error', () => {
    for (const text of ['10.0.0.1/8', '128.0.0.0/0', '2001:db8::1/64']) expect(readNetwork(text), text).to.equal(null);
  });
});
