import { expect } from 'chai';
import sinon, { type SinonFakeTimers } from 'sinon';
import { laneOf } from '../../../src/core/bucket.js';
import { CannotFollow, createClient, newKey, type Client, type PurchaseStep } from '../../../web/client/index.js';
import { event, FakeApi, json, page, refusal, stream } from './fake-api.js';

const BUY = 'POST /v1/sales/7/purchases';
const STATUS = 'GET /v1/sales/7/purchases/k1';
const EVENTS = `${STATUS}/events`;
const PENDING = { requestId: 'k1', saleId: '7', status: 'pending' };
const ORDERED = { ...PENDING, status: 'ordered', orderId: '99', orderState: 'pending_payment' };
const OPEN = 'retry: 2000\n\n';

let clock: SinonFakeTimers;
let api: FakeApi;
let client: Client;
let random: sinon.SinonStub;

function setUp(): void {
  clock = sinon.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  random = sinon.stub(Math, 'random').returns(0);
  api = new FakeApi();
  client = createClient({ baseUrl: 'http://api.example/', token: 't1', fetch: api.fetch });
}

/** Advances the clock until the promise settles. */
async function ended<T>(promise: Promise<T>): Promise<T> {
  let isOver = false;
  const over = (): void => void (isOver = true);
  promise.then(over, over);
  for (let tick = 0; !isOver && tick < 100_000; tick++) await clock.tickAsync(50);
  return promise;
}
const buy = (options: Parameters<Client['buy']>[1] = {}) => ended(client.buy('7', { key: 'k1', ...options }));
const pausesMs = (): number[] => api.asked.slice(1).map(({ atMs }, index) => atMs - (api.asked[index]?.atMs ?? 0));

