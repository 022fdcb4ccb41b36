import { expect } from 'chai';
import { PROBLEMS } from '../../../../src/contract/problem.js';
import { FAILURE_REASONS } from '../../../../src/core/order.js';
import { routesOf } from '../../../../src/http/route.js';
import { ROUTES } from '../../../../src/programs/routes.js';
import { openapiOf } from '../../../../src/http/openapi.js';
import { knownCode, MEANINGS } from '../../../../web/buyer/problem-codes.js';
import { en } from '../../../../web/buyer/words/en.js';
import { languageOf, LANGUAGES } from '../../../../web/buyer/words/languages.js';
import { reasonIn, REASONS } from '../../../../web/buyer/words/words.js';
import { zh } from '../../../../web/buyer/words/zh.js';

/** Codes that only a payment provider receives. */
const OF_PROVIDERS = ['payment_conflict', 'wrong_payment_mode'];
/** Codes outside every operation. The document does not contain them. */
const OUTSIDE = ['route_not_found', 'method_not_allowed', 'request_timeout', 'headers_too_large'];

describe('texts of the page', () => {
  it('cover exactly the codes that the document for buyers names', () => {
    const document = JSON.stringify(openapiOf(ROUTES, 'buyers').paths);
    const named = Object.keys(PROBLEMS).filter((code) => document.includes(`\`${code}\`: `));
    expect(named, 'the document names them').to.include.members(['sold_out', 'payment_declined', 'tokens_gone']);
    const own = routesOf(ROUTES, 'buyers').flatMap(({ codes }) => codes);
    expect(named).to.have.members([...new Set(own)]);
    const expected = [...named.filter((code) => !OF_PROVIDERS.includes(code)), ...OUTSIDE, 'no_answer'];
    expect(Object.keys(MEANINGS).sort()).to.deep.equal(expected.sort());
    expect(knownCode('of_a_newer_server')).to.equal('internal');
  });

  it('cover every reason of a failed order, and a future reason', () => {
    expect([...REASONS]).to.have.members([...FAILURE_REASONS]);
    for (const words of [en, zh]) {
      expect(reasonIn(words, 'units_lost')).to.equal(words.reasons.units_lost);
      expect(reasonIn(words, 'of_a_newer_server')).to.equal(words.reasonUnknown);
    }
  });

  for (const words of [en, zh]) {
    it(`${words.lang}: lacks no text and contains no technical words`, () => {
      const texts = textsIn(words);
      expect(texts.length).to.be.above(150);
      for (const text of texts) {
        expect(text).to.match(/\S/);
        expect(text).not.to.match(/[a-z]+_[a-z]+|undefined|NaN|null|token|Idempotency|503|429/);
      }
    });
  }

  it('loads each language, and finds it by the names that browsers use', async () => {
    for (const { lang, load } of LANGUAGES) expect((await load()).lang).to.equal(lang);
    const found = ['en-GB', 'zh', 'ZH-TW', 'de'].map((wanted) => languageOf(wanted).lang);
    expect(found).to.deep.equal(['en', 'zh-CN', 'zh-CN', 'en']);
  });

  it('contains Chinese in every Chinese text', () => {
    for (const text of textsIn(zh).filter((one) => !['zh-CN'].includes(one))) expect(text).to.match(/\p{Script=Han}/u);
  });
});

/** Returns every text, except texts that may be empty. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value === 'function') return [String((value as (value: string) => unknown)('7'))];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, one]) => (name === 'text' && one === '' ? [] : textsIn(one)));
}
