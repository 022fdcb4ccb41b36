import type { OrdersOfBuyer as OrderPage } from '../../src/contract/orders.js';
import type { Problem } from '../../src/contract/problem.js';
import type { Degraded, Purchase } from '../../src/contract/purchases.js';
import type { SalePage } from '../../src/contract/sales.js';

export type { ActionNeeded, Order, OrderWithRefunds } from '../../src/contract/orders.js';
export type { CouponBody as Coupon, CouponsOfBuyer as CouponPage } from '../../src/contract/coupons.js';
export type { Degraded, Place, PurchaseToken } from '../../src/contract/purchases.js';
export type { SalePage as Sale } from '../../src/contract/sales.js';
export type { OrderPage, Problem, Purchase };
/** Orders of several cells. The orders of `missingCells` are unknown: read the same page again to get them. */
export type OrdersOfCells = OrderPage & { readonly missingCells: readonly number[] };
/** A complete answer. `degraded` distinguishes it from a degraded answer. */
export type Whole<T> = T & { readonly degraded?: undefined };
/** Null if an overloaded API has no data at the moment. */
export type SaleRead = Whole<SalePage> | Degraded | null;

/**
 * Why a request failed: the `code` of a problem, which may be newer than this version, or a code that no server sends.
 * - `no_answer`: no connection, too slow, or cut on the way; the request may have been carried out
 * - `not_seckill`: something else answered, such as a proxy, or a server at a wrong `baseUrl`
 * - `not_sent`: the source of tokens failed, or a header is invalid, such as a token with a line end
 * - `time_up`: used by `events` only: the purchase has not ended within the patience
 */
export type Code = Problem['code'] | 'no_answer' | 'not_seckill' | 'not_sent' | 'time_up' | (string & {});

export interface Refusal {
  readonly ok: false;
  readonly code: Code;
  /** A sentence for a log. Write your own text for buyers. */
  readonly detail: string;
  /** How long to wait until the same request may succeed, ms. Null if it never will, or the time is unknown. */
  readonly retryAfterMs: number | null;
  /** The problem as received. Null if no answer came from Seckill. */
  readonly problem: Problem | null;
}

export interface Success<T> {
  readonly ok: true;
  readonly status: number;
  readonly body: T;
}

/** A refusal is a value. Only an aborted signal rejects. */
export type Answer<T> = Success<T> | Refusal;

/**
 * The result of a purchase.
 * - `ordered`: there is an order; pay it
 * - `failed`: it was accepted and ended without an order to pay, for this reason
 * - `refused`: nothing was taken, for the reason in the code
 * - `pending`: the units are held and an order will follow; the time was up before it came
 * - `unknown`: no usable answer came, and the purchase may have been accepted. Buy again with the same key
 */
export type PurchaseResult =
  | {
      readonly outcome: 'ordered';
      readonly key: string;
      readonly orderId: string;
      readonly orderState: NonNullable<Purchase['orderState']>;
    }
  | { readonly outcome: 'failed'; readonly key: string; readonly reason: string }
  | ({ readonly outcome: 'refused'; readonly key: string } & Omit<Refusal, 'ok'>)
  | { readonly outcome: 'pending' | 'unknown'; readonly key: string };

export interface PurchaseStep {
  readonly step: 'pending' | 'ordered' | 'failed' | 'paid' | 'cancelled' | 'expired';
  readonly purchase: Purchase;
}

export interface CallOptions {
  /** Ends the call early: it rejects with the reason of the signal. This does not undo a purchase under way. */
  readonly signal?: AbortSignal;
  /** How long the call is retried, ms. */
  readonly patienceMs?: number;
}

export interface BuyOptions extends CallOptions {
  /**
   * The name of this purchase, 1 to 64 of A-Z a-z 0-9 _ -. Make it before the first attempt and keep it, so that a
   * reload continues the same purchase.
   */
  readonly key?: string;
  /** Number of units. Default 1. */
  readonly quantity?: number;
  /** Metadata that is returned with the order and its events. At most 512 bytes as JSON. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** The pass from `waitInQueue`, if the sale asks for it (`asksFor`). */
  readonly queuePass?: string | null;
  /** The token from `purchaseToken`, if the sale asks for it. */
  readonly purchaseToken?: string | null;
}

export interface ClientOptions {
  /**
   * Address of the API, or of the app that mounts its router: `https://sale.example`, or `/shop` on the same origin.
   */
  readonly baseUrl: string;
  /**
   * The bearer token of the buyer. A function is called before each request, so that it can replace an expired token,
   * and once more after a 401. Absent: the request carries no token, for an app that identifies its buyers in another
   * way.
   */
  readonly token?: string | (() => string | null | Promise<string | null>);
  /** The cell that gets requests that name no sale, if the proxy divides requests between cells. */
  readonly cell?: number;
  /** Default: the platform's `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Option of `fetch`. `include` sends cookies to another origin. */
  readonly credentials?: 'omit' | 'same-origin' | 'include';
}