describe('client: buy', () => {
  beforeEach(setUp);
  it('sends the key, token and quantity, and leaves no connection open after the stream', async () => {
    api.next(json(202, PENDING), stream([OPEN, event('pending', PENDING), event('ordered', ORDERED)], 10, 'stays'));
    const result = await buy({ quantity: 2, metadata: { cart: '4' }, queuePass: 'p', purchaseToken: 'q' });
    expect(result).to.deep.equal({ outcome: 'ordered', key: 'k1', orderId: '99', orderState: 'pending_payment' });
    expect(api.whats).to.deep.equal([BUY, EVENTS]);
    expect(api.asked[0]?.headers).to.deep.equal({
      'Idempotency-Key': 'k1',
      'Seckill-Queue-Pass': 'p',
      'Seckill-Purchase-Token': 'q',
      Authorization: 'Bearer t1',
      'Content-Type': 'application/json',
    });
    expect(api.asked[0]?.body).to.deep.equal({ quantity: 2, metadata: { cart: '4' } });
    expect(api.asked[1]?.headers).to.deep.equal({ Accept: 'text/event-stream', Authorization: 'Bearer t1' });
    expect(api.asked[1]?.signal.aborted, 'the stream is closed').to.equal(true);
  });

  it('honours a patience or pause longer than 2^31 ms', async () => {
    for (const patienceMs of [Infinity, 2 ** 31]) {
      api.next(json(202, PENDING), stream([OPEN, event('pending', PENDING)], 10, 'stays'));
      const left = new AbortController();
      const bought = client.buy('7', { key: 'k1', patienceMs, signal: left.signal });
      for (let tick = 0; tick < 100; tick++) await clock.tickAsync(50);
      expect(api.whats, 'it follows the purchase').to.deep.equal([BUY, EVENTS]);
      left.abort();
      await bought.catch(() => undefined);
      api.asked.splice(0);
    }
    const daysMs = 40 * 86_400_000;
    api.next(refusal('not_open', daysMs), json(202, PENDING), stream([OPEN, event('ordered', ORDERED)], 10));
    const bought = client.buy('7', { key: 'k1', patienceMs: Infinity });
    for (let tick = 0; tick < 100; tick++) await clock.tickAsync(daysMs / 101);
    expect(api.whats, 'before the sale opens').to.deep.equal([BUY]);
    await clock.tickAsync(daysMs / 101);
    expect(await ended(bought)).to.include({ outcome: 'ordered' });
  });

  it('omits headers without a value and generates a random key', async () => {
    api.next(refusal('sold_out'), refusal('sold_out'));
    await ended(client.buy('7', { queuePass: null }));
    await ended(client.buy('7'));
    const keys = api.asked.map(({ headers }) => headers['Idempotency-Key']);
    expect(Object.keys(api.asked[0]?.headers ?? {})).to.deep.equal([
      'Idempotency-Key',
      'Authorization',
      'Content-Type',
    ]);
    expect(keys[0]).to.match(/^[0-9a-f]{32}$/);
    expect(keys[1]).not.to.equal(keys[0]);
    expect(newKey()).not.to.equal(newKey());
  });

  it('is refused without a request if the token is missing or a header is invalid', async () => {
    const failing = createClient({
      baseUrl: 'http://api.example',
      token: () => Promise.reject(new Error('signed out')),
      fetch: api.fetch,
    });
    const nothing = { outcome: 'refused', key: 'k1', code: 'not_sent', retryAfterMs: null, problem: null };
    expect(await ended(failing.buy('7', { key: 'k1' }))).to.deep.equal({
      ...nothing,
      detail: 'There is no token: signed out',
    });
    expect(await buy({ queuePass: 'p\n' + 'q' })).to.include({ outcome: 'refused', code: 'not_sent' });
    const events = ended(failing.events('7', 'k1').next()).catch((error: unknown) => error);
    expect(await events)
      .to.be.instanceOf(CannotFollow)
      .with.nested.property('refusal.code', 'not_sent');
    expect(api.asked).to.deep.equal([]);
  });

  it('returns unknown if an attempt was lost and the token is then missing', async () => {
    api.next('fails');
    let asked = 0;
    const token = (): string => {
      if (++asked > 1) throw new Error('signed out');
      return 't1';
    };
    const ending = createClient({ baseUrl: 'http://api.example', token, fetch: api.fetch });
    expect(await ended(ending.buy('7', { key: 'k1' }))).to.deep.equal({ outcome: 'unknown', key: 'k1' });
  });

  it('returns the outcome of the earlier purchase if its key is reused', async () => {
    api.next(json(200, ORDERED));
    expect(await buy()).to.include({ outcome: 'ordered', orderId: '99' });
    api.next(json(200, { ...PENDING, status: 'failed', orderId: '98', reason: 'units_lost' }));
    expect(await buy()).to.deep.equal({ outcome: 'failed', key: 'k1', reason: 'units_lost' });
    expect(api.asked).to.have.length(2);
  });

  it('retries with the same key if an attempt is lost or hangs', async () => {
    api.next('fails', 'hangs', page(502), json(200, ORDERED));
    expect(await buy()).to.include({ outcome: 'ordered' });
    expect(api.whats).to.deep.equal([BUY, BUY, BUY, BUY]);
    expect(new Set(api.asked.map(({ headers }) => headers['Idempotency-Key']))).to.deep.equal(new Set(['k1']));
    const [first = 0, second = 0] = pausesMs();
    expect(first, 'the first pause').to.be.within(200, 400);
    expect(second, '15 s of silence').to.be.within(15_000, 16_000);
  });

  for (const code of ['overloaded', 'unavailable', 'outcome_unknown', 'rate_limited', 'paused', 'internal'] as const) {
    it(`retries ${code} with the same key`, async () => {
      api.next(refusal(code), json(200, ORDERED));
      expect(await buy()).to.include({ outcome: 'ordered' });
      expect(api.asked[1]?.headers['Idempotency-Key']).to.equal('k1');
    });
  }

  it('waits as long as the API asks, and not exactly as long as other clients', async () => {
    const come: number[] = [];
    for (const chance of [0, 0.5, 0.99]) {
      random.returns(chance);
      api = new FakeApi().next(refusal('overloaded', 3_000), json(200, ORDERED));
      client = createClient({ baseUrl: 'http://api.example', fetch: api.fetch });
      await buy();
      come.push(...pausesMs());
    }
    expect(Math.min(...come)).to.be.at.least(3_000);
    expect(Math.max(...come) - Math.min(...come), 'spread').to.be.at.least(1_000);
  });

  it('honours Retry-After from a proxy', async () => {
    api.next(page(503, { 'Retry-After': '4' }), json(200, ORDERED));
    await buy();
    expect(pausesMs()[0]).to.be.at.least(4_000);
  });

  for (const code of ['sold_out', 'limit_reached', 'closed', 'request_conflict', 'denied', 'unauthorized'] as const) {
    it(`sends nothing more after ${code}`, async () => {
      api.next(refusal(code));
      expect(await buy()).to.include({ outcome: 'refused', key: 'k1', code, retryAfterMs: null });
      expect(api.asked).to.have.length(1);
    });
  }

  it('ignores a response that does not come from Seckill', async () => {
    for (const foreign of [page(200), page(404), page(403)]) {
      api.next(foreign);
      expect(await buy()).to.include({ outcome: 'refused', code: 'not_seckill', problem: null });
    }
    expect(api.asked).to.have.length(3);
  });

  it('is refused at once, with the opening time, if the sale opens too late', async () => {
    api.next(refusal('not_open', 600_000));
    expect(await buy()).to.include({ outcome: 'refused', code: 'not_open', retryAfterMs: 600_000 });
    api.next(refusal('not_open', 20_000), json(200, ORDERED));
    expect(await buy(), 'waits if the sale opens in time').to.include({ outcome: 'ordered' });
  });

  it('accepts a refusal after a lost attempt if the API knows no purchase for the key', async () => {
    api.next('fails', refusal('sold_out'), refusal('purchase_not_found'));
    expect(await buy()).to.include({ outcome: 'refused', code: 'sold_out' });
    expect(api.whats).to.deep.equal([BUY, BUY, STATUS]);
    expect(pausesMs()[1], 'time for the lost request to arrive').to.be.at.least(2_000);
  });

  it('follows the purchase and ignores the refusal if the lost attempt has arrived', async () => {
    api.next('fails', refusal('sold_out'), json(200, PENDING), stream([OPEN, event('ordered', ORDERED)]));
    expect(await buy()).to.include({ outcome: 'ordered', orderId: '99' });
  });

  it('returns unknown if no valid response arrives', async () => {
    api.on('', () => 'fails');
    expect(await buy({ patienceMs: 20_000 })).to.deep.equal({ outcome: 'unknown', key: 'k1' });
    expect(api.asked.length).to.be.within(5, 12);
    expect(performance.now()).to.be.below(30_000);
  });

  it('polls again, without claiming held units, if an overloaded API knows no status', async () => {
    const spared = (): Response => json(200, { requestId: 'k1', saleId: '7', status: 'unknown', degraded: 'L3' });
    api.next('fails', refusal('sold_out'), spared(), spared(), refusal('purchase_not_found'));
    expect(await buy()).to.include({ outcome: 'refused', code: 'sold_out' });
    expect(api.whats).to.deep.equal([BUY, BUY, STATUS, STATUS, STATUS]);
    api.next('fails', refusal('sold_out')).on(STATUS, spared);
    expect(await buy({ patienceMs: 20_000 })).to.deep.equal({ outcome: 'unknown', key: 'k1' });
  });

  it('treats a success without a status as an attempt that may have arrived', async () => {
    api.next(json(200, { hello: 'you' }), json(200, ORDERED));
    expect(await buy()).to.include({ outcome: 'ordered', orderId: '99' });
    api.next(json(200, {}), refusal('sold_out'), refusal('purchase_not_found'));
    expect(await buy(), 'looked up').to.include({ outcome: 'refused', code: 'sold_out' });
  });

  it('returns unknown if only temporary refusals follow a lost response', async () => {
    api
      .next('fails')
      .on(BUY, () => refusal('outcome_unknown'))
      .on(STATUS, () => refusal('purchase_not_found'));
    expect(await buy({ patienceMs: 10_000 })).to.deep.equal({ outcome: 'unknown', key: 'k1' });
  });

  it('returns pending if units are held and no order arrives in time', async () => {
    api.next(json(202, PENDING)).on(EVENTS, () => stream([OPEN, event('pending', PENDING)], 10, 'stays'));
    expect(await buy({ patienceMs: 10_000 })).to.deep.equal({ outcome: 'pending', key: 'k1' });
    expect(performance.now()).to.be.within(10_000, 10_200);
  });

  it('returns pending, not refused, if units are held and the token expires', async () => {
    api.next(json(202, PENDING), refusal('unauthorized'));
    expect(await buy()).to.deep.equal({ outcome: 'pending', key: 'k1' });
  });

  it('rejects with the reason of an aborted signal at any step, and sends nothing more', async () => {
    for (const replies of [['hangs'], ['fails'], [json(202, PENDING), stream([OPEN], 10, 'stays')]] as const) {
      api = new FakeApi().next(...replies);
      client = createClient({ baseUrl: 'http://api.example', fetch: api.fetch });
      const leave = new AbortController();
      setTimeout(() => leave.abort(new Error('gone')), 100);
      const rejected = await buy({ signal: leave.signal }).catch((error: unknown) => error);
      expect(rejected).to.be.an('error').with.property('message', 'gone');
      const { length } = api.asked;
      await clock.tickAsync(60_000);
      expect(api.asked).to.have.length(length);
    }
  });
});

