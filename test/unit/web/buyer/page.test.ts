import { expect } from 'chai';
import sinon, { type SinonFakeTimers } from 'sinon';
import { laneOf } from '../../../../src/core/bucket.js';
import type { Page } from '../../../../web/buyer/page.js';
import { screenOf } from '../../../../web/buyer/screen.js';
import { FakeShop, FakeStream, json, OPENS_MS, problem, saleBody, signInOf } from './fake-shop.js';

const BUY = 'POST /purchases';
const MINUTE_MS = 60_000;

describe('sale page', () => {
  let clock: SinonFakeTimers;
  let shop: FakeShop;
  const pages: Page[] = [];
  beforeEach(() => {
    clock = sinon.useFakeTimers({ now: OPENS_MS + 10_000, toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    shop = new FakeShop(clock);
  });
  afterEach(() => {
    for (const page of pages.splice(0)) page.stop();
    clock.restore();
  });
  /** Opens a page and waits until it has read the sale. */
  async function open(signIn = signInOf('ann') as Parameters<FakeShop['open']>[0]): Promise<Page> {
    const page = shop.open(signIn);
    pages.push(page);
    await clock.tickAsync(100);
    return page;
  }
  /** Opens a page, clicks on the button and lets this time pass. */
  async function openAndBuy(afterMs = 100): Promise<Page> {
    const page = await open();
    page.buy();
    await clock.tickAsync(afterMs);
    return page;
  }
  const keysSent = (to = BUY): (string | undefined)[] =>
    shop.asked.filter(({ what }) => what === to).map(({ headers }) => headers['Idempotency-Key']);
  const screenAt = (page: Page): string => screenOf(page.state, page.nowMs()).name;
  const order = (parts: object = {}): Record<string, unknown> => ({
    orderId: '9',
    saleId: '7',
    requestId: 'key-2',
    quantity: 1,
    amountCents: 1999,
    currency: 'EUR',
    state: 'pending_payment',
    createdAt: new Date(clock.now).toISOString(),
    expiresAt: new Date(clock.now + 15 * MINUTE_MS).toISOString(),
    ...parts,
  });
  /** Makes the server hold the purchase and report that by its stream. */
  function holds(): FakeStream {
    const stream = new FakeStream();
    shop.on(BUY, () => json({ status: 'pending' }, 202));
    shop.on(
      'GET /purchases/key-2/events',
      () => stream.write('retry: 2000\n\n').say('pending', { status: 'pending' }).response,
    );
    return stream;
  }
  const ORDERED = { status: 'ordered', orderId: '9', orderState: 'pending_payment' };

  describe('opening', () => {
    for (const [wallAheadMs, how] of [
      [0, 'right'],
      [3_600_000, 'an hour ahead'],
      [-3_600_000, 'an hour behind'],
    ] as const) {
      it(`enables the button at the server's opening second with a wall clock that is ${how}`, async () => {
        clock.setSystemTime(OPENS_MS - 2 * MINUTE_MS);
        shop.wallAheadMs = wallAheadMs;
        shop.sale = { state: 'not_open' };
        const page = await open();
        expect(screenAt(page)).to.equal('countdown');
        page.buy();
        expect(shop.count(BUY), 'not before its time').to.equal(0);
        await clock.tickAsync(OPENS_MS - clock.now - 50);
        expect(screenAt(page)).to.equal('countdown');
        page.buy();
        const looks = shop.count('GET ');
        await clock.tickAsync(60);
        expect(screenAt(page), 'by the clock alone').to.equal('ready');
        expect(shop.count('GET '), 'no crowd of requests at the opening').to.equal(looks);
        expect(shop.count(BUY)).to.equal(0);
        page.buy();
        await clock.tickAsync(50);
        expect(shop.count(BUY)).to.equal(1);
      });
    }

    it('reads the sale a few times before the opening, and once after it', async () => {
      shop.on('GET ', () => json(saleBody(clock.now, { state: clock.now < OPENS_MS ? 'not_open' : 'open' })));
      const at: number[][] = [];
      for (const random of [0.1, 0.9]) {
        clock.setSystemTime(OPENS_MS - 5 * MINUTE_MS);
        shop.asked.length = 0;
        shop.random = random;
        const page = await open();
        await clock.tickAsync(5 * MINUTE_MS + 25_000);
        page.stop();
        at.push(shop.asked.map(({ atMs }) => atMs - OPENS_MS));
      }
      for (const moments of at) {
        expect(moments.length).to.be.within(5, 12);
        expect(moments.filter((ms) => ms > -5000 && ms < 5000)).to.deep.equal([]);
        expect(moments.filter((ms) => ms >= 5000).length).to.be.within(1, 2);
      }
      expect(at[0]?.at(-1)).not.to.equal(at[1]?.at(-1));
    });

    it('enables the button at the right second behind a cache that sends no Age', async () => {
      const CACHING = { 'cache-control': 'public, max-age=1, stale-while-revalidate=1' };
      shop.on('GET ', ({ isFresh }) =>
        isFresh
          ? json(saleBody(clock.now, { state: 'not_open' }), 200, { 'cache-control': 'no-store' })
          : json(saleBody(clock.now - 3900, { state: 'not_open' }), 200, CACHING),
      );
      for (const untilOpenMs of [5 * MINUTE_MS, 30 * MINUTE_MS]) {
        shop.asked.length = 0;
        clock.setSystemTime(OPENS_MS - untilOpenMs);
        const page = await open();
        await clock.tickAsync(OPENS_MS - clock.now - 50);
        expect(screenAt(page)).to.equal('countdown');
        await clock.tickAsync(200);
        expect(screenAt(page)).to.equal('ready');
        const fresh = shop.asked.filter(({ isFresh }) => isFresh).map(({ atMs }) => OPENS_MS - atMs);
        expect(fresh.length).to.be.within(1, 4);
        expect(fresh[0], 'not long before').to.be.below(10 * MINUTE_MS);
        page.stop();
      }
    });

    it('learns the time again after the tab slept, and drops the old time', async () => {
      clock.setSystemTime(OPENS_MS - 10 * MINUTE_MS);
      shop.sale = { state: 'not_open' };
      const page = await open();
      const looks = shop.count('GET ');
      shop.wallAheadMs = 5 * MINUTE_MS; // as if the monotonic clock had stood still
      page.watchClocks();
      expect(page.state.clock?.isSuspect).to.equal(true);
      await clock.tickAsync(100);
      expect(shop.count('GET ')).to.equal(looks + 1);
      expect(page.state.clock?.isSuspect).to.equal(false);
    });
  });

  describe('purchase', () => {
    it('keeps one key through two clicks, a lost answer, busy answers and a reload', async () => {
      shop.on(
        BUY,
        () => 'fails',
        () => problem(503, 'overloaded', 1000),
        () => problem(429, 'rate_limited', 2000),
        () => 'hangs',
      );
      const page = await open();
      expect(shop.stored.get('seckill:purchase:7:ann'), 'made before the click').to.contain('key-2');
      page.buy();
      page.buy();
      await clock.tickAsync(10_000);
      page.buy();
      page.stop();
      shop.on(`GET /purchases/key-2`, () => problem(404, 'purchase_not_found'));
      holds();
      const again = await open(null);
      await clock.tickAsync(1000);
      expect(screenAt(again)).to.equal('held');
      expect(keysSent()).to.deep.equal(Array(5).fill('key-2'));
    });

    it('is sent again when the server asks for it, not before', async () => {
      shop.on(BUY, () => problem(503, 'overloaded', 4000));
      await openAndBuy(30_000);
      const at = shop.asked.filter(({ what }) => what === BUY).map(({ atMs }) => atMs);
      expect(at.length).to.be.within(4, 8);
      for (let i = 1; i < at.length; i++) expect((at[i] as number) - (at[i - 1] as number)).to.be.at.least(4000);
    });

    it('is left to the buyer after two minutes, with the same key for the next click', async () => {
      shop.on(BUY, () => problem(503, 'overloaded', 1000));
      const page = await open();
      page.buy();
      shop.on('GET /purchases/key-2', () => problem(404, 'purchase_not_found'));
      await clock.tickAsync(2.5 * MINUTE_MS);
      expect(screenAt(page)).to.equal('ready');
      expect(page.state.purchase.problem?.code).to.equal('overloaded');
      const tries = shop.count(BUY);
      await clock.tickAsync(MINUTE_MS);
      expect(shop.count(BUY)).to.equal(tries);
      page.buy();
      await clock.tickAsync(100);
      expect(shop.asked.at(-1)?.headers['Idempotency-Key']).to.equal('key-2');
      expect(shop.asked.at(-1)?.headers['Seckill-Lane']).to.equal(String(laneOf('ann')));
    });

    it('is shown as held if it is given up after an attempt has arrived', async () => {
      shop.on(BUY, () => problem(503, 'outcome_unknown', 60_000));
      shop.on('GET /purchases/key-2', () => json({ status: 'pending' }));
      const page = await openAndBuy(500);
      page.giveUp();
      await clock.tickAsync(3000);
      expect(screenAt(page)).to.equal('held');
    });

    it('includes the quantity, which stays fixed while the purchase is under way', async () => {
      holds();
      const page = await open();
      page.setQuantity(2);
      page.buy();
      page.setQuantity(1);
      await clock.tickAsync(100);
      expect(shop.asked.find(({ what }) => what === BUY)?.body).to.deep.equal({ quantity: 2 });
      expect(page.state.purchase.quantity).to.equal(2);
    });

    it('is not sent while offline, and continues with its key once online', async () => {
      shop.on(
        BUY,
        () => 'hangs',
        () => problem(409, 'sold_out'),
      );
      shop.on('GET /purchases/key-2', () => problem(404, 'purchase_not_found'));
      const page = await openAndBuy();
      shop.online = false;
      page.setOnline(false);
      const sent = shop.asked.length;
      await clock.tickAsync(MINUTE_MS);
      expect(shop.asked.length).to.equal(sent);
      shop.online = true;
      page.setOnline(true);
      await clock.tickAsync(100);
      expect(shop.count(BUY)).to.equal(2);
      expect(screenAt(page), 'the first try may have arrived').to.equal('checking');
      shop.sale = { stock: 'none' };
      await clock.tickAsync(3000);
      expect(screenAt(page)).to.equal('sold_out');
    });

    it('needs a click and a new key for another purchase once the first has ended', async () => {
      shop.on(BUY, () => json({ status: 'ordered', orderId: '9' }));
      shop.on('GET /v1/orders/9', () => json(order()));
      const page = await openAndBuy(200);
      page.again();
      expect(page.state.purchase.key, 'it can still be paid').to.equal('key-2');
      shop.on('POST /v1/orders/9/cancel', () => json(order({ state: 'cancelled' })));
      page.move('cancel');
      await clock.tickAsync(200);
      expect(screenAt(page)).to.equal('cancelled');
      page.again();
      const { key, step } = page.state.purchase;
      expect(step).to.equal('ready');
      expect(key).not.to.equal('key-2');
      expect(shop.stored.get('seckill:purchase:7:ann')).to.contain(key);
      page.buy();
      await clock.tickAsync(200);
      expect(keysSent()).to.deep.equal(['key-2', key]);
    });

    it('shows the order of a buyer who has reached the limit', async () => {
      shop.on(BUY, () => problem(409, 'limit_reached'));
      shop.on('GET /v1/me/orders?limit=50', () =>
        json({
          orders: [order({ saleId: '8', state: 'paid' }), order({ orderId: '5', state: 'expired' }), order()],
          next: null,
        }),
      );
      shop.on('GET /v1/orders/9', () => json(order()));
      const page = await openAndBuy(500);
      expect(screenAt(page)).to.equal('to_pay');
      expect(page.state.order?.orderId).to.equal('9');
    });

    it('shows a refund when the buyer returns to the tab, and to a buyer who has reached the limit', async () => {
      shop.sale = { limitPerBuyer: 1 };
      shop.on(BUY, () => problem(409, 'limit_reached'));
      const refunded = order({ state: 'refunded', refundedCents: 500 });
      shop.on('GET /v1/me/orders?limit=50', () => json({ orders: [refunded], next: null }));
      shop.on('GET /v1/orders/9', () => json(order({ state: 'paid' })));
      const page = await openAndBuy(500);
      expect(screenAt(page)).to.equal('paid');
      shop.on('GET /v1/orders/9', () => json(refunded));
      page.setVisible(false);
      await clock.tickAsync(30 * MINUTE_MS);
      expect(shop.count('GET /v1/orders/9')).to.equal(1);
      page.setVisible(true);
      await clock.tickAsync(30 * MINUTE_MS);
      expect([screenAt(page), page.state.order?.refundedCents]).to.deep.equal(['refunded', 500]);
      expect(shop.count('GET /v1/orders/9'), 'no polling').to.equal(2);
      page.again();
      expect(screenAt(page), 'its units still count').to.equal('refunded');
    });

    it('shows the order of a buyer who won in another tab once it is written', async () => {
      shop.on(BUY, () => problem(409, 'limit_reached'));
      const writtenAtMs = clock.now + 5000;
      shop.on('GET /v1/me/orders?limit=50', () =>
        json({ orders: clock.now < writtenAtMs ? [] : [order()], next: null }),
      );
      shop.on('GET /v1/orders/9', () => json(order()));
      const page = await openAndBuy(1000);
      expect(screenAt(page)).to.equal('refused');
      await clock.tickAsync(10_000);
      expect(screenAt(page)).to.equal('to_pay');
    });

    it('shows the order if the sale now requires signatures, even after a reload', async () => {
      holds();
      const refused = (): Response => problem(401, 'bad_signature');
      for (const end of ['', '/events', '?wait=25']) shop.on(`GET /purchases/key-2${end}`, refused);
      shop.on('GET /v1/me/orders?limit=50', () => json({ orders: [order()], next: null }));
      shop.on('GET /v1/orders/9', () => json(order()));
      const page = await openAndBuy(20_000);
      expect(screenAt(page), 'held').to.equal('to_pay');
      page.stop();
      const again = await open(null);
      await clock.tickAsync(1000);
      expect(screenAt(again), 'loaded again').to.equal('to_pay');
    });

    it('shows the refusal to a buyer without an order', async () => {
      shop.on(BUY, () => problem(409, 'limit_reached'));
      shop.on(
        'GET /v1/me/orders?limit=50',
        () => problem(503, 'unavailable', 1000),
        () => json({ orders: [], next: null }),
      );
      const page = await openAndBuy(40_000);
      expect(screenAt(page)).to.equal('refused');
      const reads = shop.count('GET /v1/me/orders?limit=50');
      expect(reads).to.be.within(4, 8);
      await clock.tickAsync(MINUTE_MS);
      expect(shop.count('GET /v1/me/orders?limit=50')).to.equal(reads);
      page.buy();
      await clock.tickAsync(500);
      expect(keysSent()).to.deep.equal(['key-2', 'key-2']);
      expect(shop.count('GET /v1/me/orders?limit=50')).to.equal(reads + 1);
    });
  });

  describe('sold out', () => {
    it('appears at once, whatever an older read says, and ends when units return', async () => {
      shop.on(BUY, () => problem(409, 'sold_out'));
      const page = await openAndBuy(50);
      expect(screenAt(page)).to.equal('sold_out');
      await clock.tickAsync(1000);
      expect(screenAt(page), 'a page that was cached for a second still says plenty').to.equal('sold_out');
      shop.sale = { stock: 'none' };
      await clock.tickAsync(30_000);
      expect(screenAt(page)).to.equal('sold_out');
      shop.sale = { stock: 'few' };
      await clock.tickAsync(26_000);
      expect(screenAt(page)).to.equal('ready');
      expect(page.state.isBack).to.equal(true);
    });

    it('stays while the stock is unknown', async () => {
      shop.sale = { stock: 'none' };
      const page = await open();
      for (const sale of [{ stock: 'unknown' }, { state: 'unknown', stock: 'unknown', degraded: 'L3' }]) {
        shop.sale = sale;
        await clock.tickAsync(26_000);
        expect([screenAt(page), page.state.isBack]).to.deep.equal(['sold_out', false]);
      }
      shop.sale = { stock: 'plenty' };
      await clock.tickAsync(26_000);
      expect([screenAt(page), page.state.isBack]).to.deep.equal(['ready', true]);
    });

    it('disappears when units return, as a pause does when it ends', async () => {
      for (const [code, sale] of [
        ['sold_out', { stock: 'none' }],
        ['paused', { state: 'paused' }],
      ] as const) {
        shop.sale = {};
        shop.on(BUY, () => problem(409, code));
        const page = await openAndBuy(50);
        expect(page.state.purchase.problem?.code).to.equal(code);
        shop.sale = sale;
        await clock.tickAsync(26_000);
        expect(screenAt(page)).to.equal(code);
        shop.sale = {};
        await clock.tickAsync(26_000);
        expect([screenAt(page), page.state.purchase.problem]).to.deep.equal(['ready', null]);
        page.stop();
      }
    });

    it('lets a visible page read rarely, and a page in the background never', async () => {
      shop.sale = { stock: 'none' };
      const page = await open();
      let before = shop.count('GET ');
      await clock.tickAsync(5 * MINUTE_MS);
      expect(shop.count('GET ') - before).to.be.within(8, 15);
      page.setVisible(false);
      before = shop.count('GET ');
      await clock.tickAsync(40 * MINUTE_MS);
      expect(shop.count('GET ')).to.equal(before);
      shop.sale = { stock: 'few' };
      page.setVisible(true);
      await clock.tickAsync(100);
      expect(screenAt(page)).to.equal('ready');
    });

    it('does not stop a page in the background from reading before the opening', async () => {
      clock.setSystemTime(OPENS_MS - 20 * MINUTE_MS);
      shop.sale = { state: 'announced', asksFor: [] };
      const page = await open();
      page.setVisible(false);
      await clock.tickAsync(10 * MINUTE_MS);
      shop.sale = { state: 'not_open', asksFor: ['queue_pass'] }; // an operator has switched it on
      await clock.tickAsync(5 * MINUTE_MS);
      expect(shop.count('POST /queue')).to.be.at.least(1);
      shop.sale = { state: 'open', asksFor: ['queue_pass'] };
      await clock.tickAsync(7 * MINUTE_MS);
      const reads = shop.count('GET ');
      await clock.tickAsync(5 * MINUTE_MS);
      expect(shop.count('GET ')).to.equal(reads);
    });

    it('lets a page that begins in the background read once', async () => {
      const page = shop.open();
      pages.push(page);
      page.setVisible(false);
      await clock.tickAsync(5 * MINUTE_MS);
      expect([shop.count('GET '), screenAt(page)]).to.deep.equal([1, 'ready']);
    });
  });

  describe('result', () => {
    it('arrives by a stream that continues where the last stream ended', async () => {
      const first = holds();
      const second = new FakeStream();
      const page = await openAndBuy();
      expect(screenAt(page)).to.equal('held');
      shop.on('GET /purchases/key-2/events', () => second.response);
      first.end();
      await clock.tickAsync(3100);
      const streams = shop.asked.filter(({ what }) => what.endsWith('/events'));
      expect(streams.map(({ headers }) => headers['Last-Event-ID'])).to.deep.equal([undefined, 'pending']);
      for (const { headers } of streams) expect(headers.Authorization).to.match(/^Bearer x\./);
      shop.on('GET /v1/orders/9', () => json(order()));
      second.say('ordered', ORDERED);
      await clock.tickAsync(100);
      expect(screenAt(page)).to.equal('to_pay');
      second.say('paid', { ...ORDERED, orderState: 'paid' });
      await clock.tickAsync(1);
      expect(screenAt(page), 'paid at another device, or by the provider').to.equal('paid');
    });

    it('tolerates a stream without news for a while', async () => {
      const first = holds();
      const page = await openAndBuy();
      for (let nth = 0; nth < 5; nth++) {
        const next = new FakeStream().write('retry: 2000\n\n');
        shop.on('GET /purchases/key-2/events', () => next.response);
        if (nth === 0) first.end();
        await clock.tickAsync(3100 + 20_000);
        next.end();
      }
      await clock.tickAsync(3100);
      expect(
        shop.asked.some(({ what }) => what.includes('wait=')),
        'no long poll',
      ).to.equal(false);
      expect(screenAt(page)).to.equal('held');
    });

    it('arrives by a long poll without a stream, and by polls without a long poll', async () => {
      shop.on(BUY, () => json({ status: 'pending' }, 202));
      shop.on('GET /purchases/key-2/events', () => problem(503, 'overloaded', 1000));
      shop.on('GET /purchases/key-2?wait=25', () => json({ status: 'pending' }));
      shop.on('GET /purchases/key-2', () => json({ status: 'pending' }));
      shop.on('GET /v1/orders/9', () => json(order()));
      const page = await openAndBuy(12_000);
      expect(shop.count('GET /purchases/key-2/events')).to.equal(1);
      expect(shop.count('GET /purchases/key-2?wait=25')).to.equal(3);
      expect(shop.count('GET /purchases/key-2')).to.be.at.least(1);
      shop.on('GET /purchases/key-2', () => json(ORDERED));
      await clock.tickAsync(4000);
      expect(screenAt(page)).to.equal('to_pay');
    });

    it('arrives by a long poll after some seconds if a proxy buffers the stream', async () => {
      shop.on(BUY, () => json({ status: 'pending' }, 202));
      shop.on('GET /purchases/key-2/events', () => new FakeStream().response);
      shop.on('GET /purchases/key-2?wait=25', () => json(ORDERED));
      shop.on('GET /v1/orders/9', () => json(order()));
      const page = await openAndBuy(7000);
      expect(screenAt(page)).to.equal('to_pay');
    });

    it('does not depend on a stream whose heartbeat stops', async () => {
      holds();
      shop.on('GET /purchases/key-2?wait=25', () => json(ORDERED));
      shop.on('GET /v1/orders/9', () => json(order()));
      const page = await openAndBuy(69_000);
      expect(screenAt(page)).to.equal('held');
      await clock.tickAsync(5000);
      expect(screenAt(page)).to.equal('to_pay');
    });
  });

  describe('order', () => {
    const TERMS = { state: 'free', currency: 'EUR', valueCents: 500, percent: null, minCents: 0 };
    const COUPONS = [
      { ...TERMS, code: 'SMALL' },
      { ...TERMS, code: 'LARGE', valueCents: null, percent: 50 },
      { ...TERMS, code: 'USED', state: 'redeemed' },
      { ...TERMS, code: 'MIN', minCents: 1_000_000 },
      { ...TERMS, code: 'USD', currency: 'USD' },
    ];
    let stream: FakeStream;
    let page: Page;
    beforeEach(async () => {
      shop.on('GET /v1/me/coupons?limit=50', () => json({ coupons: COUPONS, next: null }));
      stream = holds();
      const made = order();
      shop.on('GET /v1/orders/9', () => json(made));
      page = await openAndBuy();
      stream.say('ordered', ORDERED);
      await clock.tickAsync(100);
    });

    it('counts down its deadline by the clock of the server', () => {
      shop.wallAheadMs = 3_600_000;
      const screen = screenOf(page.state, page.nowMs());
      expect(screen.name).to.equal('to_pay');
      if (screen.name === 'to_pay') expect(screen.leftMs).to.be.within(15 * MINUTE_MS - 500, 15 * MINUTE_MS);
    });

    it('is charged once after two presses and a lost answer', async () => {
      shop.on(
        'POST /v1/orders/9/pay',
        () => 'fails',
        () => problem(503, 'outcome_unknown', 1000),
        () => json(order({ state: 'paid' })),
      );
      page.move('pay');
      page.move('pay');
      await clock.tickAsync(10_000);
      expect(screenAt(page)).to.equal('paid');
      const keys = keysSent('POST /v1/orders/9/pay');
      expect(keys).to.have.length(3);
      expect(new Set(keys).size).to.equal(1);
    });

    it('is charged again after a declined charge', async () => {
      shop.on(
        'POST /v1/orders/9/pay',
        () => problem(402, 'payment_declined'),
        () => json(order({ state: 'paid' })),
      );
      page.move('pay');
      await clock.tickAsync(100);
      expect(page.state.moveProblem).to.equal('payment_declined');
      page.move('pay');
      await clock.tickAsync(100);
      expect(screenAt(page)).to.equal('paid');
      const keys = keysSent('POST /v1/orders/9/pay');
      expect(new Set(keys).size).to.equal(2);
    });

    it('is paid with the chosen coupon, or without the coupon once it is refused', async () => {
      expect(page.state.coupons.map(({ code }) => code)).to.deep.equal(['LARGE', 'SMALL']);
      expect(page.state.coupons[1]?.discountCents).to.equal(500);
      shop.on(
        'POST /v1/orders/9/pay',
        () => problem(409, 'coupon_refused'),
        () => json(order({ state: 'paid' })),
      );
      page.chooseCoupon('SMALL');
      page.move('pay');
      await clock.tickAsync(100);
      expect(page.state.moveProblem).to.equal('coupon_refused');
      expect([page.state.coupon, page.state.coupons.length]).to.deep.equal([null, 1]);
      page.move('pay');
      await clock.tickAsync(100);
      expect(screenAt(page)).to.equal('paid');
      const sent = shop.asked.filter(({ what }) => what === 'POST /v1/orders/9/pay').map(({ body }) => body);
      expect(sent).to.deep.equal([{ coupon: 'SMALL' }, undefined]);
      expect(new Set(keysSent('POST /v1/orders/9/pay')).size).to.equal(2);
    });

    it('is read again when its time is over, with or without a stream', async () => {
      stream.write(':\n\n');
      for (let minute = 0; minute < 15; minute++) {
        await clock.tickAsync(MINUTE_MS - 10);
        stream.write(':\n\n');
      }
      expect(screenAt(page)).to.equal('to_pay');
      page.move('pay');
      shop.on('GET /v1/orders/9', () => json(order({ state: 'expired' })));
      await clock.tickAsync(4000);
      expect(screenAt(page)).to.equal('expired');
    });
  });

  describe('sign-in', () => {
    it('sends only the request for the sale without a token', async () => {
      const page = await open(null);
      page.buy();
      await clock.tickAsync(5000);
      expect(screenAt(page)).to.equal('signed_out');
      expect(new Set(shop.asked.map(({ what }) => what))).to.deep.equal(new Set(['GET ']));
    });

    it('sends the token only where it is needed, in a header and never in an address', async () => {
      holds();
      await openAndBuy();
      const { token } = signInOf('ann');
      for (const { what, headers } of shop.asked) {
        expect(what).not.to.contain(token);
        expect(headers.Authorization).to.equal(what === 'GET ' ? undefined : `Bearer ${token}`);
      }
    });

    it('reports a refused token and continues the purchase with the next token', async () => {
      shop.on(BUY, () => problem(401, 'unauthorized'));
      const page = await openAndBuy();
      expect(screenAt(page)).to.equal('signed_out');
      holds();
      shop.on('GET /purchases/key-2', () => problem(404, 'purchase_not_found'));
      page.signIn(signInOf('ann', OPENS_MS + 7_200_000));
      await clock.tickAsync(100);
      expect(screenAt(page), 'without another click').to.equal('held');
      expect(keysSent()).to.deep.equal(['key-2', 'key-2']);
    });

    it('reports a token that ended while the page was away, and continues with the next token', async () => {
      holds();
      const first = await openAndBuy();
      first.stop();
      const asked = (): Response => problem(401, 'unauthorized');
      shop.on('GET /purchases/key-2', asked);
      const page = await open(null);
      expect(screenAt(page)).to.equal('signed_out');
      await clock.tickAsync(MINUTE_MS);
      expect(shop.count('GET /purchases/key-2'), 'asked once').to.equal(1);
      shop.on('GET /purchases/key-2', () => json({ status: 'pending' }));
      page.signIn(signInOf('ann', OPENS_MS + 7_200_000));
      await clock.tickAsync(100);
      expect(screenAt(page)).to.equal('held');
    });

    it('reports a token that ends while the page waits for the result, and ends nothing else', async () => {
      const stream = holds();
      const page = await openAndBuy();
      shop.on('GET /purchases/key-2/events', () => problem(401, 'unauthorized'));
      stream.end();
      await clock.tickAsync(5000);
      expect(screenAt(page)).to.equal('signed_out');
      const looks = shop.count('GET ');
      await clock.tickAsync(30_000);
      expect(shop.count('GET '), 'the sale is read meanwhile').to.be.above(looks);
      holds();
      page.signIn(signInOf('ann', OPENS_MS + 7_200_000));
      await clock.tickAsync(100);
      expect(screenAt(page)).to.equal('held');
    });

    it('charges an order once after the next sign-in', async () => {
      const stream = holds();
      shop.on('GET /v1/orders/9', () => json(order()));
      shop.on(
        'POST /v1/orders/9/pay',
        () => problem(401, 'unauthorized'),
        () => json(order({ state: 'paid' })),
      );
      const page = await openAndBuy();
      stream.say('ordered', ORDERED);
      await clock.tickAsync(100);
      page.move('pay');
      await clock.tickAsync(100);
      expect(screenOf(page.state, page.nowMs())).to.include({ name: 'to_pay', signedOut: true });
      page.move('pay');
      expect(page.state.move).to.equal(null);
      page.signIn(signInOf('ann', OPENS_MS + 7_200_000));
      expect(page.state.moveProblem, 'it is over').to.equal(null);
      page.move('pay');
      await clock.tickAsync(100);
      expect(screenAt(page)).to.equal('paid');
      expect(new Set(keysSent('POST /v1/orders/9/pay')).size).to.equal(1);
    });

    it('keeps its buyer until this buyer agrees to a link for another buyer', async () => {
      const page = await open();
      page.handOver(signInOf('bob'));
      expect([screenAt(page), page.state.signIn?.userId]).to.deep.equal(['other_buyer', 'ann']);
      page.decideOffer(false);
      expect([screenAt(page), page.state.signIn?.userId]).to.deep.equal(['ready', 'ann']);
      page.handOver(signInOf('ann', OPENS_MS + 7_200_000));
      expect(screenAt(page), 'of the same buyer').not.to.equal('other_buyer');
      page.handOver(signInOf('bob'));
      page.decideOffer(true);
      expect([screenAt(page), page.state.signIn?.userId]).to.deep.equal(['ready', 'bob']);
    });

    it('keeps its buyer if the page is opened by a link for another buyer', async () => {
      (await open()).stop();
      const page = await open(signInOf('bob'));
      expect([screenAt(page), page.state.signIn?.userId]).to.deep.equal(['other_buyer', 'ann']);
      page.stop();
      const again = await open(null);
      expect([screenAt(again), again.state.signIn?.userId]).to.deep.equal(['ready', 'ann']);
    });

    it('gives another buyer at the same tab a separate purchase', async () => {
      holds();
      const page = await openAndBuy();
      page.signIn(signInOf('bob'));
      expect(page.state).to.deep.include({ order: null });
      expect(page.state.purchase).to.include({ key: 'key-3', step: 'ready' });
      page.signIn(signInOf('ann'));
      expect(page.state.purchase).to.include({ key: 'key-2', step: 'checking' });
    });
  });

  describe('requirements of a sale', () => {
    it('report after the click that the sale now requires signatures', async () => {
      shop.on(BUY, () => problem(401, 'bad_signature'));
      const page = await openAndBuy();
      expect(screenAt(page)).to.equal('app_only');
    });

    it('fetch a purchase token before the click and keep it', async () => {
      shop.sale = { asksFor: ['purchase_token'] };
      shop.on('POST /purchase-token', () =>
        json({ token: 'an-entry', endsAt: new Date(OPENS_MS + 900_000).toISOString() }),
      );
      holds();
      const page = await open();
      await clock.tickAsync(100);
      expect(screenAt(page)).to.equal('ready');
      page.buy();
      await clock.tickAsync(100);
      expect(shop.asked.find(({ what }) => what === BUY)?.headers['Seckill-Purchase-Token']).to.equal('an-entry');
      await clock.tickAsync(5000);
      expect(shop.count('POST /purchase-token')).to.equal(1);
    });

    it('request an early purchase token a few times, not every second', async () => {
      clock.setSystemTime(OPENS_MS - 9 * MINUTE_MS);
      shop.sale = { state: 'not_open', asksFor: ['purchase_token'] };
      shop.on('POST /purchase-token', () =>
        clock.now < OPENS_MS - 5 * MINUTE_MS
          ? problem(409, 'not_open', 1000)
          : json({ token: 'an-entry', endsAt: null }),
      );
      const page = await open();
      await clock.tickAsync(8 * MINUTE_MS);
      expect(shop.count('POST /purchase-token')).to.be.within(2, 8);
      expect(page.state.purchaseToken).to.include({ token: 'an-entry' });
    });

    it('join the waiting room, poll as often as it says, and send its pass', async () => {
      shop.sale = { asksFor: ['queue_pass'] };
      const waiting = (ticket: string, position: number) => (): Response =>
        json({ status: 'waiting', ticket, position, estimateMs: position * 1000, pollAfterMs: 2000 }, 202);
      shop.on('POST /queue', waiting('t1', 12));
      shop.on('GET /queue/t1', waiting('t2', 5));
      shop.on('GET /queue/t2', () =>
        json({ status: 'admitted', pass: 'a-pass', passEndsAt: new Date(clock.now + 120_000).toISOString() }),
      );
      holds();
      const page = await open();
      page.tick();
      await clock.tickAsync(100);
      expect(page.state.place).to.deep.equal({ status: 'waiting', position: 12, estimateMs: 12_000 });
      expect(screenAt(page)).to.equal('room');
      page.buy();
      await clock.tickAsync(2200);
      expect(page.state.place).to.include({ position: 5 });
      await clock.tickAsync(2200);
      expect(screenAt(page)).to.equal('ready');
      const asked = shop.asked.length;
      await clock.tickAsync(3000);
      expect(
        shop.asked.slice(asked).filter(({ what }) => what.includes('queue')),
        'let in',
      ).to.deep.equal([]);
      page.buy();
      await clock.tickAsync(100);
      expect(shop.asked.find(({ what }) => what === BUY)?.headers['Seckill-Queue-Pass']).to.equal('a-pass');
      expect(shop.count('POST /queue')).to.equal(1);
    });

    it('join the waiting room of an announced sale only once the sale is loaded', async () => {
      clock.setSystemTime(OPENS_MS - 5 * MINUTE_MS);
      shop.sale = { asksFor: ['queue_pass'], state: 'announced' };
      shop.on('POST /queue', () => json({ status: 'waiting', ticket: 't1', position: 1, pollAfterMs: 60_000 }, 202));
      const page = await open();
      await clock.tickAsync(MINUTE_MS);
      expect([screenAt(page), shop.count('POST /queue')]).to.deep.equal(['countdown', 0]);
      shop.sale = { ...shop.sale, state: 'not_open' };
      await clock.tickAsync(MINUTE_MS);
      expect([screenAt(page), shop.count('POST /queue')]).to.deep.equal(['countdown', 1]);
    });

    it('join again if the place was lost or the turn ran out', async () => {
      shop.sale = { asksFor: ['queue_pass'] };
      shop.stored.set('seckill:ticket:7:ann', 'old');
      shop.on('GET /queue/old', () => problem(404, 'ticket_not_found'));
      shop.on('POST /queue', () =>
        json({ status: 'admitted', pass: 'a-pass', passEndsAt: new Date(clock.now + 30_000).toISOString() }),
      );
      const page = await open();
      await clock.tickAsync(200);
      expect(screenAt(page)).to.equal('ready');
      await clock.tickAsync(31_000);
      page.tick();
      await clock.tickAsync(200);
      expect(shop.count('POST /queue')).to.equal(2);
      expect(screenAt(page)).to.equal('ready');
    });

    it('disable the button after unpaid orders for as long as the server says', async () => {
      shop.on(BUY, () => problem(429, 'unpaid_pause', 90_000));
      const page = await openAndBuy();
      expect(screenAt(page)).to.equal('pause');
      await clock.tickAsync(91_000);
      expect(screenAt(page)).to.equal('ready');
      expect(shop.count(BUY)).to.equal(1);
    });
  });

  for (const [what, reply] of [
    ['204', () => new Response(null, { status: 204 })],
    ['nothing to show', () => json({ saleId: '7', state: 'unknown', stock: 'unknown', degraded: 'L3' })],
  ] as const) {
    it(`asks an overloaded api that answers ${what} less and less often`, async () => {
      shop.on('GET ', reply);
      const page = await open();
      expect(screenAt(page)).to.equal('unreachable');
      await clock.tickAsync(MINUTE_MS);
      expect(shop.count('GET ')).to.be.within(5, 14);
    });
  }

  it('does not end the time to pay by the browser clock alone', async () => {
    shop.on('GET ', () => new Response(null, { status: 204 }));
    shop.wallAheadMs = 3_600_000;
    holds();
    shop.stored.set('seckill:purchase:7:ann', JSON.stringify({ key: 'key-2', quantity: 1, clickedAtMs: clock.now }));
    shop.on('GET /purchases/key-2', () => json(ORDERED));
    shop.on('GET /v1/orders/9', () => json(order()));
    const page = await open();
    await clock.tickAsync(500);
    const screen = screenOf(page.state, page.nowMs());
    expect(screen).to.include({ name: 'to_pay', leftMs: 1000 });
  });

  it('tells a buyer once what happened if the buyer returns after the sale', async () => {
    const NEWS = 'GET /v1/me/notifications?unread=true&limit=5';
    const at = new Date(OPENS_MS).toISOString();
    const one = { notificationId: '12', type: 'order.paid', orderId: '9', saleId: '7', at, isRead: false };
    shop.on(NEWS, () => json({ notifications: [one, { ...one, notificationId: '11' }], next: null }));
    shop.on('POST /v1/me/notifications/read', () => json({ read: 2 }));
    await open();
    expect(shop.count(NEWS)).to.equal(0);
    clock.setSystemTime(OPENS_MS + 3 * 24 * 60 * MINUTE_MS);
    shop.sale = { state: 'closed' };
    const page = await open(signInOf('ann', clock.now + 60 * MINUTE_MS));
    await clock.tickAsync(21_000);
    expect(page.state.news).to.deep.equal([
      { id: '12', type: 'order.paid', orderId: '9', atMs: OPENS_MS },
      { id: '11', type: 'order.paid', orderId: '9', atMs: OPENS_MS },
    ]);
    page.newsSeen();
    await clock.tickAsync(200);
    expect(page.state.news).to.deep.equal([]);
    expect(shop.asked.find(({ what }) => what.startsWith('POST /v1/me'))?.body).to.deep.equal({ upTo: '12' });
    expect(shop.count(NEWS)).to.equal(1);
  });

  it('names the cell of its sale to a proxy, since the path of a list names no sale', async () => {
    clock.setSystemTime(OPENS_MS + 24 * 60 * MINUTE_MS);
    shop.on('GET /v1/sales/1203', () => json(saleBody(clock.now, { saleId: '1203', state: 'closed' })));
    pages.push(shop.open(signInOf('ann', clock.now + 60 * MINUTE_MS), '1203'));
    await clock.tickAsync(21_000);
    const news = shop.asked.find(({ what }) => what.startsWith('GET /v1/me/notifications'));
    expect(news?.headers).to.include({ 'Seckill-Cell': '3' });
  });

  it('reads an unreadable sale less and less often, and reports an unknown sale', async () => {
    shop.on('GET ', () => problem(503, 'unavailable', 1000));
    const page = await open();
    expect(screenAt(page)).to.equal('unreachable');
    await clock.tickAsync(MINUTE_MS);
    expect(shop.count('GET ')).to.be.within(5, 14);
    shop.on('GET ', () => problem(404, 'not_found'));
    await clock.tickAsync(20_000);
    expect(screenAt(page)).to.equal('missing');
  });
});
