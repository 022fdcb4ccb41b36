import { expect } from 'chai';
import { addressKey } from '../../../../src/admission/limits/limits.js';

describe('address-key', () => {
  for (const [address, key] of [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['no address', 'no address'],
    ['no:address', 'no:address'],
  ] as const) {
    it(`${address} counts as ${key}`, () => {
      expect(addressKey(address)).to.equal(key);
    });
  }
});
