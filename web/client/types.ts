import type { Problem } from '../../src/contract/problem.js';
import type { Purchase } from '../../src/contract/purchases.js';

export type { ActionNeeded, Order, OrdersOfBuyer as OrderPage, OrderWithRefunds } from '../../src/contract/orders.js';
export type { Degraded, Place, PurchaseToken } from '../../src/contract/purchases.js';
export type { SalePage as Sale } from '../../src/contract/sales.js';
export type { Problem, Purchase };
/** An answer as it is meant: `degraded` tells the two apart. */
export type Whole<T> = T & { readonly degraded?: undefined };

/**
 * Why nothing came of a request: the `code` of a problem, which may be one that this version does not know, or one that no server
 * sends.
 * - `no_answer`: no connection, too slow, or cut on the way; the request may have been carried out
 * - `not_seckill`: somebody else has answered, such as a proxy, or what stands at a wrong `baseUrl`
 * - `not_sent`: the source of tokens failed, or a header cannot be written, such as a token with a line end
 * - `time_up`: of `events` alone: it has not ended within its patience
 */
export type Code = Problem['code'] | 'no_answer' | 'not_seckill' | 'not_sent' | 'time_up' | (string & {});

export interface Refusal {
  readonly ok: false;
  readonly code: Code;
  /** A sentence for a log; what a buyer reads is yours to write. */
  readonly detail: string;
  /** When the same request may do better, ms; null: it never will, or nobody knows. */
  readonly retryAfterMs: number | null;
  /** As it was sent; null: nothing of Seckill answered. */
  readonly problem: Problem | null;
}

export interface Success<T> {
  readonly ok: true;
  readonly status: number;
  readonly body: T;
}

/** A refusal is a value; only an aborted signal rejects. */
export type Answer<T> = Success<T> | Refusal;

/**
 * What became of a purchase.
 * - `ordered`: there is an order; pay it
 * - `failed`: it was accepted and ended without an order to pay, for this reason
 * - `refused`: nothing was taken, for this code
 * - `pending`: the units are held and the order will come; time was up before it did
 * - `unknown`: no answer that counts: it may have been accepted. Buy again with the same key
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

/** One step of a purchase. */
export interface PurchaseStep {
  readonly step: 'pending' | 'ordered' | 'failed' | 'paid' | 'cancelled' | 'expired';
  readonly purchase: Purchase;
}

export interface CallOptions {
  /** Ends the call early: it rejects with the reason of the signal. A purchase under way is not undone by it. */
  readonly signal?: AbortSignal;
  /** For so long it is tried again, ms. */
  readonly patienceMs?: number;
}

export interface BuyOptions extends CallOptions {
  /** The name of this purchase, 1 to 64 of A-Z a-z 0-9 _ -. Make it before the first try and keep it, so that a reload is the same purchase. */
  readonly key?: string;
  /** In units; 1 where left out. */
  readonly quantity?: number;
  /** Comes back with the order and its events; at most 512 bytes as JSON. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Where the sale asks for one (`asksFor`): of `waitInQueue`. */
  readonly queuePass?: string | null;
  /** Where the sale asks for one: of `purchaseToken`. */
  readonly purchaseToken?: string | null;
}

export interface ClientOptions {
  /** Where the api, or the app that has its router, is: `https://sale.example`, or `/shop` on the same origin. */
  readonly baseUrl: string;
  /**
   * The bearer token of the buyer. A function is asked before each request, so that one that ends can be replaced; after a
   * 401 it is asked once more. Left out: the request carries none, for an app that knows its buyers otherwise.
   */
  readonly token?: string | (() => string | null | Promise<string | null>);
  /** Default: that of the platform. */
  readonly fetch?: typeof globalThis.fetch;
  /** Of `fetch`; `include` sends cookies to another origin. */
  readonly credentials?: 'omit' | 'same-origin' | 'include';
}
