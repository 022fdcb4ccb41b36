import { expect } from 'chai';
import fc from 'fast-check';
import { exportLine, headingOf } from '../../../src/http/export-lines.js';
import { unitTexts } from '../../helpers/texts.js';

const cell = (value: unknown): string => exportLine({ a: value }, ['a'], 'csv').slice(0, -1);

describe('export line', () => {
  for (const [title, value, shown] of [
    ['a formula', '=1+1', "'=1+1"],
    ['a formula behind a semicolon', 'x;=1+1;', "x;'=1+1;"],
    ['a formula in quotes behind a semicolon', 'x;"=1+1"', `"x;'""=1+1"""`],
    ['a formula behind blanks', 'x; @SUM(1)', "x;' @SUM(1)"],
    ['a formula behind a tab', 'x\t=1+1', String.raw`x\u0009=1+1`],
    ['a formula of its own behind a tab', '\t=1+1', String.raw`\u0009=1+1`],
    ['a wide sign', '\uff1d1+1', "'\uff1d1+1"],
    ['a hyphen', '-cmd', "'-cmd"],
    ['an id of 18 digits', '123456789012345678', "'123456789012345678"],
    ['an id of 15 digits', '123456789012345', '123456789012345'],
    ['zeros in front', '007', "'007"],
    ['an exponent', '12e34', "'12e34"],
    ['a date', '1-2', "'1-2"],
    ['a time of ours', '2030-01-01T00:00:00.000Z', '2030-01-01T00:00:00.000Z'],
    ['a number', 1998, '1998'],
    ['nothing', null, ''],
    ['a comma and a quote', 'a,"b', '"a,""b"'],
    ['a line break', 'a\r\nb', String.raw`a\u000d\u000ab`],
    ['what steers a terminal', '\x1b[2J\u009b\u202e\u200f\u2028', String.raw`\u001b[2J\u009b\u202e\u200f\u2028`],
    ['an object', { a: ';=1', b: '\u202e' }, `"{""a"":""\\u003b=1"",""b"":""\\u202e""}"`],
  ] as const) {
    it(`shows ${title} unchanged, and no formula runs`, () => {
      expect(cell(value)).to.equal(shown);
    });
  }

  it('is one line without control sequences or formulas, whatever the text', () => {
    fc.assert(
      fc.property(fc.oneof(unitTexts(20), fc.stringMatching(/^[;=+@'" \-\tx]{0,20}$/)), (text) => {
        const csv = cell(text);
        expect(csv).not.to.match(/[\p{C}\p{Zl}\p{Zp}]/u);
        for (const part of csv.replace(/^"|"$/g, '').split(';')) {
          expect(part, csv).not.to.match(/^[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20]/);
        }
        const line = exportLine({ a: text }, ['a'], 'jsonl');
        expect(line)
          .not.to.match(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/u)
          .and.not.match(/\n./);
        expect(JSON.parse(line)).to.deep.equal({ a: text });
      }),
    );
  });

  it('begins with a byte order mark, so that Excel recognises UTF-8', () => {
    expect(headingOf(['a', 'b'], 'csv')).to.equal('\ufeffa,b\n');
    expect(headingOf(['a', 'b'], 'jsonl')).to.equal('');
  });
});
