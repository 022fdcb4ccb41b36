import { connect, type Socket } from 'node:net';
import type { ShownOrder } from '../../../src/core/order.js';
import type { PurchaseOutcome, PurchaseStatus } from '../../../src/core/outcome.js';
import type { SaleSnapshot } from '../../../src/core/sale.js';
import { newLifecycle } from '../../../src/http/answer.js';
import { MetricsPage } from '../../../src/http/metrics-page.js';
import { createBuyersServer, createOperatorsServer, type OperatorsServerOptions } from '../../../src/http/server.js';
import { NO_TRACING } from '../../../src/core/ports/tracing.js';
import { apiOf, type Api } from '../../../src/http/route.js';
import { newOperatorPlaces } from '../../../src/http/services.js';
import { ROUTES, type ApiServices } from '../../../src/programs/routes.js';
import { createTokenSigner } from '../../../src/http/token.js';
import type { PurchaseRequest } from '../../../src/purchase/gate.js';
import type { PlannedSale } from '../../../src/sales/schedule/plan-sales.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { hmacAuth } from '../../helpers/authenticator.js';
import { NO_PAGES } from '../../helpers/no-pages.js';
import { checkAnswersOf } from './declared-answers.js';
import { systemClock } from '../../../src/process/system-clock.js';
import { partial } from '../../helpers/partial.js';

export const SECRET = 'a-secret-for-tests-of-forty-bytes-length';
const sign = createTokenSigner(SECRET);
export const bearer = (userId = 'u1', roles: string[] = []): string =>
  `Bearer ${sign({ userId, roles, ttlMs: 3_600_000 })}`;

export const AT_MS = Date.UTC(2030, 0, 1);
/** Order of `u1`, not paid yet. */
export const ORDER: ShownOrder = {
  orderId: '99',
  userId: 'u1',
  saleId: '7',
  requestId: 'k1',
  batchId: 'b1',
  quantity: 2,
  amountCents: 1998,
  currency: 'EUR',
  metadata: null,
  state: 'pending_payment',
  reason: null,
  createdAtMs: AT_MS,
  expiresAtMs: AT_MS + 60_000,
  paidAtMs: null,
  refundedCents: 0,
};

/** Time limits that are long enough for any machine. A test of a limit sets a shorter value. */
const SERVER_OPTIONS: OperatorsServerOptions = {
  port: 0,
  host: '127.0.0.1',
  maxConnections: 200,
  headersTimeoutMs: 15_000,
  requestTimeoutMs: 15_000,
  keepAliveTimeoutMs: 2000,
  requestsPerSecond: 10_000,
};

/** Services with answers set by the test. Records the calls. */
export class FakeServices {
  readonly entered: PurchaseRequest[] = [];
  readonly asked: string[] = [];
  /** Sales for which an attempt to buy was counted. */
  readonly seen: string[] = [];
  readonly counted: string[] = [];
  readonly bugs: unknown[] = [];
  readonly timed: string[] = [];
  readonly bySale: string[] = [];
  dropped = 0;
  early: 'sold_out' | null = null;
  enter: (request: PurchaseRequest) => Promise<PurchaseOutcome> = () => Promise.resolve({ outcome: 'accepted' });
  status: PurchaseStatus = { status: 'pending' };
  statusFault: Error | null = null;
  plan: readonly PlannedSale[] = [];
  /** Sale in memory. */
  snapshot: SaleSnapshot | undefined;
  nowMs = (): number => Date.now();
  readonly services: ApiServices;

  constructor(overrides: Partial<ApiServices> = {}) {
    const refuse = (): never => {
      throw new Error('this test does not expect the call');
    };
    this.services = {
      cell: 0,
      auth: hmacAuth(SECRET),
      admission: partial({ isOn: false }),
      addressOf: () => '192.0.2.1',
      signatures: partial({ areNeeded: () => false, begin: () => null }),
      passes: partial({ check: () => null }),
      tokens: partial({ areIssued: () => false, begin: () => null, open: () => null }),
      unpaidPause: partial({ check: () => null }),
      addressLimit: { isOn: false, refuses: refuse },
      limitedAddress: () => [],
      rooms: partial({ isFor: () => false }),
      snapshots: partial({ peek: () => this.snapshot }),
      clock: { ...systemClock, nowMs: () => this.nowMs() },
      degrade: partial({ isOn: false }),
      reads: { status: partial({}), sale: partial({}), order: partial({}) },
      gate: {
        countAttempt: (saleId) => void this.seen.push(saleId),
        refuseEarly: (...asked) => {
          this.asked.push(asked.join(' '));
          return this.early;
        },
        enter: (request) => {
          this.entered.push(request);
          return this.enter(request);
        },
      },
      getPurchase: { get: async () => (this.statusFault === null ? this.status : Promise.reject(this.statusFault)) },
      followPurchase: partial({}),
      streamTimes: { heartbeatMs: 15_000, streamMaxMs: 60_000, retryMs: 2000 },
      getSale: { get: refuse },
      getOrder: refuse,
      findOrder: refuse,
      orderSearch: { page: refuse, currenciesOf: refuse, detailsOf: async () => new Map() },
      notifications: { list: refuse, markRead: refuse },
      refundsOf: () => Promise.resolve([]),
      payOrder: refuse,
      cancelOrder: refuse,
      webhook: null,
      prices: { currency: 'EUR', faultOf: () => null },
      editor: partial({}),
      plan: () => Promise.resolve(this.plan),
      reshard: refuse,
      sales: partial({}),
      repair: refuse,
      bucketsOf: refuse,
      saleSeconds: { landed: partial({}), answers: partial({}), keptMs: 3_600_000 },
      live: partial({ isFull: true }),
      breakers: partial({ mode: 'off', standings: [] }),
      operatorPlaces: newOperatorPlaces(),
      mq: null,
      deadLetters: {
        list: refuse,
        count: refuse,
        matching: refuse,
        parkedMatching: refuse,
        find: refuse,
        ordersOf: refuse,
        replay: refuse,
        discard: refuse,
        workThrough: refuse,
      },
      reconcile: partial({}),
      resolveLost: refuse,
      refunds: partial({}),
      paymentCases: partial({}),
      witness: partial({}),
      orderRefunds: partial({}),
      coupons: partial({}),
      couponDesk: partial({}),
      currenciesOf: refuse,
      webhooks: partial({}),
      webhookDeliveries: partial({}),
      flawOfWebhook: () => null,
      testWebhook: refuse,
      rules: partial({}),
      ruleReports: partial({}),
      switches: partial({}),
      room: partial({}),
      revocations: partial({}),
      audit: { list: refuse, append: refuse },
      profiler: { profile: refuse },
      trace: partial({}),
      ready: () => Promise.resolve({ ready: true, dependencies: [] }),
      isReady: () => Promise.resolve(true),
      cors: null,
      pages: NO_PAGES,
      metricsPage: new MetricsPage(() => Promise.resolve('up 1\n'), { token: '', cacheMs: 0 }, new ManualClock()),
      metrics: {
        answered: (route, code) => () => void this.counted.push(`${route} ${code}`),
        took: (route, answers) => () => void this.timed.push(`${route} ${answers}`),
        connectionDropped: () => void this.dropped++,
        notLogged: () => undefined,
      },
      saleAnswers: partial({ count: (saleId, code) => void this.bySale.push(`${saleId} ${code}`) }),
      tracing: NO_TRACING,
      traceIdsStored: 'all',
      accessLog: null,
      log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
      onBug: (error) => void this.bugs.push(error),
      ...overrides,
    };
  }

