import { expect } from 'chai';
import { PassThrough } from 'node:stream';
import sinon from 'sinon';
import { inLine, print, printAll, printError, tableLine } from '../../../src/cli/print.js';

/** Clears the screen, goes back to the start of the line, begins another, turns the direction round, hides and ends a line. */
const HOSTILE = 'a\x1b[2J\r\nsale 7 is open\x9b2J\u202e\u200b\u2028\x7f\ud800z';
const SHOWN = 'a\\u001b[2J\\u000d\\u000asale 7 is open\\u009b2J\\u202e\\u200b\\u2028\\u007f\\ud800z';

describe('what commands print', () => {
  afterEach(() => sinon.restore());
  const printed = (by: typeof print, text: string): string => {
    const stub = sinon.stub(console, by === print ? 'log' : 'error');
    by(text);
    stub.restore();
    return String(stub.firstCall.args[0]);
  };

  it('no control, line break or mark of direction of a stored text reaches the terminal: it is shown as an escape', () => {
    expect(inLine(HOSTILE)).to.equal(SHOWN);
    expect(tableLine(2)('x', HOSTILE)).to.equal(`x   ${SHOWN}`);
  });

  it('our own lines stay lines, without what steers a terminal', () => {
    for (const by of [print, printError]) expect(printed(by, 'a\nb\x1b[1m\rc')).to.equal('a\nb\\u001b[1m\\u000dc');
  });

  it('a line of JSON stays one line with the same value', () => {
    const shown = printed(print, JSON.stringify({ title: HOSTILE, emoji: '🖋' }));
    expect(shown).to.match(/^[\x20-\x7e🖋]+$/u);
    expect(JSON.parse(shown)).to.deep.equal({ title: HOSTILE, emoji: '🖋' });
  });

  it('much text waits for a reader that is slow, and ends with one that leaves', async () => {
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const reader = new PassThrough({ highWaterMark: 1 });
    const stdout = sinon.stub(process, 'stdout').get(() => reader);
    try {
      let isWritten: boolean | null = null;
      const write = (): Promise<void> => printAll('a line\n').then((is) => void (isWritten = is));
      const slow = write();
      await turn();
      expect(isWritten, 'nobody has read it').to.equal(null);
      reader.resume();
      await slow;
      expect(isWritten).to.equal(true);
      reader.pause();
      const last = write();
      reader.destroy();
      await last;
      expect(isWritten, 'nobody will').to.equal(false);
      expect(await printAll('more\n')).to.equal(false);
    } finally {
      stdout.restore();
    }
  });

  it('text of any language is printed as it is', () => {
    expect(inLine('Füller, ручка, 鋼筆, قلم 🖋')).to.equal('Füller, ручка, 鋼筆, قلم 🖋');
  });
});