describe('client: following a purchase', () => {
  beforeEach(setUp);
  const follow = async (limits = {}): Promise<PurchaseStep['step'][]> => {
    const steps: PurchaseStep['step'][] = [];
    const all = async (): Promise<void> => {
      for await (const { step } of client.events('7', 'k1', limits)) steps.push(step);
    };
    await ended(all());
    return steps;
  };
  const paid = { ...ORDERED, orderState: 'paid' };

  it('reports each step up to the last', async () => {
    api.next(stream([OPEN, event('pending', PENDING), event('ordered', ORDERED), event('paid', paid)], 10, 'stays'));
    expect(await follow()).to.deep.equal(['pending', 'ordered', 'paid']);
  });

  it('resumes a stream at its last event, after the pause that the stream asked for', async () => {
    api.next(
      stream([OPEN, event('pending', PENDING), ':\n\n'], 1_000),
      stream([OPEN, event('ordered', ORDERED), event('expired', { ...ORDERED, orderState: 'expired' })]),
    );
    expect(await follow()).to.deep.equal(['pending', 'ordered', 'expired']);
    expect(api.asked[0]?.headers).not.to.have.property('Last-Event-ID');
    expect(api.asked[1]?.headers).to.include({ 'Last-Event-ID': 'pending' });
    expect(pausesMs()[0]).to.be.at.least(3_000 + 2_000);
  });

  it('ends when a 204 says that every event was seen', async () => {
    api.next(new Response(null, { status: 204 }));
    expect(await follow()).to.deep.equal([]);
  });

  const polled = () => api.on(`${STATUS}?wait=25`, () => json(200, api.asked.length > 4 ? paid : ORDERED));

  it('polls if the stream is refused', async () => {
    api.next(refusal('overloaded'));
    polled();
    expect(await follow()).to.deep.equal(['ordered', 'paid']);
    expect(api.whats.slice(0, 2)).to.deep.equal([EVENTS, `${STATUS}?wait=25`]);
  });

  it('polls after some seconds if a proxy buffers the stream', async () => {
    api.next(stream([], 10, 'stays'));
    polled();
    expect(await follow()).to.deep.equal(['ordered', 'paid']);
    expect(pausesMs()[0]).to.be.within(6_000, 6_500);
  });

  it('polls after the stream breaks twice, and repeats no step', async () => {
    api.next(stream([OPEN, event('ordered', ORDERED)]), stream([OPEN]));
    polled();
    expect(await follow()).to.deep.equal(['ordered', 'paid']);
    expect(api.whats.slice(0, 3)).to.deep.equal([EVENTS, EVENTS, `${STATUS}?wait=25`]);
  });

  it('reopens a stream that is silent for longer than two heartbeats', async () => {
    api.next(stream([OPEN, event('ordered', ORDERED)], 10, 'stays'), stream([OPEN, event('paid', paid)]));
    expect(await follow()).to.deep.equal(['ordered', 'paid']);
    expect(pausesMs()[0]).to.be.within(70_000, 74_000);
  });

  it('pauses after a poll that returns at once, but not after a held poll', async () => {
    api.next(refusal('overloaded')).on(`${STATUS}?wait=25`, () => json(200, api.asked.length > 3 ? paid : PENDING));
    await follow();
    expect(pausesMs()[1]).to.be.within(1_500, 3_100);
  });

  it('throws if the purchase does not exist or the patience ends', async () => {
    api.next(refusal('purchase_not_found'));
    const thrown = await follow().catch((error: unknown) => error);
    expect(thrown).to.be.instanceOf(CannotFollow).with.nested.property('refusal.code', 'purchase_not_found');
    api.next(refusal('overloaded')).on(STATUS, () => json(200, PENDING));
    const late = await follow({ patienceMs: 30_000 }).catch((error: unknown) => error);
    expect(late).to.be.instanceOf(CannotFollow).with.nested.property('refusal.code', 'time_up');
  });

  it('closes the connection when the caller leaves the loop', async () => {
    api.next(stream([OPEN, event('pending', PENDING)], 10, 'stays'));
    const first = async (): Promise<string | null> => {
      for await (const { step } of client.events('7', 'k1')) return step;
      return null;
    };
    expect(await ended(first())).to.equal('pending');
    expect(api.asked[0]?.signal.aborted).to.equal(true);
  });
});

