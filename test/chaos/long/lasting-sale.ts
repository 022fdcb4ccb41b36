import { createTokenSigner } from '../../../src/http/token.js';
import { closeConnections, ask, type Answer, type Ask } from '../harness/http.js';
import type { Program } from '../harness/programs.js';
import { ACTOR, openSale } from '../harness/sales.js';
import type { StackControls } from '../harness/stack-controls.js';
import { until } from '../harness/wait.js';
import type { Random } from '../random.js';
import type { Probe } from './faults.js';

/** The idempotency key of every buyer of the lasting sale. */
const KEY = 'k1';
/** Units of the lasting sale. A few are sold per fault. */
export const LASTING_STOCK = 1_000;
const OPEN_MS = 24 * 3_600_000;
const TIMEOUT_MS = 5_000;
/** An api closes a connection once its peer has. A busy machine needs time. */
const CLOSED_WITHIN_MS = 120_000;

/** A request that must be refused. */
interface InvalidRequest {
  readonly what: string;
  readonly path: string;
  readonly request: Ask;
}

/** A sale that is open during the whole run, so that a buyer can always try. */
export class LastingSale {
  invalidRequests = 0;
  readonly #stack: StackControls;
  readonly #apis: () => readonly Program[];
  readonly #sign: ReturnType<typeof createTokenSigner>;
  #saleId = '';

  constructor(stack: StackControls, jwtSecret: string, apis: () => readonly Program[]) {
    this.#stack = stack;
    this.#apis = apis;
    this.#sign = createTokenSigner(jwtSecret);
  }

  async open(): Promise<void> {
    const { saleId } = await openSale(this.#stack, { stock: LASTING_STOCK, closesAtMs: Date.now() + OPEN_MS });
    this.#saleId = saleId;
    await until('a first purchase is accepted', () => this.buy('first'), { everyMs: 200 });
  }

  async close(): Promise<void> {
    const isClosed = async (): Promise<boolean> =>
      (await this.#stack.admin.close(this.#saleId, ACTOR)).outcome === 'done';
    await until('the lasting sale is closed', isClosed, { everyMs: 500 });
  }

  /** Buys once. @returns whether the purchase was accepted */
  async buy(userId: string): Promise<boolean> {
    const headers = { 'Idempotency-Key': KEY };
    const answer = await this.#ask(userId, '', { method: 'POST', headers, body: { quantity: 1 } });
    return answer !== null && answer.status < 300;
  }

  /** @param name of the buyers; differs for each probe */
  probe(name: string): Probe {
    let tries = 0;
    return {
      buy: async () => {
        const buyer = `${name}-${tries++}`;
        return (await this.buy(buyer)) ? buyer : null;
      },
      isOrdered: async (buyer) => (await this.#ask(buyer, `/${KEY}`))?.json.status === 'ordered',
    };
  }

  /** Sends one invalid request. @returns what is wrong with its answer, or null */
  async sendInvalid(random: Random): Promise<string | null> {
    const [api] = this.#apis();
    if (api === undefined) return null;
    const { what, path, request } = random.pick(this.#invalidRequests());
    const answer = await ask(api.url + path, { ...request, timeoutMs: TIMEOUT_MS }).catch(() => null);
    this.invalidRequests++;
    // a fault may break the connection, and 503 is right while a server is down
    if (answer === null || (answer.status >= 400 && answer.status < 500) || answer.status === 503) return null;
    return `${what} got ${answer.status} ${answer.text.slice(0, 100)}`;
  }

  /** Asks for a purchase of a retired sale and for its order. @returns what is wrong, in sentences */
  async askRetired(saleId: string, userId: string, key: string): Promise<string[]> {
    const [api] = this.#apis();
    if (api === undefined) return ['no api runs'];
    const token = this.#tokenOf(userId);
    const purchases = `${api.url}/v1/sales/${saleId}/purchases`;
    const buy = (idempotencyKey: string): Promise<Answer> =>
      ask(purchases, { method: 'POST', token, headers: { 'Idempotency-Key': idempotencyKey }, body: { quantity: 1 } });
    const status = await ask(`${purchases}/${key}`, { token });
    const about = (what: string, { status: code, text }: Answer): string =>
      `sale ${saleId}, retired: ${what} got ${code} ${text.slice(0, 120)}`;
    if (status.status !== 200 || status.json.status !== 'ordered') return [about(`purchase ${key}`, status)];
    const orderId = String(status.json.orderId);
    const order = await ask(`${api.url}/v1/orders/${orderId}`, { token });
    const again = await buy(key);
    const other = await buy('x1');
    return [
      ...(order.status === 200 ? [] : [about(`order ${orderId}`, order)]),
      ...(again.status === 200 && again.json.orderId === orderId ? [] : [about('the same key', again)]),
      ...(other.json.code === 'closed' ? [] : [about('a new key', other)]),
    ];
  }

  #invalidRequests(): InvalidRequest[] {
    const token = this.#tokenOf('hostile');
    const path = `/v1/sales/${this.#saleId}/purchases`;
    const post = { method: 'POST', token, headers: { 'Idempotency-Key': 'h1' } } as const;
    const { token: _, ...withoutToken } = post;
    return [
      { what: 'a request without a token', path, request: { ...withoutToken, body: { quantity: 1 } } },
      { what: 'a wrong token', path, request: { ...post, token: `${token}x`, body: { quantity: 1 } } },
      { what: 'a request without a key', path, request: { ...post, headers: {}, body: { quantity: 1 } } },
      { what: 'half a unit', path, request: { ...post, body: { quantity: 0.5 } } },
      { what: 'a negative quantity', path, request: { ...post, body: { quantity: -1 } } },
      { what: 'a body of 10 kB', path, request: { ...post, body: { quantity: 1, more: 'x'.repeat(10_240) } } },
      { what: 'an unknown sale', path: '/v1/sales/4711000/purchases', request: { ...post, body: { quantity: 1 } } },
      { what: 'an unknown order', path: '/v1/orders/1/pay', request: post },
      { what: 'an admin route', path: '/admin/v1/sales', request: { ...post, body: {} } },
    ];
  }

  #tokenOf(userId: string): string {
    return this.#sign({ userId, roles: [], ttlMs: 3_600_000 });
  }

  /** Returns null while no api runs. */
  async #ask(userId: string, path: string, request: Ask = {}): Promise<Answer | null> {
    const [api] = this.#apis();
    if (api === undefined) return null;
    const url = `${api.url}/v1/sales/${this.#saleId}/purchases${path}`;
    return ask(url, { ...request, token: this.#tokenOf(userId), timeoutMs: TIMEOUT_MS });
  }
}

/** Waits until no client connection is left. @throws if an api keeps one */
export async function expectNoConnections(inboundOf: () => number): Promise<void> {
  const areClosed = (): boolean => {
    closeConnections();
    return inboundOf() === 0;
  };
  await until('the apis have closed every connection of their clients', areClosed, { grantedMs: CLOSED_WITHIN_MS });
}
