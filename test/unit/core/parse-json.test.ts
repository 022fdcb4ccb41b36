import { expect } from 'chai';
import fc from 'fast-check';
import { jsonOrNull, jsonOrText, parseJson } from '../../../src/core/parse-json.js';
import { unitTexts } from '../../helpers/texts.js';

const errorOf = (text: string): string | null => {
  const parsed = parseJson(text, 'The body');
  return 'error' in parsed ? parsed.error : null;
};

/** Not every version of Node.js produces each message. */
function positionOfParse(text: string): number | null {
  try {
    JSON.parse(text);
  } catch (error) {
    const [, position] = /at position (\d+)/.exec(String(error)) ?? [];
    if (position !== undefined) return Number(position);
  }
  return null;
}

describe('JSON or a plain text', () => {
  it('returns the parsed value, null or the text itself', () => {
    for (const read of [jsonOrNull, jsonOrText]) expect(read('{"a":[1]}')).to.deep.equal({ a: [1] });
    expect(jsonOrText('null')).to.equal(null);
    expect(jsonOrNull('{')).to.equal(null);
    expect(jsonOrText('{')).to.equal('{');
  });
});

describe('parseJson', () => {
  it('returns the value of valid JSON', () => {
    expect(parseJson(' {"a":[1,-2.5e3,null,true,"\\u00e9\\""]} ', 'x')).to.deep.equal({
      value: { a: [1, -2500, null, true, 'é"'] },
    });
  });

  const PLACES: Record<string, string> = {
    '': 'it is empty',
    ' \n': 'it is empty',
    '{"quantity":1,}': 'unexpected "}" at line 1, column 15',
    '{\n  "a": 1\n  "b": 2\n}': 'unexpected "\\"" at line 3, column 3',
    '{"a": nope}': 'unexpected "n" at line 1, column 7',
    '{"a": 01}': 'unexpected "1" at line 1, column 8',
    "{'a': 1}": 'unexpected "\'" at line 1, column 2',
    '[1, 2': 'it ends too early, at line 1, column 6',
    '{"a"\n': 'it ends too early, at line 2, column 1',
    '{"a": 1} x': 'unexpected "x" at line 1, column 10',
    '[1}': 'unexpected "}" at line 1, column 3',
    '{"a": "b': 'the string at line 1, column 7 does not end, or holds a bad character',
    '{"a": "b\nc"}': 'the string at line 1, column 7 does not end, or holds a bad character',
    '[😀]': 'unexpected "😀" at line 1, column 2',
  };
  for (const [text, place] of Object.entries(PLACES)) {
    it(`names the place where ${JSON.stringify(text)} stops being JSON`, () => {
      expect(errorOf(text)).to.equal(`The body is not JSON: ${place}.`);
    });
  }

  it('names the same token as JSON.parse if any one character is wrong', () => {
    const text = '{"a":[1,-2.5e3,null,{"b":"c\\n\\u0041"}],"d":false}';
    let compared = 0;
    for (let at = 1; at < text.length; at++) {
      const broken = `${text.slice(0, at)}§${text.slice(at + 1)}`;
      const position = positionOfParse(broken);
      const column = /unexpected .* column (\d+)/.exec(errorOf(broken) ?? '')?.[1];
      if (position === null || column === undefined) continue;
      compared++;
      const inToken = broken.slice(Number(column) - 1, position); // a wrong number is named by its first character
      expect(inToken, broken).to.match(/^[\w.+-]*$/);
      expect(Number(column)).to.be.at.most(position + 1);
    }
    expect(compared).to.be.greaterThan(5);
  });

  it('refuses only half surrogate pairs, escaped or not, in any text or name', () => {
    const escaped = (text: string): string =>
      `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`;
    fc.assert(
      fc.property(unitTexts(8), unitTexts(8), fc.boolean(), (name, text, isEscaped) => {
        const written = isEscaped ? escaped : JSON.stringify;
        const parsed = parseJson(`[{${written(name)}:[0,${written(text)}]}]`, 'The body');
        if (name.isWellFormed() && text.isWellFormed()) {
          expect(parsed).to.deep.equal({
            value: [JSON.parse(`{${JSON.stringify(name)}:[0,${JSON.stringify(text)}]}`)],
          });
        } else
          expect(parsed)
            .to.have.property('error')
            .that.matches(/^The body contains half a character/);
      }),
    );
    expect(errorOf('"\\\\ud83d"'), 'a backslash and no escape').to.equal(null);
    expect(errorOf(`${'['.repeat(200_000)}"\\ud83d"${']'.repeat(200_000)}`)).to.match(/^The body/);
  });

  it('says if a text is nested too deeply to find the mistake in it', () => {
    expect(errorOf('['.repeat(200_000))).to.equal('The body is not JSON: it is nested too deeply.');
  });

  it('finds the place of a mistake in a text of several megabytes', () => {
    const long = `["${'\\n'.repeat(1_000_000)}", "${'x'.repeat(2_000_000)}", ]`;
    expect(errorOf(long)).to.contain('unexpected "]" at line 1');
  });
});
