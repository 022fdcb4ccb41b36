import { expect } from 'chai';
import request from 'supertest';
import type { RequestRef } from '../../../src/core/purchase.js';
import type { SaleSnapshot } from '../../../src/core/sale.js';
import { QueuePasses, WaitingRooms } from '../../../src/admission/queue/waiting-rooms.js';
import { isAnyOn, parseRules, type RuleSet } from '../../../src/admission/rules/rule-set.js';
import { RequestSignatures } from '../../../src/admission/sign/request-signatures.js';
import { readKeyring, type HmacKey } from '../../../src/core/hmac.js';
import { Seals } from '../../../src/admission/sign/seals.js';
import { PurchaseTokens } from '../../../src/admission/sign/purchase-tokens.js';
import { routesOf } from '../../../src/http/route.js';
import { ROUTES } from '../../../src/programs/routes.js';
import type { Pages } from '../../../src/http/pages.js';
import type { HttpServices } from '../../../src/http/services.js';
import type { GetSaleAnswer } from '../../../src/sales/get-sale.js';
import { systemClock as clock } from '../../../src/process/system-clock.js';
import { MemoryNonceStore } from '../../helpers/memory/memory-admission-stores.js';
import { MemoryPurchaseTokenStore } from '../../helpers/memory/memory-admission-stores.js';
import { MemoryLineStore } from '../../helpers/memory/memory-line-store.js';
import { saleOf } from '../../helpers/sales.js';
import { signRequest } from '../../helpers/sign-request.js';
import { bearer, FakeServices, startServer, type Started } from './http-harness.js';
import { noAdmissionMetrics } from '../../helpers/no-metrics.js';
import { partial } from '../../helpers/partial.js';

const PURCHASES = '/v1/sales/7/purchases';
const QUEUE = '/v1/sales/7/queue';
const TOKEN = '/v1/sales/7/purchase-token';
const KEY = 'app:a-key-of-the-tests-of-admission-of-40-bytes';
const SIGN_KEYS = readKeyring(KEY);
const SIGN = { sign: { mode: 'on', keys: ['app'] } };
const TOKENS = { sign: { tokens: { mode: 'on' } } };
const WAIT = { queue: { mode: 'on', admitPerSecond: 1000 } };

/** The real admission layers on stores in memory, behind the real HTTP server. */
class AdmissionWorld {
  readonly nonces = new MemoryNonceStore(clock);
  readonly store = new MemoryPurchaseTokenStore(clock);
  readonly counted: string[] = [];
  /** Called layers, in order. */
  readonly steps: string[] = [];
  readonly addressLimit = {
    isOn: false,
    refuse: false,
    asked: [] as string[],
    refuses(address: string, endpoint: string): boolean {
      this.asked.push(`${address} ${endpoint}`);
      return this.refuse;
    },
  };
  readonly fake: FakeServices;
  /** Pause of the buyer in ms, or null without a pause. */
  pauseMs: number | null = null;
  /** Last purchase whose buyer was checked. */
  paused: RequestRef | null = null;
  soldOut = false;
  /** Answer for the sale page. */
  page: GetSaleAnswer = { outcome: 'not_found' };
  #rules: RuleSet;

