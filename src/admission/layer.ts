import { z } from 'zod';
import { isSaleId } from '../core/ids.js';

/** In `dry_run`, a layer counts what it would have refused, but refuses nothing. */
export const mode = z.enum(['off', 'dry_run', 'on']);
export type Mode = z.infer<typeof mode>;

/** Requests of buyers, as the rules name them. Operators, probes and webhooks have no endpoint. */
export const ENDPOINTS = ['purchase', 'status', 'sale', 'order'] as const;
export type Endpoint = (typeof ENDPOINTS)[number];

/** The properties of a buyer's request that the layers look at. */
export interface AdmissionRequest {
  readonly endpoint: Endpoint;
  /**
   * IP address of the client as text. An IPv4-mapped IPv6 address is converted to IPv4. Empty if the connection is
   * gone.
   */
  readonly address: string;
  /** Header User-Agent. Empty if the header is missing. */
  readonly agent: string;
}

/** Names of the layers, as in rules and metrics. */
export type LayerName = 'lists' | 'limits' | 'breaker' | 'degrade' | 'sign' | 'queue' | 'orders';

/** Why a layer refuses: the `code` of the answer. */
export type AdmissionCode = 'denied' | 'rate_limited' | 'degraded' | 'unavailable';

/** A refusal, as the buyer sees it. */
export interface Refused {
  readonly word: AdmissionCode;
  /** When the same request may succeed, in ms. Null if never, or if the table of codes says when. */
  readonly retryAfterMs: number | null;
  /** Further headers of the answer: a flat list of names and values. */
  readonly headers?: readonly string[];
}

/** Null to proceed. A layer that must call a server returns a promise. */
export type Verdict = Refused | null | Promise<Refused | null>;

/**
 * A layer of admission. It is called only while its mode is not `off`, and need not distinguish a dry run from `on`.
 */
export interface Layer {
  readonly name: LayerName | 'rules';
  /** The mode in the rules that apply to this user. `userId` is null if the user is unknown. */
  modeOf(userId: string | null): Mode;
  /** Checks a request before its token is checked. */
  anonymous(request: AdmissionRequest): Verdict;
  /** Checks a request whose token is valid and names this user. */
  buyer(request: AdmissionRequest, userId: string): Verdict;
  /** Checks an operator. Omitted if the layer applies only to buyers. */
  operator?(userId: string): Refused | null;
}

/**
 * Returns a part of the rules that judge a user. The user is null if unknown, or if the part is the same for all users.
 */
export type RulesOf<R> = (userId: string | null) => R;

/** More sales than ever sell at the same time. Every request searches the list from its start. */
const SALES_MAX = 100;

/** The sales to which a layer applies. */
export const saleScope = z.union([
  z.literal('all'),
  z.array(z.string().refine(isSaleId, 'must be a sale id')).max(SALES_MAX),
]);
export type SaleScope = z.infer<typeof saleScope>;

/** Returns the mode of a layer, or of a part of it, for this sale. `off` if the layer applies to other sales. */
export const modeFor = ({ mode, sales }: { readonly mode: Mode; readonly sales: SaleScope }, saleId: string): Mode =>
  mode !== 'off' && (sales === 'all' || sales.includes(saleId)) ? mode : 'off';
