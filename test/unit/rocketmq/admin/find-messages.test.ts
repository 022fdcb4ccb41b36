import { expect } from 'chai';
import { storeTimes } from '../../../../src/rocketmq/admin/find-messages.js';

/** A message as far as it is read: its length, flags, store time, and properties at the end. */
function message(storedAtMs: number, properties: string, isV6 = false): Buffer {
  const storeAt = 48 + (isV6 ? 20 : 8);
  const head = Buffer.alloc(storeAt + 8);
  head.writeInt32BE(isV6 ? 16 : 0, 36);
  head.writeBigInt64BE(BigInt(storedAtMs), storeAt);
  const whole = Buffer.concat([head, Buffer.from(properties)]);
  whole.writeInt32BE(whole.length, 0);
  return whole;
}
const keys = (key: string, rest = 'TAGS\u0001x\u0002'): string => `A\u0001b\u0002KEYS\u0001${key}\u0002${rest}`;

describe('messages as the broker stores them', () => {
  it('their store times, from a host of IPv4 or IPv6, with the key in the middle or at the end', () => {
    const last = keys('k1', '').slice(0, -1);
    const bytes = [message(1000, keys('k1')), message(2000, keys('k1'), true), message(3000, last)];
    expect(storeTimes(Buffer.concat(bytes), 'k1')).to.deep.equal([1000, 2000, 3000]);
    expect(storeTimes(Buffer.alloc(0), 'k1')).to.deep.equal([]);
  });

  it('a message of another key, whose hash is the same, is left out', () => {
    const bytes = Buffer.concat([message(1, keys('k12')), message(2, keys('xk1')), message(3, keys('k1'))]);
    expect(storeTimes(bytes, 'k1')).to.deep.equal([3]);
  });

  it('what is cut off or no message is an error', () => {
    const whole = message(1, keys('k1'));
    expect(() => storeTimes(whole.subarray(0, whole.length - 1), 'k1')).to.throw(/no whole messages/);
    expect(() => storeTimes(Buffer.alloc(100), 'k1')).to.throw(/no whole messages/);
  });
});
