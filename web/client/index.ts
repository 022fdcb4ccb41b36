import { buy } from './buy.js';
import { follow } from './follow.js';
import { untilAnswered, type Request } from './send.js';
import type {
  ActionNeeded,
  Answer,
  BuyOptions,
  CallOptions,
  ClientOptions,
  Degraded,
  Order,
  OrderPage,
  OrderWithRefunds,
  Place,
  Purchase,
  PurchaseResult,
  PurchaseStep,
  PurchaseToken,
  Sale,
  Whole,
} from './types.js';
import { waitInQueue, type LetIn } from './queue.js';

export { CannotFollow } from './follow.js';
export { newKey } from './buy.js';
export type { LetIn } from './queue.js';
export type * from './types.js';

export interface Client {
  /**
   * Buys, and waits for the order. Tries that were lost or refused for a while are sent again with the same key, never before the
   * api asks for it and at another moment than those of others; a refusal that follows a lost try is believed when the status of
   * that key says that there is nothing.
   * @returns never rejects but when the signal aborts. `patienceMs` (2 minutes) bounds all of it
   */
  buy(saleId: string, options?: BuyOptions): Promise<PurchaseResult>;
  /** Where a purchase stands. @param waitSeconds up to 30: how long the api may hold the answer while it is pending */
  status(
    saleId: string,
    key: string,
    options?: CallOptions & { readonly waitSeconds?: number },
  ): Promise<Answer<Whole<Purchase> | Degraded>>;
  /**
   * Each step of a purchase, until it is paid, cancelled, expired or failed. A loop that is left ends the connection.
   * @throws CannotFollow while it is read: the api refuses, or `patienceMs` (an hour) has passed. Reading also
   *   rejects with the reason of an aborted signal
   */
  events(saleId: string, key: string, options?: CallOptions): AsyncGenerator<PurchaseStep, void, undefined>;
  /** The sale, and the time of the server. */
  sale(saleId: string, options?: CallOptions): Promise<Answer<Whole<Sale> | Degraded | null>>;
  /** The orders of the buyer, page by page. @param after `next` of the page before */
  orders(
    options?: CallOptions & { readonly after?: string | null; readonly limit?: number },
  ): Promise<Answer<OrderPage>>;
  order(orderId: string, options?: CallOptions): Promise<Answer<Whole<OrderWithRefunds> | Degraded>>;
  /**
   * @param key the name of this charge; a new one after `payment_declined`. Left out: all tries are one charge
   * @param paymentMethod what the library of the payment provider calls the card, where the provider needs it
   */
  pay(
    orderId: string,
    options?: CallOptions & { readonly key?: string; readonly paymentMethod?: string },
  ): Promise<Answer<Order | ActionNeeded>>;
  cancel(orderId: string, options?: CallOptions): Promise<Answer<Order>>;
  joinQueue(saleId: string, options?: CallOptions): Promise<Answer<Place>>;
  /** Each answer brings a new ticket; the old one ends. */
  readTicket(saleId: string, ticket: string, options?: CallOptions): Promise<Answer<Place>>;
  /**
   * Joins the waiting room and stays until the buyer is let in or refused, however long that is; `patienceMs` bounds each
   * request. @param onPlace called with each place on the way
   */
  waitInQueue(
    saleId: string,
    options?: CallOptions & { readonly onPlace?: (place: Place) => void },
  ): Promise<Answer<LetIn>>;
  /** Null where the sale asks for none. */
  purchaseToken(saleId: string, options?: CallOptions): Promise<Answer<PurchaseToken>>;
}

/** A purchase, and everything that is followed to its end by polls. */
const BUY_MS = 120_000;
const EVENTS_MS = 3_600_000;
/** One call: somebody looks at it. */
const CALL_MS = 30_000;
/** A payment goes through a provider. */
const PAY_TIMEOUT_MS = 30_000;

/** A client of the API of buyers, for browsers and Node ≥ 20. It keeps nothing: keys and tokens are yours. */
export function createClient(options: ClientOptions): Client {
  const patienceOf = ({ signal, patienceMs }: CallOptions, defaultMs: number) => ({
    signal,
    endMs: performance.now() + (patienceMs ?? defaultMs),
  });
  const call = <T>(request: Request, limits: CallOptions = {}): Promise<Answer<T>> =>
    untilAnswered<T>(request, patienceOf(limits, CALL_MS), options);
  const saleAt = (saleId: string): string => `/v1/sales/${encodeURIComponent(saleId)}`;
  const purchaseAt = (saleId: string, key: string): string => `${saleAt(saleId)}/purchases/${encodeURIComponent(key)}`;
  const orderAt = (orderId: string): string => `/v1/orders/${encodeURIComponent(orderId)}`;

  const client: Client = {
    buy: (saleId, wanted = {}) => buy(saleAt(saleId), wanted, patienceOf(wanted, BUY_MS), options),
    status(saleId, key, { waitSeconds = 0, ...limits } = {}) {
      const timeoutMs = (waitSeconds + 15) * 1000;
      return call({ path: `${purchaseAt(saleId, key)}?wait=${waitSeconds}`, timeoutMs }, limits);
    },
    events: (saleId, key, limits = {}) => follow(purchaseAt(saleId, key), patienceOf(limits, EVENTS_MS), options),
    sale: (saleId, limits) => call({ path: saleAt(saleId) }, limits),
    orders({ after, limit, ...limits } = {}) {
      const query = new URLSearchParams();
      if (after) query.set('after', after);
      if (limit !== undefined) query.set('limit', String(limit));
      const text = query.toString();
      return call({ path: `/v1/me/orders${text === '' ? '' : `?${text}`}` }, limits);
    },
    order: (orderId, limits) => call({ path: orderAt(orderId) }, limits),
    pay(orderId, { key, paymentMethod, ...limits } = {}) {
      const headers = { 'Idempotency-Key': key };
      const body = paymentMethod === undefined ? {} : { body: { paymentMethod } };
      const path = `${orderAt(orderId)}/pay`;
      return call({ method: 'POST', path, headers, ...body, timeoutMs: PAY_TIMEOUT_MS }, limits);
    },
    cancel: (orderId, limits) => call({ method: 'POST', path: `${orderAt(orderId)}/cancel` }, limits),
    joinQueue: (saleId, limits) => call({ method: 'POST', path: `${saleAt(saleId)}/queue` }, limits),
    readTicket: (saleId, ticket, limits) =>
      call({ path: `${saleAt(saleId)}/queue/${encodeURIComponent(ticket)}` }, limits),
    waitInQueue: (saleId, { onPlace, ...limits } = {}) => waitInQueue(saleId, client, limits, onPlace),
    purchaseToken: (saleId, limits) => call({ method: 'POST', path: `${saleAt(saleId)}/purchase-token` }, limits),
  };
  return client;
}
