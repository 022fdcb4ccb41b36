import { expect } from 'chai';
import { hmacKey, hmacSha256, sameText } from '../../../src/core/hmac.js';

describe('HMAC', () => {
  it('is that of RFC 4231, case 2, in base64url', () => {
    const hex = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843';
    expect(hmacSha256(hmacKey('Jefe'), 'what do ya want for nothing?')).to.equal(
      Buffer.from(hex, 'hex').toString('base64url'),
    );
  });

  it('takes keys and texts beyond ASCII by their UTF-8 bytes', () => {
    const bytes = Buffer.from('schlüssel-鍵', 'utf8').toString('latin1');
    expect(hmacSha256(hmacKey('schlüssel-鍵'), 'x')).to.not.equal(hmacSha256(hmacKey(bytes), 'x'));
    expect(hmacSha256(hmacKey('k'), 'é')).to.not.equal(hmacSha256(hmacKey('k'), '\u0065\u0301'));
  });

  it('texts are the same only when every character is', () => {
    expect(sameText('abc', 'abc')).to.equal(true);
    expect(sameText('', '')).to.equal(true);
    for (const other of ['abd', 'bbc', 'ab', 'abcd', '']) expect(sameText('abc', other), other).to.equal(false);
  });
});
