import { expect } from 'chai';
import {
  afterListening,
  listenAgainIn,
  LISTENING,
  type Listened,
  type Listening,
} from '../../../../web/buyer/channel.js';

const after = (...listened: Listened[]): Listening => listened.reduce(afterListening, LISTENING);
const times = (count: number, listened: Listened): Listened[] => Array<Listened>(count).fill(listened);

describe('channels for news of a purchase', () => {
  it('start with a stream, and keep a stream that works', () => {
    expect(LISTENING.channel).to.equal('stream');
    expect(after(...times(50, 'worked')).channel).to.equal('stream');
    expect(after('cut', 'worked', 'cut', 'worked', 'cut').channel).to.equal('stream');
  });

  it('fall back to a long poll if a stream fails, and then to polls', () => {
    expect(after('cut').channel).to.equal('stream');
    expect(after('cut', 'cut').channel).to.equal('long_poll');
    expect(after('refused').channel).to.equal('long_poll');
    expect(after('silent').channel).to.equal('long_poll');
    expect(after('refused', 'refused', 'cut').channel).to.equal('long_poll');
    expect(after('refused', 'refused', 'cut', 'refused').channel).to.equal('poll');
    expect(after('refused', ...times(20, 'refused')).channel, 'for as long as it takes').to.equal('poll');
  });

  it('return to the stream after a fallback has worked for a while', () => {
    expect(after('refused', ...times(11, 'worked')).channel).to.equal('long_poll');
    expect(after('refused', ...times(12, 'worked'))).to.deep.equal(LISTENING);
    expect(after('refused', ...times(3, 'refused'), ...times(12, 'worked'))).to.deep.equal(LISTENING);
  });

  it('wait as long as the stream requested, and longer after each fault', () => {
    expect(listenAgainIn(LISTENING, 2000, true)).to.deep.equal([2000, 3000]);
    const faulty: Listening = { channel: 'poll', faults: 6, good: 0 };
    expect(listenAgainIn(faulty, null, true)).to.deep.equal([8000, 16_000]);
    for (const channel of ['stream', 'long_poll', 'poll'] as const) {
      for (const isPending of [true, false]) {
        const [fromMs, toMs] = listenAgainIn({ channel, faults: 0, good: 3 }, null, isPending);
        expect(toMs, channel).to.be.above(fromMs);
      }
    }
  });

  it('poll slowly once the buyer no longer waits for the order', () => {
    for (const channel of ['long_poll', 'poll'] as const) {
      expect(listenAgainIn({ channel, faults: 0, good: 3 }, null, false)[0]).to.be.at.least(5000);
    }
  });
});
