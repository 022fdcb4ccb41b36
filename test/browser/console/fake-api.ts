import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pages } from '../../../src/http/pages.js';
import { cannedAnswers, type Canned, type CannedOptions } from './canned.js';

/**
 * Selects how it answers.
 * - `data`: some rows of everything, `long`: ten thousand, `empty`: none
 * - `failing`: 503 to every read; `silent`: no answer
 * - `away`: 502 of a proxy to everything, including the identity request
 */
export type FakeMode = 'data' | 'long' | 'empty' | 'failing' | 'silent' | 'away';

const ROWS: Readonly<Record<FakeMode, number>> = {
  data: 12,
  long: 10_000,
  empty: 0,
  failing: 12,
  silent: 12,
  away: 12,
};
/** The page size that a console requests. */
const PAGE_ROWS = 100;
const SNAPSHOT_EVERY_MS = 1_000;

/** Serves the console with canned answers, for states that a real system does not show on request. */
export class FakeApi {
  mode: FakeMode = 'data';
  role: CannedOptions['role'] = 'admin';
  /** Past snapshots that a console receives at once, so that its small charts have a line. */
  snapshotsBefore = 90;
  /** Tokens that are refused from now on. */
  readonly refused = new Set<string>();
  readonly #server: Server;
  readonly #pages: Pages;
  readonly #timers = new Set<NodeJS.Timeout>();
  /** Streams and unanswered requests. */
  readonly #open = new Set<ServerResponse>();
  readonly #made = new Map<string, { readonly canned: Canned; readonly nowMs: number }>();
  /** Serialised answers: ten thousand rows are written once. */
  readonly #texts = new Map<string, string>();

  private constructor(pages: Pages) {
    this.#pages = pages;
    this.#server = createServer((req, res) => this.#handle(req, res));
  }

  static async start(): Promise<FakeApi> {
    const pages = await Pages.load('operators');
    if (!pages.areBuilt) throw new Error('the pages are not built: npm run build:web');
    const api = new FakeApi(pages);
    await new Promise<void>((resolve) => api.#server.listen(0, '127.0.0.1', resolve));
    return api;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Ends all open requests, like an API that stops. */
  drop(): void {
    for (const res of this.#open) res.destroy();
  }

  #handle(req: IncomingMessage, res: ServerResponse): void {
    const file = this.#pages.find(req);
    if (file !== undefined) return void this.#pages.send(file, req, res);
    const { method = 'GET', url = '/' } = req;
    const { pathname, searchParams } = new URL(url, this.url);
    if (this.mode === 'away') {
      res.writeHead(502, { 'Content-Type': 'text/html' }).end('Bad Gateway');
      return;
    }
    const token = req.headers.authorization?.replace('Bearer ', '') ?? '';
    if (pathname.startsWith('/admin/') && (token === '' || this.refused.has(token)))
      return problem(res, 401, 'unauthorized', 'A valid token is needed.');
    const { canned } = this.#canned();
    if (pathname === '/admin/v1/me') return answer(res, JSON.stringify(canned.me));
    if (this.mode === 'silent') return this.#keepOpen(res);
    if (this.mode === 'failing')
      return problem(res, 503, 'unavailable', 'mysql does not answer; this try took nothing.');
    if (pathname === '/admin/v1/live') return this.#stream(res);
    const key = `${this.mode} ${this.role} ${method} ${url}`;
    const found = this.#texts.has(key) ? null : answerOf(method, pathname, searchParams, canned);
    if (found === undefined) return problem(res, 404, 'not_found', 'There is no such thing.');
    const text = this.#texts.get(key) ?? JSON.stringify(found);
    this.#texts.set(key, text);
    answer(res, text, pathname === '/readyz' && !canned.readiness.ready ? 503 : 200);
  }

  /** Returns canned answers, made once for each mode and role, because ten thousand rows take time. */
  #canned(): { readonly canned: Canned; readonly nowMs: number } {
    const { mode, role } = this;
    const key = `${mode} ${role}`;
    const nowMs = Date.now();
    const made = this.#made.get(key) ?? { canned: cannedAnswers({ rows: ROWS[mode], role, nowMs }), nowMs };
    this.#made.set(key, made);
    return made;
  }

  #stream(res: ServerResponse): void {
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    const { canned, nowMs } = this.#canned();
    const now = Math.floor((Date.now() - nowMs) / SNAPSHOT_EVERY_MS);
    let tick = now - this.snapshotsBefore;
    const send = (): void => void res.write(`event: snapshot\ndata: ${JSON.stringify(canned.snapshot(tick++))}\n\n`);
    while (tick <= now) send();
    const timer = setInterval(send, SNAPSHOT_EVERY_MS);
    this.#timers.add(timer);
    this.#keepOpen(res);
    res.on('close', () => clearInterval(timer));
  }

