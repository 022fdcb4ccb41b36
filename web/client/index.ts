import { buy } from './buy.js';
import { follow } from './follow.js';
import { untilAnswered, type Request } from './send.js';
import type {
  ActionNeeded,
  Answer,
  BuyOptions,
  CallOptions,
  ClientOptions,
  CouponPage,
  Degraded,
  Order,
  OrderPage,
  OrdersOfCells,
  OrderWithRefunds,
  Place,
  Purchase,
  PurchaseResult,
  PurchaseStep,
  PurchaseToken,
  SaleRead,
  Whole,
} from './types.js';
import { mergeOrders } from './orders-of-cells.js';
import { waitInQueue, type LetIn } from './queue.js';
import { watchSale } from './watch-sale.js';

export { CannotFollow } from './follow.js';
export { newKey } from './buy.js';
export type { LetIn } from './queue.js';
export type * from './types.js';

interface PageOptions extends CallOptions {
  readonly after?: string | null;
  readonly limit?: number;
}

export interface Client {
  /**
   * Buys, and waits for the order. Lost or temporarily refused attempts are sent again with the same key, at random
   * moments but never before the API allows. A refusal after a lost attempt counts only once the status of that key
   * says that there is no purchase.
   * @returns never rejects unless the signal aborts; `patienceMs` (2 minutes) limits the whole call
   */
  buy(saleId: string, options?: BuyOptions): Promise<PurchaseResult>;
  /**
   * Reads the status of a purchase.
   * @param waitSeconds up to 30: how long the API may hold the answer while it is pending
   */
  status(
    saleId: string,
    key: string,
    options?: CallOptions & { readonly waitSeconds?: number },
  ): Promise<Answer<Whole<Purchase> | Degraded>>;
  /**
   * Yields each step of a purchase, until it is paid, cancelled, expired or failed. Leaving the loop ends the
   * connection.
   * @throws CannotFollow, during reading, if the API refuses or `patienceMs` (an hour) has passed. Reading also rejects
   * with the reason of an aborted signal
   */
  events(saleId: string, key: string, options?: CallOptions): AsyncGenerator<PurchaseStep, void, undefined>;
  /**
   * Reads the sale.
   * @param fresh bypasses all caches: then `serverTime` is current, otherwise it may be some seconds old
   */
  sale(saleId: string, options?: CallOptions & { readonly fresh?: boolean }): Promise<Answer<SaleRead>>;
  /**
   * Yields each read of the sale, as often as the API asks for, at random moments. A read may show the opening half a
   * minute late, so count down to `opensAt`. Reads nothing while the page is hidden. Ends when its reader leaves the
   * loop.
   * @throws during reading, the reason of an aborted signal
   */
  watchSale(saleId: string, options?: CallOptions): AsyncGenerator<Answer<SaleRead>, void, undefined>;
  /** Reads the orders of the buyer, page by page. @param after `next` of the previous page */
  orders(options?: PageOptions): Promise<Answer<OrderPage>>;
  /**
   * Reads the orders of the buyer in several cells, newest first, page by page. Names the cells without an answer, each
   * of which is asked again for `patienceMs` (3 s). Is refused if no cell answers.
   * @param limit of each cell; a page has at least as many orders if there are more
   */
  ordersOfCells(cells: readonly number[], options?: PageOptions): Promise<Answer<OrdersOfCells>>;
  /** Reads the coupons of the buyer, page by page. @param after `next` of the previous page */
  coupons(options?: PageOptions): Promise<Answer<CouponPage>>;
  order(orderId: string, options?: CallOptions): Promise<Answer<Whole<OrderWithRefunds> | Degraded>>;
  /**
   * @param key names this charge; make a new one after `payment_declined`. Absent: all attempts are the same charge
   * @param paymentMethod the card's name in the library of the payment provider, if the provider needs it
   * @param coupon code of a coupon; send it with each repeat of this charge, and make a new key to change it
   */
  pay(
    orderId: string,
    options?: CallOptions & { readonly key?: string; readonly paymentMethod?: string; readonly coupon?: string },
  ): Promise<Answer<Order | ActionNeeded>>;
  cancel(orderId: string, options?: CallOptions): Promise<Answer<Order>>;
  joinQueue(saleId: string, options?: CallOptions): Promise<Answer<Place>>;
  /** Each answer brings a new ticket and ends the old ticket. */
  readTicket(saleId: string, ticket: string, options?: CallOptions): Promise<Answer<Place>>;
  /**
   * Joins the waiting room and stays until the buyer is admitted or refused, however long that takes. `patienceMs`
   * limits each request.
   * @param onPlace called with each new place in the line
   */
  waitInQueue(
    saleId: string,
    options?: CallOptions & { readonly onPlace?: (place: Place) => void },
  ): Promise<Answer<LetIn>>;
  /** Null if the sale asks for no token. */
  purchaseToken(saleId: string, options?: CallOptions): Promise<Answer<PurchaseToken>>;
}

/** Patience for a purchase, and for everything that is polled until it ends. */
const BUY_MS = 120_000;
const EVENTS_MS = 3_600_000;
/** Patience for a single call, for which a person is waiting. */
const CALL_MS = 30_000;
/** Patience for one cell of several, because the others have answered. */
const CELL_MS = 3_000;
/** A payment takes longer, because it goes through a provider. */
const PAY_TIMEOUT_MS = 30_000;

/**
 * Creates a client of the buyers' API, for browsers and Node ≥ 20. The client stores nothing: the caller keeps keys and
 * tokens.
 */
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

  const pageOf = <T>(path: string, { after, limit, ...limits }: PageOptions = {}): Promise<Answer<T>> => {
    const query = new URLSearchParams();
    if (after) query.set('after', after);
    if (limit !== undefined) query.set('limit', String(limit));
    const text = query.toString();
    return call({ path: `${path}${text === '' ? '' : `?${text}`}` }, limits);
  };

  const client: Client = {
    buy: (saleId, wanted = {}) => buy(saleAt(saleId), wanted, patienceOf(wanted, BUY_MS), options),
    status(saleId, key, { waitSeconds = 0, ...limits } = {}) {
      const timeoutMs = (waitSeconds + 15) * 1000;
      return call({ path: `${purchaseAt(saleId, key)}?wait=${waitSeconds}`, timeoutMs }, limits);
    },
    events: (saleId, key, limits = {}) => follow(purchaseAt(saleId, key), patienceOf(limits, EVENTS_MS), options),
    sale: (saleId, { fresh = false, ...limits } = {}) =>
      call({ path: `${saleAt(saleId)}${fresh ? '?fresh=1' : ''}`, isPublic: true }, limits),
    watchSale: (saleId, limits = {}) => watchSale(() => client.sale(saleId, limits), limits.signal),
    orders: (wanted) => pageOf('/v1/me/orders', wanted),
    async ordersOfCells(cells, wanted) {
      const inCell = (cell: number): Promise<Answer<OrderPage>> =>
        createClient({ ...options, cell }).orders({ patienceMs: CELL_MS, ...wanted });
      return mergeOrders(cells, await Promise.all(cells.map(inCell)));
    },
    coupons: (wanted) => pageOf('/v1/me/coupons', wanted),
    order: (orderId, limits) => call({ path: orderAt(orderId) }, limits),
    pay(orderId, { key, paymentMethod, coupon, ...limits } = {}) {
      const headers = { 'Idempotency-Key': key };
      const body = paymentMethod === undefined && coupon === undefined ? {} : { body: { paymentMethod, coupon } };
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