  constructor(overrides: Partial<HttpServices> = {}) {
    this.#rules = rulesOf({});
    const seals = new Seals(readKeyring(KEY));
    const metrics = { ...noAdmissionMetrics, refused: (...words: string[]) => void this.counted.push(words.join(' ')) };
    const snapshot: SaleSnapshot = { snapshot: 'ready', sale: saleOf({ saleId: '7', stock: 2 }) };
    const [sign, queue] = [() => this.#rules.sign, () => this.#rules.queue];
    const step = (name: string): null => {
      this.steps.push(name);
      return null;
    };
    const isOn = (): boolean => isAnyOn(this.#rules);
    this.fake = new FakeServices({
      admission: partial({
        get isOn() {
          return isOn();
        },
        anonymous: () => step('anonymous'),
        buyer: () => step('buyer'),
        operator: () => step('operator'),
        answered: () => undefined,
      }),
      addressLimit: this.addressLimit,
      unpaidPause: partial({
        check: (purchase) => {
          this.paused = purchase;
          return this.pauseMs === null ? null : Promise.resolve(this.pauseMs);
        },
      }),
      signatures: new RequestSignatures({ rules: sign, keys: SIGN_KEYS, nonces: this.nonces, clock, metrics }),
      tokens: new PurchaseTokens({ rules: () => sign().tokens, seals, store: this.store, clock, metrics }),
      passes: new QueuePasses({ rules: queue, seals, clock, metrics }),
      rooms: new WaitingRooms({
        rules: queue,
        seals,
        store: new MemoryLineStore(clock),
        isSoldOut: () => this.soldOut,
        clock,
        metrics: { moved: () => undefined },
      }),
      snapshots: partial({ get: () => snapshot, peek: () => snapshot }),
      clock,
      getSale: { get: () => Promise.resolve(this.page) },
      ...overrides,
    });
  }

  set(raw: object): void {
    this.#rules = rulesOf(raw);
  }
}

function rulesOf(raw: object): RuleSet {
  const parsed = parseRules(raw);
  if ('reasons' in parsed) throw new Error(JSON.stringify(parsed.reasons));
  return parsed.rules;
}

let made = 0;
const signed = (
  path: string,
  { method = 'POST', body = '', nonce = '', userId = 'u1', idempotencyKey = '' } = {},
): Record<string, string> =>
  signRequest('app', SIGN_KEYS.get('app') as HmacKey, {
    version: idempotencyKey === '' ? 1 : 2,
    method,
    path,
    body,
    userId,
    idempotencyKey,
    timestamp: String(Math.floor(Date.now() / 1000)),
    nonce: nonce || `nonce-of-the-world-${process.pid}-${made++}`,
  });

describe('purchase with admission layers', () => {
  let world: AdmissionWorld;
  let server: Started;
  beforeEach(async () => {
    world = new AdmissionWorld();
    server = await startServer(world.fake);
  });
  afterEach(() => server.stop());

  const buy = (headers: Record<string, string> = {}, body = '{"quantity":1}', user = 'u1'): request.Test =>
    request(server.url)
      .post(PURCHASES)
      .set({ authorization: bearer(user), 'idempotency-key': 'k1', 'content-type': 'application/json', ...headers })
      .send(body);
  const fetchToken = async (user = 'u1'): Promise<string> => {
    const { body } = await request(server.url).post(TOKEN).set('authorization', bearer(user)).expect(200);
    return body.token as string;
  };

  it('needs no proof while all layers are off, whatever the headers', async () => {
    await buy({ 'seckill-signature': 'x', 'seckill-purchase-token': 'x', 'seckill-queue-pass': 'x' }).expect(202);
    expect([world.steps, world.counted, world.nonces.asked, world.store.asked]).to.deep.equal([[], [], 0, 0]);
  });

  it('returns 401 for a missing, forged or used signature, and asks Redis only about valid signatures', async () => {
    world.set(SIGN);
    const { body: problem } = await buy().expect(401);
    expect(problem).to.include({ code: 'bad_signature', requestId: 'k1', retryable: false });
    expect(problem.detail).to.equal('Requests for this sale must be signed. Sign each request anew.');
    expect(world.steps, 'before any other layer').to.deep.equal([]);
    const headers = signed(PURCHASES, { body: '{"quantity":1}' });
    await buy(headers, '{"quantity":2}').expect(401); // The body differs from the signed body.
    expect([world.nonces.asked, world.fake.entered.length]).to.deep.equal([0, 0]);
    await buy(headers).expect(202);
    await buy(headers).expect(401);
    expect(world.counted).to.deep.equal(['sign not_signed on', 'sign forged on', 'sign nonce_used on']);
    expect(world.fake.entered).to.have.length(1);
    expect(world.fake.counted.filter((word) => word === 'purchase bad_signature')).to.have.length(3);
  });

  it('checks the signature over the address as sent, including the query', async () => {
    world.set(SIGN);
    const ask = (path: string, signedPath: string): request.Test =>
      request(server.url)
        .post(path)
        .set({ authorization: bearer(), 'idempotency-key': 'k1', ...signed(signedPath) });
    await ask(`${PURCHASES}?from=app`, PURCHASES).expect(401);
    await ask(`${PURCHASES}?from=app`, `${PURCHASES}?from=app`).expect(202);
  });

  it('uses up no nonce if the request is not a purchase', async () => {
    world.set(SIGN);
    await buy(signed(PURCHASES, { body: '{' }), '{').expect(400);
    await buy({ ...signed(PURCHASES), authorization: '' }).expect(401);
    expect(world.nonces.asked).to.equal(0);
  });

  it('returns 503 with Retry-After if it cannot check a nonce', async () => {
    world.set(SIGN);
    world.nonces.down = true;
    const headers = signed(PURCHASES, { body: '{"quantity":1}' });
    const { body: problem } = await buy(headers).expect(503).expect('retry-after', '1');
    expect(problem).to.include({ code: 'unavailable', requestId: 'k1' });
  });

  it("returns 403 without the buyer's own purchase token, and accepts the token for one purchase", async () => {
    world.set(TOKENS);
    const { body: problem } = await buy().expect(403);
    expect(problem).to.include({ code: 'purchase_token_needed', requestId: 'k1' });
    expect(problem.detail).to.include('purchase-token');
    await buy({ 'seckill-purchase-token': await fetchToken('u2') }).expect(403);
    const token = { 'seckill-purchase-token': await fetchToken() };
    await buy(token).expect(202);
    await buy(token).expect(202); // The same purchase is repeated.
    await buy({ ...token, 'idempotency-key': 'k2' }).expect(403);
    expect(world.counted).to.deep.equal(['token no_token on', 'token bad_token on', 'token redeemed_for_another on']);
  });

  it('does not redeem the purchase token if the signature is forged', async () => {
    world.set({ sign: { ...SIGN.sign, tokens: { mode: 'on' } } });
    const seal = signed(TOKEN);
    const { body } = await request(server.url)
      .post(TOKEN)
      .set({ authorization: bearer(), ...seal })
      .expect(200);
    const asked = world.store.asked;
    const token = { 'seckill-purchase-token': body.token as string };
    await buy({ ...token, ...signed(PURCHASES, { body: 'x' }) }).expect(401);
    expect(world.store.asked).to.equal(asked);
    await buy({ ...token, ...signed(PURCHASES, { body: '{"quantity":1}' }) }).expect(202);
  });

  it('returns 429 before it redeems the token if the buyer left orders unpaid', async () => {
    world.set(TOKENS);
    const token = { 'seckill-purchase-token': await fetchToken() };
    world.pauseMs = 61_000.5;
    const asked = world.store.asked;
    const { body } = await buy(token).expect(429).expect('retry-after', '62');
    expect(body).to.include({ code: 'unpaid_pause', requestId: 'k1', retryable: true, retryAfterMs: 61_001 });
    expect([world.fake.entered, world.store.asked]).to.deep.equal([[], asked]);
    world.pauseMs = null;
    await buy(token).expect(202);
    world.set({});
    world.pauseMs = 1000;
    await buy().expect(429); // This rule has its own mode.
    expect(world.paused).to.deep.equal({ saleId: '7', userId: 'u1', requestId: 'k1' });
  });

  it('returns 403 without a pass of the waiting room, before it asks limits and stores', async () => {
    world.set(WAIT);
    const { body: problem } = await buy().expect(403);
    expect(problem.detail).to.include('/queue');
    expect([world.steps, world.fake.asked]).to.deep.equal([['anonymous'], []]);
    const joined = await request(server.url).post(QUEUE).set('authorization', bearer()).expect(200);
    expect(joined.body).to.include({ status: 'admitted' });
    const pass = { 'seckill-queue-pass': joined.body.pass as string };
    await buy(pass, undefined, 'u2').expect(403);
    await buy(pass).expect(202);
    expect(world.counted).to.deep.equal(['queue no_pass on', 'queue bad_pass on']);
  });

  it('in a dry run, counts all refusals but refuses nothing', async () => {
    world.set({ sign: { mode: 'dry_run', tokens: { mode: 'dry_run' } }, queue: { mode: 'dry_run' } });
    await buy().expect(202);
    expect(world.counted).to.deep.equal(['token no_token dry_run', 'sign not_signed dry_run', 'queue no_pass dry_run']);
  });

  it('returns sold_out before the body is read, and uses up neither signature nor token', async () => {
    world.set({ sign: { ...SIGN.sign, tokens: { mode: 'on' } } });
    world.fake.early = 'sold_out';
    const shown = { ...signed(PURCHASES, { body: '{"quantity":1}' }), 'seckill-purchase-token': 'any' };
    const { body: problem } = await buy(shown).expect(409);
    expect(problem).to.include({ code: 'sold_out' });
    expect([world.nonces.asked, world.store.asked]).to.deep.equal([0, 0]);
  });

  it('returns 404 for an unknown sale before any layer, store or limit', async () => {
    world.set({ sign: { ...SIGN.sign, tokens: { mode: 'on' } }, queue: { mode: 'on' } });
    world.addressLimit.isOn = true;
    const anonymous = request(server.url)
      .post(PURCHASES)
      .set({ 'idempotency-key': 'k1', 'seckill-purchase-token': 'any' });
    expect((await anonymous.expect(401)).body).to.include({ code: 'unauthorized', requestId: 'k1' });
    expect((await buy().expect(403)).body).to.include({ code: 'purchase_token_needed', requestId: 'k1' });
    expect([world.steps, world.addressLimit.asked]).to.deep.equal([[], []]);
  });

  it('refuses an invented purchase token before it asks a layer about the buyer', async () => {
    world.set(TOKENS);
    await buy({ 'seckill-purchase-token': 'k1.9999999999999.AAAA' }).expect(403);
    expect(world.steps).to.deep.equal(['anonymous']);
  });

  it('refuses an address over its limit before any layer, even without rules', async () => {
    world.addressLimit.isOn = world.addressLimit.refuse = true;
    for (const rules of [{}, TOKENS]) {
      world.set(rules);
      const { body } = await buy({ 'seckill-purchase-token': 'any' }).expect(429);
      expect(body).to.include({ code: 'rate_limited', requestId: 'k1', retryable: true });
    }
    expect(world.steps).to.deep.equal([]);
    expect(world.addressLimit.asked).to.deep.equal(['192.0.2.1 purchase', '192.0.2.1 purchase']);
  });

  it('counts the address of every buyer request, even of probes, pages and unknown paths', async () => {
    await server.stop();
    const pages = { find: ({ url }: { url?: string }) => (url === '/s/7' ? {} : undefined) } as unknown as Pages;
    world = new AdmissionWorld({ pages: { buyers: pages, operators: pages } });
    server = await startServer(world.fake);
    world.addressLimit.isOn = world.addressLimit.refuse = true;
    const routes = routesOf(ROUTES, 'buyers').map(
      ({ method, path, endpoint }) => [method, path, endpoint ?? 'other'] as const,
    );
    for (const [method, path, endpoint] of routes) {
      const answer = request(server.url)
        [method](path.replaceAll(/\{\w+\}/g, '7'))
        .set('authorization', bearer());
      expect((await answer.expect(429)).body, path).to.include({ code: 'rate_limited' });
      expect(world.addressLimit.asked.at(-1), path).to.equal(`192.0.2.1 ${endpoint}`);
    }
    expect(world.addressLimit.asked.splice(0)).to.have.length(routes.length);
    const others = [
      ['get', '/v1/unknown'],
      ['get', '/%'],
      ['get', '/s/7'],
      ['delete', PURCHASES],
      ['delete', '/v1/sales/7'],
    ] as const;
    for (const [method, path] of others) {
      const { body } = await request(server.url)[method](path).expect(429);
      expect(body, path).to.include({ code: 'rate_limited' });
    }
    expect(world.addressLimit.asked).to.deep.equal(others.map(() => '192.0.2.1 other'));
    await request(server.operatorsUrl).get('/healthz').expect(200);
    expect(world.addressLimit.asked, 'operators have a limit of their own').to.have.length(others.length);
  });

  it('needs no admission for a sale that the rules do not name', async () => {
    const sales = ['8'];
    world.set({ sign: { ...SIGN.sign, sales, tokens: { mode: 'on', sales } }, queue: { mode: 'on', sales } });
    await buy().expect(202);
    expect(world.steps).to.deep.equal(['anonymous', 'buyer']);
  });
});

describe('other sale requests with admission layers', () => {
  let world: AdmissionWorld;
  let server: Started;
  beforeEach(async () => {
    world = new AdmissionWorld();
    server = await startServer(world.fake);
  });
  afterEach(() => server.stop());

  const ask = (method: 'get' | 'post', path: string, headers: Record<string, string> = {}): request.Test =>
    request(server.url)
      [method](path)
      .set({ authorization: bearer(), ...headers });

  for (const [method, path] of [
    ['get', `${PURCHASES}/k1`],
    ['get', `${PURCHASES}/k1/events`],
    ['post', TOKEN],
    ['post', QUEUE],
    ['get', `${QUEUE}/a-ticket`],
  ] as const) {
    it(`${method} ${path}: needs a signature with its own nonce if the sale requires it`, async () => {
      world.set(SIGN);
      const { body } = await ask(method, path, { 'idempotency-key': 'k9' }).expect(401);
      expect(body).to.include({ code: 'bad_signature', requestId: 'k9' });
      expect(world.steps).to.deep.equal([]);
      const headers = signed(path, { method: method.toUpperCase() });
      await ask(method, path, headers).expect((res) => expect(res.body.code).not.to.equal('bad_signature'));
      expect(world.steps).to.deep.equal(['anonymous', 'buyer']);
      await ask(method, path, headers).expect(401);
      world.set(SIGN_ELSEWHERE);
      await ask(method, path).expect((res) => expect(res.body.code).not.to.equal('bad_signature'));
    });
  }

  it('cover the body with the signature and limit its size', async () => {
    world.set(SIGN);
    const body = '{"a":1}';
    await ask('post', QUEUE, signed(QUEUE, { body })).send('{"a":2}').expect(401);
    await ask('post', QUEUE, { ...signed(QUEUE, { body }), 'content-type': 'application/json' })
      .send(body)
      .expect(200);
    await ask('post', QUEUE, signed(QUEUE)).send('x'.repeat(5000)).expect(413);
  });

  it('show the requirements of a purchase in the sale, even those of a dry run', async () => {
    const { saleId, sku, title, priceCents, currency, limitPerBuyer, paymentWindowMs, opensAtMs, closesAtMs } = saleOf({
      saleId: '7',
    });
    const item = {
      saleId,
      sku,
      title,
      priceCents,
      currency,
      limitPerBuyer,
      paymentWindowMs,
      opensAtMs,
      closesAtMs,
      nowMs: opensAtMs,
    };
    world.page = { outcome: 'found', view: { ...item, state: 'open', stock: 'few' } };
    const sales = ['8'];
    const cases: [rules: object, asksFor: string[]][] = [
      [{}, []],
      [SIGN, ['signature']],
      [TOKENS, ['purchase_token']],
      [{ queue: { mode: 'on' } }, ['queue_pass']],
      [
        { sign: { ...SIGN.sign, tokens: { mode: 'on' } }, queue: { mode: 'on' } },
        ['signature', 'purchase_token', 'queue_pass'],
      ],
      [
        { sign: { ...SIGN.sign, mode: 'dry_run', tokens: { mode: 'dry_run' } }, queue: { mode: 'dry_run' } },
        ['purchase_token', 'queue_pass'],
      ],
      [{ sign: { ...SIGN.sign, sales, tokens: { mode: 'on', sales } }, queue: { mode: 'on', sales } }, []],
    ];
    for (const [rules, asksFor] of cases) {
      world.set(rules);
      const { body } = await ask('get', '/v1/sales/7').expect(200);
      expect(body.asksFor, JSON.stringify(rules)).to.deep.equal(asksFor);
    }
  });
});

const SIGN_ELSEWHERE = { sign: { ...SIGN.sign, sales: ['8'] } };
