import { expect } from 'chai';
import { PassThrough } from 'node:stream';
import sinon from 'sinon';
import { inLine, print, printAll, printError, tableLine } from '../../../src/process/print.js';

/** Clears the screen, returns the cursor, breaks the line, reverses and hides text, and ends the line. */
const HOSTILE = 'a\x1b[2J\r\nsale 7 is open\x9b2J\u202e\u200b\u2028\x7f\ud800z';
const SHOWN = 'a\\u001b[2J\\u000d\\u000asale 7 is open\\u009b2J\\u202e\\u200b\\u2028\\u007f\\ud800z';

describe('command output', () => {
  afterEach(() => sinon.restore());
  const printed = (by: typeof print, text: string): string => {
    const stub = sinon.stub(console, by === print ? 'log' : 'error');
    by(text);
    stub.restore();
    return String(stub.firstCall.args[0]);
  };

  it('escapes every control character, line break and direction mark in stored text', () => {
    expect(inLine(HOSTILE)).to.equal(SHOWN);
    expect(tableLine(2)('x', HOSTILE)).to.equal(`x   ${SHOWN}`);
  });

  it('keeps our own line breaks and removes terminal control sequences', () => {
    for (const by of [print, printError]) expect(printed(by, 'a\nb\x1b[1m\rc')).to.equal('a\nb\\u001b[1m\\u000dc');
  });

  it('keeps a line of JSON on one line with the same value', () => {
    const shown = printed(print, JSON.stringify({ title: HOSTILE, emoji: '🖋' }));
    expect(shown).to.match(/^[\x20-\x7e🖋]+$/u);
    expect(JSON.parse(shown)).to.deep.equal({ title: HOSTILE, emoji: '🖋' });
  });

  it('waits for a slow reader and stops when the reader leaves', async () => {
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
      expect(isWritten, 'nobody will read it').to.equal(false);
      expect(await printAll('more\n')).to.equal(false);
    } finally {
      stdout.restore();
    }
  });

  it('prints text of any language unchanged', () => {
    expect(inLine('Füller, ручка, 鋼筆, قلم 🖋')).to.equal('Füller, ручка, 鋼筆, قلم 🖋');
  });
});
