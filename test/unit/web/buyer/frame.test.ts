import { expect } from 'chai';
import { joinFrame, type Frame, type FrameWindow } from '../../../../web/buyer/frame.js';
import { newPage, type PageState } from '../../../../web/buyer/state.js';

const SHOP = 'https://shop.example';
const MINUTE_MS = 60_000;
const PAGE = newPage('7', 'k1');
const ENDED: PageState = { ...PAGE, signInEnded: true };

describe('page in a frame of the shop', () => {
  let nowMs: number;
  let told: { readonly atMs: number; readonly type: string; readonly to: string }[];
  let tokens: string[];
  let hear: (message: { source: unknown; origin: string; data: unknown }) => void;
  let shop: FrameWindow;
  let frame: Frame;
  beforeEach(() => {
    [nowMs, told, tokens] = [0, [], []];
    shop = {
      get parent() {
        return shop;
      },
      postMessage: (message, to) => void told.push({ atMs: nowMs, type: (message as { type: string }).type, to }),
      addEventListener: () => undefined,
    };
    const self: FrameWindow = {
      parent: shop,
      postMessage: () => undefined,
      addEventListener: (_, listener) => void (hear = listener),
    };
    frame = joinFrame(self, (token) => void tokens.push(token), { monotonicMs: () => nowMs, random: () => 1 });
  });
  const answer = (token: string): void => hear({ source: shop, origin: SHOP, data: { type: 'seckill:token', token } });
  const askedAt = (): number[] => told.filter(({ type }) => type === 'seckill:sign-in-ended').map(({ atMs }) => atMs);

  it('requests a token when it starts, and accepts a token only from the surrounding page', () => {
    expect(told).to.deep.equal([{ atMs: 0, type: 'seckill:ready', to: '*' }]);
    hear({ source: {}, origin: SHOP, data: { type: 'seckill:token', token: 'x' } });
    for (const data of [null, 'x', { type: 'other', token: 'x' }, { type: 'seckill:token', token: 7 }]) {
      hear({ source: shop, origin: SHOP, data });
    }
    expect(tokens).to.deep.equal([]);
    answer('t1');
    expect(tokens).to.deep.equal(['t1']);
  });

  it('asks less and less often if the shop keeps answering with refused tokens', () => {
    for (; nowMs < 10 * MINUTE_MS; nowMs += 100) {
      const asks = askedAt().length;
      frame.tell(ENDED);
      if (askedAt().length > asks) answer('refused as well');
    }
    const pauses = askedAt().map((atMs, nth, all) => atMs - (all[nth - 1] ?? 0));
    expect(pauses.slice(0, 8)).to.deep.equal([0, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000]);
    expect(pauses.length).to.be.below(18);
  });

  it('asks once if the shop does not answer', () => {
    for (; nowMs < 10 * MINUTE_MS; nowMs += 1000) frame.tell(ENDED);
    expect(askedAt()).to.deep.equal([0]);
  });

  it('reports the end of a sign-in at once if the sign-in has lasted', () => {
    for (let nth = 0; nth < 4; nth++) {
      frame.tell(ENDED);
      answer('t');
      nowMs += 1000;
    }
    frame.tell(PAGE);
    nowMs += 10 * MINUTE_MS;
    frame.tell(ENDED);
    expect(askedAt().at(-1)).to.equal(nowMs);
    answer('t');
    nowMs += 1000;
    frame.tell(ENDED);
    expect(askedAt().at(-1), 'the next request after a second').to.equal(nowMs);
  });

  it('reports nothing if there is no frame', () => {
    joinFrame(shop, () => undefined, { monotonicMs: () => 0, random: () => 1 }).tell(ENDED);
    expect(told.filter(({ type }) => type !== 'seckill:ready')).to.deep.equal([]);
  });
});
