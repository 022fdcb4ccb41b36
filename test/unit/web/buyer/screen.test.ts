import { expect } from 'chai';
import {
  chipOf,
  clockParts,
  screenOf,
  timeToSay,
  untilNextSecondMs,
  type Screen,
} from '../../../../web/buyer/screen.js';
import { newPage, reduce, type PageEvent, type PageState } from '../../../../web/buyer/state.js';
import { clicked, newPurchase, restored } from '../../../../web/buyer/purchase.js';
import { failure, OPENS_MS, saleBody, signInOf, success } from './fake-shop.js';

const NOW_MS = OPENS_MS + 1000;
const signedIn = {
  type: 'signed_in',
  signIn: signInOf('ann'),
  purchase: newPurchase('k1'),
} as const satisfies PageEvent;
const read = (parts: Record<string, unknown> = {}, serverMs = NOW_MS): PageEvent => ({
  type: 'sale_read',
  answer: success(saleBody(serverMs, parts)),
});
const after = (...events: PageEvent[]): PageState => events.reduce(reduce, newPage('7', 'k0'));
const nameAfter = (...events: PageEvent[]): Screen['name'] => screenOf(after(...events), NOW_MS).name;
const buy: PageEvent = { type: 'buy', wallMs: 0, nowMs: NOW_MS };
const answered = (answer: Parameters<typeof success>[0] | string): PageEvent => ({
  type: 'answered',
  answer: typeof answer === 'string' ? failure(answer) : success(answer),
  nowMs: NOW_MS,
});
const ORDER = {
  orderId: '9',
  saleId: '7',
  requestId: 'k1',
  quantity: 1,
  amountCents: 1999,
  currency: 'EUR',
  state: 'pending_payment',
  expiresAt: new Date(NOW_MS + 60_000).toISOString(),
};

