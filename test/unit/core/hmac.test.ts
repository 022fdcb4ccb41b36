import { expect } from 'chai';
import { createHmac } from 'node:crypto';
import { HmacKey, sameText } from '../../../src/core/hmac.js';

const fromNode = (secret: string, text: string): string =>
  createHmac('sha256', secret).update(text).digest('base64url');

describe('HMAC', () => {
  it('matches RFC 4231, case 2, in base64url', () => {
    const hex = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843';
    expect(new HmacKey('Jefe').sign('what do ya want for nothing?')).to.equal(
      Buffer.from(hex, 'hex').toString('base64url'),
    );
  });

  it('matches Node.js for any length of key and text', () => {
    for (const keyLength of [0, 1, 31, 32, 55, 63, 64, 65, 128, 500]) {
      const secret = 'key-of-any-length-'.repeat(40).slice(0, keyLength);
      const key = new HmacKey(secret);
      // lengths around the ends of blocks and beyond the shared buffer, then a short text after a long one
      for (const length of [0, 1, 55, 56, 63, 64, 65, 1023, 1024, 1025, 5000, 3]) {
        const text = 'text '.repeat(1000).slice(0, length);
        expect(key.sign(text), `key ${keyLength}, text ${length}`).to.equal(fromNode(secret, text));
      }
    }
  });

  it('encodes keys and texts beyond ASCII as UTF-8', () => {
    const texts = [
      'é',
      '\u0065\u0301',
      '鍵'.repeat(1024),
      '🔑'.repeat(512),
      'half of a pair: \ud83d',
      '鍵'.repeat(1025),
    ];
    for (const secret of ['schlüssel-鍵', '鍵'.repeat(22)]) {
      const key = new HmacKey(secret);
      for (const text of texts) expect(key.sign(text), text.slice(0, 20)).to.equal(fromNode(secret, text));
    }
  });

  it('compares texts as equal only if every character is equal', () => {
    expect(sameText('abc', 'abc')).to.equal(true);
    expect(sameText('', '')).to.equal(true);
    for (const other of ['abd', 'bbc', 'ab', 'abcd', '']) expect(sameText('abc', other), other).to.equal(false);
  });
});
