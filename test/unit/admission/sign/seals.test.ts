import { expect } from 'chai';
import fc from 'fast-check';
import { readKeyring } from '../../../../src/core/hmac.js';
import { Seals, type SealOf } from '../../../../src/admission/sign/seals.js';

const ring = (...ids: string[]): Seals =>
  new Seals(readKeyring(ids.map((id) => `${id}:secret-of-${id}-that-is-long-enough-for-us`).join(',')));
const WHAT: SealOf = { kind: 'purchase-token', saleId: '7', userId: 'u1' };

describe('seals', () => {
  const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);

  it('open a sealed text for its buyer and sale', () => {
    fc.assert(
      fc.property(id, id, fc.array(id, { maxLength: 3 }), (saleId, userId, fields) => {
        const what = { ...WHAT, saleId, userId };
        expect(ring('k1').open(what, ring('k1').seal(what, fields))).to.deep.equal(fields);
      }),
    );
  });

  it('do not open for another sale, buyer or purpose, or after any change', () => {
    const seals = ring('k1');
    const text = seals.seal(WHAT, [123, 'abc']);
    for (const other of [{ saleId: '8' }, { userId: 'u2' }, { kind: 'queue-pass' }] as Partial<SealOf>[]) {
      expect(seals.open({ ...WHAT, ...other }, text)).to.equal(null);
    }
    for (let i = 0; i < text.length; i++) {
      const other = text[i] === 'A' ? 'B' : 'A';
      expect(seals.open(WHAT, text.slice(0, i) + other + text.slice(i + 1)), String(i)).to.equal(null);
    }
    expect(seals.open(WHAT, text)).to.deep.equal(['123', 'abc']);
  });

  it('do not open if text is moved between the buyer and the fields', () => {
    const seals = ring('k1');
    const text = seals.seal({ ...WHAT, saleId: '7', userId: 'u1' }, ['1']);
    const [keyId, , mac] = text.split('.');
    expect(seals.open({ ...WHAT, saleId: '7', userId: `u1.${keyId}` }, `1.${mac}`)).to.equal(null);
  });

  it('seal with the first key, and accept an older key while it is listed', () => {
    const old = ring('k1').seal(WHAT, [1]);
    expect(ring('k2', 'k1').seal(WHAT, [1])).to.match(/^k2\./);
    expect(ring('k2', 'k1').open(WHAT, old)).to.deep.equal(['1']);
    expect(ring('k2').open(WHAT, old)).to.equal(null);
  });

  it('neither seal nor open without a key, and never seal a text too long to open', () => {
    expect(() => ring().seal(WHAT, [1])).to.throw(RangeError, 'no sealing key');
    expect(ring().open(WHAT, ring('k1').seal(WHAT, [1]))).to.equal(null);
    expect(() => ring('k1').seal(WHAT, ['x'.repeat(466)])).to.throw(RangeError, 'short');
    const longest = 'x'.repeat(465); // 512 characters with `k1`, two dots and an HMAC of 43 characters.
    expect(ring('k1').open(WHAT, ring('k1').seal(WHAT, [longest]))).to.deep.equal([longest]);
  });

  it('reject any other text without an error', () => {
    const seals = ring('k1');
    const unit = fc.nat({ max: 0xffff }).map((code) => String.fromCharCode(code)); // Includes lone surrogates.
    fc.assert(fc.property(fc.string({ maxLength: 60, unit }), (text) => seals.open(WHAT, text) === null));
    expect(seals.open(WHAT, `k1.${'a'.repeat(600)}.${'A'.repeat(43)}`)).to.equal(null);
  });
});