describe('screen of the page', () => {
  const cases: [Screen['name'], PageEvent[]][] = [
    ['loading', []],
    ['loading', [{ type: 'sale_read', answer: failure('loading') }]],
    ['missing', [{ type: 'sale_read', answer: failure('not_found') }]],
    ['unreachable', [{ type: 'sale_read', answer: failure('no_answer') }]],
    ['ready', [signedIn, read()]],
    ['ready', [signedIn, read(), { type: 'sale_read', answer: failure('no_answer') }]],
    ['signed_out', [read()]],
    ['sold_out', [read({ stock: 'none' })]],
    ['sold_out', [signedIn, read({ stock: 'none' })]],
    ['paused', [signedIn, read({ state: 'paused' })]],
    ['paused', [read({ state: 'paused' })]],
    ['busy', [signedIn, read({ state: 'loading' })]],
    ['busy', [read({ state: 'loading' })]],
    ['opening', [signedIn, read({ state: 'not_open' })]],
    ['closed', [signedIn, read({ state: 'closed', asksFor: ['signature'] })]],
    ['closed', [read({ state: 'closed' })]],
    ['app_only', [read({ asksFor: ['signature'] })]],
    ['room', [signedIn, read({ asksFor: ['queue_pass'] })]],
    ['preparing', [signedIn, read({ asksFor: ['purchase_token'] })]],
    ['asking', [signedIn, read(), buy]],
    ['asking', [signedIn, read(), buy, answered('overloaded')]],
    ['held', [signedIn, read(), buy, answered({ status: 'pending' })]],
    ['order_loading', [signedIn, read(), buy, answered({ status: 'ordered', orderId: '9' })]],
    ['failed', [signedIn, read(), buy, answered({ status: 'failed', orderId: '9', reason: 'units_lost' })]],
    ['refused', [signedIn, read(), buy, answered('denied')]],
    ['refused', [signedIn, read(), buy, answered('limit_reached')]],
    ['sold_out', [signedIn, read(), buy, answered('sold_out')]],
    ['signed_out', [signedIn, read(), buy, answered('unauthorized')]],
    ['checking', [signedIn, read(), buy, answered('request_conflict')]],
    ['other_buyer', [signedIn, read(), { type: 'sign_in_offered', signIn: signInOf('bob') }]],
    ['ready', [signedIn, read(), { type: 'sign_in_offered', signIn: signInOf('bob') }, { type: 'offer_refused' }]],
  ];
  for (const [name, events] of cases) {
    it(`is ${name} after ${events.map(({ type, ...event }) => `${type} ${JSON.stringify(event).slice(0, 40)}`).join(', ') || 'nothing'}`, () => {
      expect(nameAfter(...events)).to.equal(name);
    });
  }

  it('lets the buyer choose another quantity if the first is too large', () => {
    const two: PageEvent = { type: 'quantity', quantity: 2 };
    for (const code of ['not_enough_left', 'limit_reached']) {
      const state = after(signedIn, read(), two, buy, answered(code));
      expect(screenOf(state, NOW_MS).name, code).to.equal('ready');
      expect(state.purchase.problem?.code).to.equal(code);
      expect(reduce(state, { type: 'quantity', quantity: 1 }).purchase.problem, 'a new quantity').to.equal(null);
    }
  });

  it('shows an order to pay with the time left, and each way in which it can end', () => {
    const ordered = [signedIn, read(), buy, answered({ status: 'ordered', orderId: '9' })];
    const state = after(...ordered, { type: 'order_read', answer: success(ORDER) });
    expect(screenOf(state, NOW_MS + 20_000)).to.deep.include({ name: 'to_pay', leftMs: 40_000 });
    expect(screenOf(state, NOW_MS + 70_000), 'until its end is known').to.deep.include({ name: 'to_pay', leftMs: 0 });
    for (const end of ['paid', 'cancelled', 'expired'] as const) {
      const ended = reduce(state, {
        type: 'step',
        event: end,
        body: { status: 'ordered', orderId: '9', orderState: end },
      });
      expect(screenOf(ended, NOW_MS).name).to.equal(end);
      expect(reduce(ended, { type: 'order_read', answer: success(ORDER) }), 'an older read').to.equal(ended);
    }
  });

  describe('screen after the sign-in has ended', () => {
    const ended: PageEvent = { type: 'signed_out' };
    const ordered = [signedIn, read(), buy, answered({ status: 'ordered', orderId: '9' })];
    const reloaded: PageEvent = { ...signedIn, purchase: restored({ key: 'k1', quantity: 1, clickedAtMs: 1 }) };
    const underWay: [string, PageEvent[]][] = [
      ['looking for a purchase', [signedIn, read(), buy, answered('request_conflict')]],
      ['looking for one of before a reload, the sale not read yet', [reloaded]],
      ['held', [signedIn, read(), buy, answered({ status: 'pending' })]],
      ['asking', [signedIn, read(), buy]],
      ['reading the order', ordered],
    ];
    for (const [title, events] of underWay) {
      it(`reports the ended sign-in: ${title}`, () => {
        expect(nameAfter(...events, ended)).to.equal('signed_out');
      });
    }

    it('reports the ended sign-in to a buyer at the limit', () => {
      const looked: PageEvent = { type: 'orders_read', answer: failure('unauthorized') };
      expect(nameAfter(signedIn, read(), buy, answered('limit_reached'), looked)).to.equal('signed_out');
    });

    it('keeps the final screen of a paid order', () => {
      const paid: PageEvent = {
        type: 'step',
        event: 'paid',
        body: { ...ORDER, status: 'ordered', orderState: 'paid' },
      };
      expect(nameAfter(...ordered, { type: 'order_read', answer: success(ORDER) }, paid, ended)).to.equal('paid');
    });

    it('ignores the refused token when it is handed over again', () => {
      const state = after(signedIn, read(), ended);
      expect(reduce(state, signedIn)).to.equal(state);
    });
  });

  it('repeats the purchase with the same key on a press after a refusal', () => {
    const refused = after(signedIn, read(), buy, answered('denied'));
    expect(reduce(refused, buy).purchase).to.deep.equal(clicked(newPurchase('k1'), 0));
    const gone = reduce(refused, read({ stock: 'none' }));
    expect(screenOf(gone, NOW_MS).name).to.equal('refused');
    expect(screenOf(reduce(gone, buy), NOW_MS).name).to.equal('sold_out');
  });

  it('shows the refund of money that came too late', () => {
    const ordered = [signedIn, read(), buy, answered({ status: 'ordered', orderId: '9' })];
    const refunds = [{ amountCents: 1999, state: 'due', reason: 'ended' }];
    const state = after(...ordered, { type: 'order_read', answer: success({ ...ORDER, state: 'expired', refunds }) });
    expect(state.order?.refundCents).to.equal(1999);
  });

  it('says during a countdown that the buyer is signed out', () => {
    const early = read({ state: 'not_open', asksFor: ['queue_pass'] }, OPENS_MS - 60_000);
    expect(screenOf(after(early), OPENS_MS - 30_000)).to.deep.equal({
      name: 'countdown',
      leftMs: 30_000,
      signedOut: true,
      place: null,
    });
    const waiting: PageEvent = {
      type: 'queue',
      answer: success({ status: 'waiting', ticket: 't', position: null, estimateMs: null }),
    };
    expect(screenOf(after(signedIn, early, waiting), OPENS_MS - 30_000)).to.deep.include({
      signedOut: false,
      place: { status: 'waiting', position: null, estimateMs: null },
    });
  });

  it('shows the most important state in the label beside the title', () => {
    expect(chipOf(after(), NOW_MS)).to.equal('loading');
    expect(chipOf(after(read()), NOW_MS)).to.equal('open');
    expect(chipOf(after(read({ stock: 'few' })), NOW_MS)).to.equal('few');
    expect(chipOf(after(read({ stock: 'none' }), read({ stock: 'few' })), NOW_MS)).to.equal('back');
    expect(chipOf(after(read({ stock: 'none' }), read({ stock: 'few' }), read({ stock: 'none' })), NOW_MS)).to.equal(
      'sold_out',
    );
  });

  it('rounds seconds up, shows zero at the end, and updates on time', () => {
    expect(clockParts(90_061_000)).to.deep.equal({ days: 1, hours: 1, minutes: 1, seconds: 1 });
    expect(clockParts(1)).to.include({ seconds: 1 });
    expect(clockParts(0)).to.include({ seconds: 0 });
    expect(clockParts(-5)).to.include({ seconds: 0 });
    for (const leftMs of [1, 0.4, 999, 1000, 1000.4, 2500, 59_999.5]) {
      const nextMs = untilNextSecondMs(leftMs);
      expect(nextMs, `${leftMs}`).to.be.within(0.1, 1000);
      expect(clockParts(leftMs - nextMs).seconds).to.equal((clockParts(leftMs).seconds + 59) % 60);
      expect(clockParts(leftMs - nextMs + 0.01).seconds).to.equal(clockParts(leftMs).seconds);
    }
  });

  it('announces some moments to a screen reader, each once', () => {
    const said: number[] = [];
    for (let leftMs = 700_000; leftMs > 0; leftMs -= 999) {
      const moment = timeToSay(leftMs + 999, leftMs);
      if (moment !== null) said.push(moment);
    }
    expect(said).to.deep.equal([600_000, 300_000, 60_000, 30_000, 10_000]);
    expect(timeToSay(700_000, 200_000), 'no old announcement after a sleep').to.equal(null);
  });

  it('accepts a click only while the button is on', () => {
    for (const events of [
      [read()],
      [signedIn],
      [signedIn, read({ stock: 'none' })],
      [signedIn, read(), { type: 'online', isOnline: false } as const],
    ]) {
      const state = after(...events);
      expect(reduce(state, buy)).to.equal(state);
    }
    const state = after(signedIn, read());
    expect(reduce(state, buy).purchase).to.deep.equal(clicked(newPurchase('k1'), 0));
  });
});
