import { expect } from 'chai';
import { createTokenSigner } from '../../../../src/http/token.js';
import { maskedName, readFragment, readToken } from '../../../../web/shared/sign-in.js';

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('sign-in handed to a page', () => {
  it('names its buyer and its end, as our own tokens do', () => {
    const token = createTokenSigner('a-secret-for-tests-of-forty-bytes-length')({
      userId: 'ann|é'.slice(0, 4),
      roles: [],
      ttlMs: 60_000,
    });
    const signIn = readToken(token);
    expect(signIn).to.include({ token, userId: 'ann|' });
    expect(signIn?.endsAtMs).to.be.closeTo(Date.now() + 60_000, 5000);
  });

  it('needs a buyer but no end', () => {
    expect(readToken(`x.${part({ sub: '张三??>>' })}.y`)).to.include({ userId: '张三??>>', endsAtMs: null });
    for (const wrong of [
      '',
      'x',
      'a.b.c',
      `x.${part(null)}.y`,
      `x.${part({})}.y`,
      `x.${part({ sub: 7 })}.y`,
      `x.${part({ sub: '' })}.y`,
    ]) {
      expect(readToken(wrong), wrong).to.equal(null);
    }
  });

  it('is shown in a form that only the buyer recognises', () => {
    expect(['ann', 'buyer-1042', 'buyer-1043', '张三丰', 'x'].map(maskedName)).to.deep.equal([
      'an…',
      'bu…42',
      'bu…43',
      '张三…',
      'x…',
    ]);
  });

  it('is read after the #, with the language', () => {
    expect(readFragment('#token=a.b-c_d.e&lang=zh')).to.deep.equal({ token: 'a.b-c_d.e', lang: 'zh' });
    expect(readFragment('')).to.deep.equal({ token: null, lang: null });
    expect(readFragment('#section')).to.deep.equal({ token: null, lang: null });
  });
});