  #keepOpen(res: ServerResponse): void {
    this.#open.add(res);
    res.on('close', () => void this.#open.delete(res));
  }
}

function answerOf(method: string, path: string, query: URLSearchParams, canned: Canned): unknown {
  if (method !== 'GET')
    return path === '/admin/v1/rules/check'
      ? { valid: true, errors: [] }
      : path === '/admin/v1/dead-letters/bulk'
        ? { matching: canned.deadLetters.length, most: 1_000, first: canned.deadLetters.slice(0, 20) }
        : undefined;
  const [, saleId, part] = /^\/admin\/v1\/sales\/(\d+)(?:\/([\w-]+))?$/.exec(path) ?? [];
  if (saleId !== undefined) {
    if (part === 'refunds') return canned.refundCounts;
    if (part === 'waiting-room') return canned.waitingRoom;
    if (part === 'buckets') return { saleId, buckets: canned.buckets };
    if (part === 'seconds')
      return { ...canned.seconds(Date.parse(query.get('from') ?? ''), Date.parse(query.get('to') ?? '')), saleId };
    return canned.sale(Number(saleId) - 41);
  }
  if (path.startsWith('/admin/v1/requests/')) {
    const purchase = canned.purchases.find(({ requestId }) => path.endsWith(`/${requestId}`));
    return { purchases: purchase === undefined ? canned.purchases : [purchase], more: false };
  }
  const [, orderId, ofOrder] = /^\/admin\/v1\/orders\/(\d+)(\/refunds)?$/.exec(path) ?? [];
  if (ofOrder !== undefined) return { refunds: canned.orderRefunds };
  if (orderId !== undefined) return canned.orders.find((order) => order.orderId === orderId);
  if (path.startsWith('/admin/v1/dead-letters/')) return canned.deadLetter;
  if (path.startsWith('/admin/v1/rules/history/')) return canned.oldRules;
  const fixed: Readonly<Record<string, unknown>> = {
    '/admin/v1/sales': { sales: canned.sales, next: null },
    '/admin/v1/sale-plan': { sales: canned.plan },
    '/admin/v1/breakers': canned.breakers,
    '/admin/v1/orders': { orders: firstOf(canned.orders, query), next: null },
    '/admin/v1/mq/status': canned.mqStatus,
    '/admin/v1/mq/groups': canned.groups,
    '/admin/v1/mq/topics': canned.topics,
    '/admin/v1/mq/halves': canned.halves,
    '/admin/v1/mq/halves/discarded': canned.discarded,
    '/admin/v1/mq/producers': canned.clients,
    '/admin/v1/mq/consumers': canned.clients,
    '/admin/v1/mq/messages': canned.messages,
    '/admin/v1/dead-letters': { deadLetters: canned.deadLetters, next: null },
    '/admin/v1/coupons': { coupons: canned.coupons, next: null },
    '/admin/v1/refunds': { refunds: canned.refunds, next: null },
    '/admin/v1/witness/findings': { findings: [], next: null },
    '/admin/v1/payment-cases': { cases: canned.paymentCases, next: null },
    '/admin/v1/webhooks': { webhooks: canned.webhooks },
    '/admin/v1/webhooks/3/deliveries': { deliveries: canned.webhookDeliveries, next: null },
    '/admin/v1/reconcile/runs': { runs: canned.runs, next: null },
    '/admin/v1/reconcile/jobs': { jobs: canned.jobs, next: null },
    '/admin/v1/rules': canned.rules,
    '/admin/v1/rules/status': canned.rulesStatus,
    '/admin/v1/rules/history': { changes: canned.history },
    '/admin/v1/switches': canned.switches,
    '/admin/v1/audit': { entries: firstOf(canned.audit, query), next: null },
    '/readyz': canned.readiness,
  };
  return fixed[path];
}

/** Returns all rows of a list as one page, or only the newest rows if requested. */
function firstOf<T>(rows: readonly T[], query: URLSearchParams): readonly T[] {
  const limit = Number(query.get('limit'));
  return limit < PAGE_ROWS ? rows.slice(0, limit) : rows;
}

function answer(res: ServerResponse, text: string, status = 200): void {
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(text);
}

function problem(res: ServerResponse, status: number, code: string, detail: string): void {
  res
    .writeHead(status, { 'Content-Type': 'application/problem+json' })
    .end(JSON.stringify({ status, code, detail, title: code, retryable: status === 503 }));
}