describe('client: tokens', () => {
  beforeEach(setUp);
  it('calls the token function before each request, and once more after a 401', async () => {
    const tokens = ['old', 'new', 'newer'];
    client = createClient({ baseUrl: '', token: () => tokens.shift() ?? null, fetch: api.fetch });
    api.next(refusal('unauthorized'), json(200, { orders: [], next: null }), json(200, { orders: [], next: null }));
    expect(await ended(client.orders())).to.deep.include({ ok: true });
    expect(await ended(client.orders())).to.deep.include({ ok: true });
    expect(api.asked.map(({ headers }) => headers.Authorization)).to.deep.equal([
      'Bearer old',
      'Bearer new',
      'Bearer newer',
    ]);
  });

  it('sends the lane of the buyer in the token, for the proxy', async () => {
    const payload = Buffer.from(JSON.stringify({ sub: 'u00000007' })).toString('base64url');
    client = createClient({ baseUrl: '', token: `e30.${payload}.x`, fetch: api.fetch });
    api.next(json(200, { orders: [], next: null }));
    expect(await ended(client.orders())).to.deep.include({ ok: true });
    expect(api.asked[0]?.headers['Seckill-Lane']).to.equal(String(laneOf('u00000007')));
  });

  it('returns the refusal if the token stays the same after a 401', async () => {
    client = createClient({ baseUrl: '', token: async () => 'same', fetch: api.fetch });
    api.next(refusal('unauthorized'));
    expect(await ended(client.orders())).to.deep.include({ ok: false, code: 'unauthorized' });
    client = createClient({ baseUrl: '', fetch: api.fetch });
    api.next(json(200, {}));
    await ended(client.orders());
    expect(api.asked[1]?.headers).to.deep.equal({});
  });

  it('reads the sale without the token, so that caches can answer', async () => {
    client = createClient({ baseUrl: '', token: () => Promise.reject(new Error('signed out')), fetch: api.fetch });
    api.next(json(200, {}));
    expect(await ended(client.sale('7'))).to.deep.include({ ok: true });
    expect(api.asked[0]?.headers).to.deep.equal({});
  });
});