  get api(): Api {
    return apiOf(ROUTES, this.services);
  }
}

export interface Started {
  /** Port of the buyer listener. */
  readonly port: number;
  readonly url: string;
  readonly operatorsPort: number;
  readonly operatorsUrl: string;
  stop(): Promise<void>;
  drain(ms: number): Promise<void>;
}

/** Starts both servers as in production. Checks every response against the document of its route. */
export async function startServer(fake: FakeServices, options: Partial<OperatorsServerOptions> = {}): Promise<Started> {
  const lifecycle = newLifecycle();
  const buyers = createBuyersServer(fake.api, lifecycle, { ...SERVER_OPTIONS, ...options });
  const operators = createOperatorsServer(fake.api, lifecycle, { ...SERVER_OPTIONS, ...options, port: 0 });
  const { port } = await buyers.listen();
  const { port: operatorsPort } = await operators.listen();
  const checks = [checkAnswersOf(port, 'buyers'), checkAnswersOf(operatorsPort, 'operators')];
  const drain = async (ms: number): Promise<void> => {
    await buyers.drain(ms);
    await operators.drain(0);
    for (const stopChecking of checks) stopChecking();
  };
  const urlOf = (at: number): string => `http://127.0.0.1:${at}`;
  return {
    port,
    url: urlOf(port),
    operatorsPort,
    operatorsUrl: urlOf(operatorsPort),
    stop: () => drain(0),
    drain,
  };
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Map<string, string>;
  readonly body: string;
}

/** A connection that sends exactly the bytes that a test specifies. */
export class RawClient {
  readonly socket: Socket;
  closed = false;
  #text = '';
  #wake: () => void = () => undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.#text += text;
      this.#wake();
    });
    socket.on('error', () => undefined); // a reset ends the connection like any other end
    socket.on('close', () => {
      this.closed = true;
      this.#wake();
    });
  }

  /** @param allowHalfOpen allows sending after the server has ended its side */
  static async to(port: number, { allowHalfOpen = false } = {}): Promise<RawClient> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen });
    const client = new RawClient(socket);
    await new Promise<void>((resolve) => socket.once('connect', resolve));
    return client;
  }

  say(...lines: string[]): this {
    this.socket.write(lines.join('\r\n'), 'latin1');
    return this;
  }

  /** Returns the next complete response, or null if the connection ends first. */
  async answer(): Promise<RawAnswer | null> {
    for (;;) {
      const answer = this.#take();
      if (answer || this.closed) return answer;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async end(): Promise<void> {
    while (!this.closed) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  #take(): RawAnswer | null {
    const split = this.#text.indexOf('\r\n\r\n');
    if (split === -1) return null;
    const [statusLine = '', ...lines] = this.#text.slice(0, split).split('\r\n');
    const headers = new Map(
      lines.map((line): [string, string] => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const end = split + 4 + Number(headers.get('content-length') ?? 0);
    if (this.#text.length < end) return null;
    const body = this.#text.slice(split + 4, end);
    this.#text = this.#text.slice(end);
    return { status: Number(statusLine.split(' ')[1]), headers, body };
  }
}

/** Returns the lines of a purchase as a raw client sends them. */
export function rawPurchase(body: string, ...extra: string[]): string {
  const head = ['POST /v1/sales/7/purchases HTTP/1.1', 'Host: x', `Authorization: ${bearer()}`, ...extra];
  const hasLength = extra.some((line) => /^(content-length|transfer-encoding)/i.test(line));
  if (!hasLength) head.push(`Content-Length: ${body.length}`);
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

/** Returns the purchase of `u1` with the key `k1`. */
export const sendPurchase = ({ url }: Pick<Started, 'url'>): Promise<Response> =>
  fetch(`${url}/v1/sales/7/purchases`, {
    method: 'POST',
    headers: { authorization: bearer(), 'idempotency-key': 'k1' },
  });

/** Waits until a condition holds. The timeout of the test is the limit. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}
