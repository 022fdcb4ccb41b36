import { expect } from 'chai';
import { createHmac, randomBytes } from 'node:crypto';
import { HmacSha256 } from '../../../src/core/hmac.js';

describe('HMAC', () => {
  it('is that of node:crypto, for keys and texts around the block size', () => {
    for (const keyBytes of [1, 31, 32, 63, 64, 65, 200]) {
      const secret = randomBytes(keyBytes)
        .toString('latin1')
        .replaceAll(/[^!-~]/g, 'x');
      const hmac = new HmacSha256(secret, 300);
      for (const length of [0, 1, 54, 55, 56, 63, 64, 65, 128, 300]) {
        const text = randomBytes(length).toString('hex').slice(0, length);
        const expected = createHmac('sha256', secret).update(text).digest('base64url');
        expect(hmac.sign(text, length), `${keyBytes} ${length}`).to.equal(expected);
      }
    }
  });

  it('signs only the beginning it is asked for, whatever was signed before', () => {
    const hmac = new HmacSha256('k'.repeat(32), 100);
    const expected = hmac.sign('abc', 3);
    hmac.sign('z'.repeat(100), 100);
    expect(hmac.sign('abcdef', 3)).to.equal(expected);
  });

  it('a key beyond ASCII counts by its UTF-8 bytes', () => {
    const secret = 'schlüssel-鍵'.repeat(5);
    const expected = createHmac('sha256', secret).update('text').digest('base64url');
    expect(new HmacSha256(secret, 10).sign('text', 4)).to.equal(expected);
  });

  it('signs no text that is too long, or not ASCII: two texts would look the same', () => {
    const hmac = new HmacSha256('k'.repeat(32), 10);
    expect(hmac.sign('a'.repeat(11), 11)).to.equal(null);
    expect(hmac.sign('ab\u0141', 3)).to.equal(null);
    expect(hmac.sign('a'.repeat(9) + '\u00e9', 10)).to.equal(null);
  });
});