describe('client: other calls', () => {
  beforeEach(setUp);
  for (const [what, call] of [
    [`${STATUS}?wait=10`, () => client.status('7', 'k1', { waitSeconds: 10 })],
    [`${STATUS}?wait=0`, () => client.status('7', 'k1')],
    ['GET /v1/sales/7', () => client.sale('7')],
    ['GET /v1/sales/7?fresh=1', () => client.sale('7', { fresh: true })],
    ['GET /v1/me/orders', () => client.orders()],
    ['GET /v1/me/orders?after=a%2Fb&limit=5', () => client.orders({ after: 'a/b', limit: 5 })],
    ['GET /v1/orders/99', () => client.order('99')],
    ['POST /v1/orders/99/pay', () => client.pay('99', { key: 'c1' })],
    ['POST /v1/orders/99/cancel', () => client.cancel('99')],
    ['POST /v1/sales/7/queue', () => client.joinQueue('7')],
    ['GET /v1/sales/7/queue/t1', () => client.readTicket('7', 't1')],
    ['POST /v1/sales/7/purchase-token', () => client.purchaseToken('7')],
  ] as const) {
    it(`${what}: retries a temporary refusal and returns a final refusal as a value`, async () => {
      api.next(refusal('unavailable'), json(200, { n: 1 }), refusal('denied'));
      expect(await ended<unknown>(call())).to.deep.equal({ ok: true, status: 200, body: { n: 1 } });
      expect(await ended<unknown>(call())).to.deep.include({ ok: false, code: 'denied', retryAfterMs: null });
      expect(api.whats).to.deep.equal([what, what, what]);
    });
  }

  it('merges the orders of cells down to where the page of each cell ends, and names cells without an answer', async () => {
    const pageOf = (next: string | null, ...orderIds: string[]): Response =>
      json(200, { orders: orderIds.map((orderId) => ({ orderId })), next });
    api.next(pageOf('300', '10070', '300'), pageOf('1000', '1010', '1000'), pageOf(null, '1005', '20'), 'hangs');
    const read = await ended(client.ordersOfCells([1, 2, 3, 16], { after: '2000', limit: 2 }));
    const orders = ['10070', '1010', '1005', '1000'].map((orderId) => ({ orderId }));
    expect(read).to.deep.equal({ ok: true, status: 200, body: { orders, next: '1000', missingCells: [16] } });
    expect(api.whats).to.deep.equal(api.whats.map(() => 'GET /v1/me/orders?after=2000&limit=2'));
    expect(api.asked.map(({ headers }) => headers['Seckill-Cell'])).to.deep.equal(['1', '2', '3', '16']);
    expect(performance.now(), 'the wait for the cell that hangs').to.be.within(15_000, 15_100);

    api.next(refusal('denied'), pageOf(null, '20'));
    expect(await ended(client.ordersOfCells([1, 2], { after: '1000' }))).to.deep.nested.include({
      'body.next': null,
      'body.missingCells': [1],
    });
    api.next(refusal('unauthorized'), refusal('denied'));
    expect(await ended(client.ordersOfCells([1, 2]))).to.deep.include({ ok: false, code: 'unauthorized' });
    api.asked.length = 0;
    api.on('GET', () => refusal('unavailable', 1_000));
    await ended(client.ordersOfCells([1]));
    expect(api.asked.at(-1)?.atMs, 'the last attempt').to.be.closeTo((api.asked[0]?.atMs ?? 0) + 3_000, 200);
  });

  it('names its cell in each request', async () => {
    client = createClient({ baseUrl: '', cell: 2, fetch: api.fetch });
    api.next(json(200, {}));
    await ended(client.coupons());
    expect(api.asked[0]?.headers).to.deep.equal({ 'Seckill-Cell': '2' });
  });

  it('reads a sale as often as the API asks, and not while the page is hidden', async () => {
    const page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
    Object.assign(globalThis, { document: page });
    random.returns(0.5);
    const leave = new AbortController();
    const reads = client.watchSale('7', { signal: leave.signal, patienceMs: 0 });
    const read = async (): Promise<unknown> => (await ended(reads.next())).value;
    api.next(
      json(200, { pollAfterMs: 20_000 }),
      refusal('loading', 40_000),
      json(200, { degraded: 'L3' }),
      json(200, {}),
    );
    expect(await read()).to.deep.include({ ok: true, body: { pollAfterMs: 20_000 } });
    expect(await read()).to.deep.include({ ok: false, code: 'loading' });
    await read();
    expect(pausesMs()[0]).to.be.closeTo(25_000, 100);
    expect(pausesMs()[1]).to.be.closeTo(50_000, 100);
    page.visibilityState = 'hidden';
    const shown = reads.next();
    await clock.tickAsync(3_600_000);
    expect(api.asked).to.have.length(3);
    page.visibilityState = 'visible';
    page.dispatchEvent(new Event('visibilitychange'));
    await shown;
    expect(api.asked).to.have.length(4);
    page.visibilityState = 'hidden';
    const left = reads.next();
    await clock.tickAsync(60_000);
    leave.abort(new Error('gone'));
    expect(await left.catch((error: Error) => error.message)).to.equal('gone');
    Reflect.deleteProperty(globalThis, 'document');
  });

  it('rejects when the signal aborts, even if the client would not retry', async () => {
    api.next('hangs');
    const leave = new AbortController();
    setTimeout(() => leave.abort(new Error('gone')), 100);
    const left = ended(client.sale('7', { signal: leave.signal, patienceMs: 0 }));
    expect(await left.catch((error: unknown) => error))
      .to.be.an('error')
      .with.property('message', 'gone');
  });

  it('encodes ids so that they cannot leave their part of the path', async () => {
    api.next(json(200, {}));
    await ended(client.order('../me/orders'));
    expect(api.whats).to.deep.equal(['GET /v1/orders/..%2Fme%2Forders']);
  });

  it('sends the key of a charge if the caller gives a key', async () => {
    api.next(json(200, {}), json(200, {}));
    await ended(client.pay('99', { key: 'c1' }));
    await ended(client.pay('99'));
    expect(api.asked.map(({ headers }) => headers['Idempotency-Key'])).to.deep.equal(['c1', undefined]);
  });

  it('sends the name of a card, and does not treat a bank challenge as a refusal', async () => {
    const asks = { outcome: 'action_needed', orderId: '99', clientSecret: 's1' };
    api.next(json(202, asks), json(200, {}));
    const pay = (paymentMethod?: string) =>
      ended(client.pay('99', { key: 'c1', ...(paymentMethod && { paymentMethod }) }));
    expect(await pay('pm_1')).to.deep.equal({ ok: true, status: 202, body: asks });
    await pay();
    expect(api.asked.map(({ body }) => body)).to.deep.equal([{ paymentMethod: 'pm_1' }, undefined]);
  });

  it('waits in the queue with its newest ticket until admitted, and replaces an expired ticket', async () => {
    const waiting = (ticket: string) => json(202, { status: 'waiting', ticket, position: 3, pollAfterMs: 5_000 });
    const admitted = { status: 'admitted', pass: 'p', passEndsAt: '2030-01-01T00:00:00.000Z' };
    api.next(waiting('t1'), waiting('t2'), refusal('ticket_not_found'), waiting('t3'), json(200, admitted));
    const places: string[] = [];
    const answer = await ended(client.waitInQueue('7', { onPlace: ({ status }) => places.push(status) }));
    expect(answer).to.deep.include({ ok: true, body: { pass: 'p', passEndsAt: admitted.passEndsAt } });
    expect(api.whats.map((what) => what.replace('/v1/sales/7/queue', ''))).to.deep.equal([
      'POST ',
      'GET /t1',
      'GET /t2',
      'POST ',
      'GET /t3',
    ]);
    expect(pausesMs()[0]).to.be.at.least(5_000);
    expect(places).to.deep.equal(['waiting', 'waiting', 'waiting', 'admitted']);
  });

  it('needs no pass for a sale without a queue, and reports a sale that is over', async () => {
    api.next(json(200, { status: 'no_queue' }), refusal('closed'));
    expect(await ended(client.waitInQueue('7'))).to.deep.include({ ok: true, body: { pass: null, passEndsAt: null } });
    expect(await ended(client.waitInQueue('7'))).to.deep.include({ ok: false, code: 'closed' });
  });
});
