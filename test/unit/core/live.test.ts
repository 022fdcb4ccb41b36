import { expect } from 'chai';
import sinon from 'sinon';
import { liveText } from '../../../src/core/live.js';

describe('reloaded text', () => {
  let clock: sinon.SinonFakeTimers;
  beforeEach(() => {
    clock = sinon.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => clock.restore());

  it('is read at most every five seconds, and only on demand', () => {
    let reads = 0;
    const live = liveText('first', () => `read ${++reads}`);
    clock.tick(4_999);
    expect([live(), live(), reads]).to.deep.equal(['first', 'first', 0]);
    clock.tick(1);
    expect([live(), live(), reads]).to.deep.equal(['read 1', 'read 1', 1]);
    clock.tick(60_000);
    expect(reads, 'nobody has asked').to.equal(1);
    expect(live()).to.equal('read 2');
  });

  it('keeps the last good text if the file is missing or unusable', () => {
    let now: string | null = 'first';
    const live = liveText('first', () => {
      if (now === null) throw new Error('ENOENT');
      return now;
    });
    const later = (): string => (clock.tick(5_000), live());
    now = 'second';
    expect(later()).to.equal('second');
    now = null;
    expect([later(), later()]).to.deep.equal(['second', 'second']);
    now = 'third';
    expect(later()).to.equal('third');
  });

  it('passes readers the previous text, so that they can skip an unchanged text', () => {
    const seen: string[] = [];
    const live = liveText('first', (last) => {
      seen.push(last);
      return 'second';
    });
    for (let n = 0; n < 2; n++) {
      clock.tick(5_000);
      live();
    }
    expect(seen).to.deep.equal(['first', 'second']);
  });
});
