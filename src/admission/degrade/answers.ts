import type { Endpoint } from '../endpoint.js';
import type { Level } from './level.js';

/** Endpoints that read; a purchase has no poorer answer. */
export type ReadEndpoint = Exclude<Endpoint, 'purchase'>;
export type Body = Readonly<Record<string, unknown>>;

/** What a page or a program cannot do without, by the names of the HTTP bodies. */
const ESSENTIAL: Readonly<Record<ReadEndpoint, readonly string[]>> = {
  status: ['requestId', 'saleId', 'status', 'orderId', 'orderState', 'reason'],
  sale: ['saleId', 'title', 'priceCents', 'state', 'opensAt', 'closesAt'],
  order: ['orderId', 'saleId', 'state', 'amountCents', 'expiresAt'],
};

export function essentialOf(endpoint: ReadEndpoint, body: Body): Body {
  return Object.fromEntries(ESSENTIAL[endpoint].filter((field) => field in body).map((field) => [field, body[field]]));
}

/** `unknown` is neither yes nor no: above all it is not "there is none", which a buyer would believe. */
const NOTHING_KNOWN: Readonly<Record<ReadEndpoint, Body>> = {
  status: { status: 'unknown' },
  sale: { state: 'unknown', stock: 'unknown' },
  order: { state: 'unknown' },
};

/** @param ids as they stand in the address */
export const emptyOf = (endpoint: ReadEndpoint, ids: Body): Body => ({ ...ids, ...NOTHING_KNOWN[endpoint] });

/** What L4 is: a page can do without its content; who waits for a purchase, its status or an order has to come again. */
export const REFUSAL: Readonly<Record<Endpoint, 'degraded' | 'no_content'>> = {
  purchase: 'degraded',
  status: 'degraded',
  sale: 'no_content',
  order: 'degraded',
};

/** What is given to one request. */
export type Served =
  /** As without this layer; null: there is no such thing. */
  | { readonly served: 'full'; readonly body: Body | null }
  /** With `degraded` and, where it was read before, `ageMs`. */
  | { readonly served: 'stale' | 'essential' | 'empty'; readonly body: Body }
  | { readonly served: 'degraded' | 'no_content' };

/** Says in the body that it is not the full answer, and how old it is. */
export const marked = (body: Body, degraded: Level, ageMs: number): Body => ({
  ...body,
  degraded,
  ...(ageMs > 0 ? { ageMs: Math.ceil(ageMs) } : {}),
});
