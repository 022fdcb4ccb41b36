import { z } from 'zod';
import { isSaleId } from '../core/ids.js';

/** In `dry_run`, a layer counts what it would have refused, but refuses nothing. */
export const mode = z.enum(['off', 'dry_run', 'on']);
export type Mode = z.infer<typeof mode>;

/** Requests of buyers. Operators, probes and webhooks have no endpoint. */
export const ENDPOINTS = ['purchase', 'status', 'sale', 'order'] as const;
export type Endpoint = (typeof ENDPOINTS)[number];

/** The properties of a buyer's request that the layers look at. */
export interface AdmissionRequest {
  readonly endpoint: Endpoint;
  /** Client address as text, IPv4-mapped IPv6 as IPv4. Empty if the connection is gone. */
  readonly address: string;
  /** Header User-Agent, or empty. */
  readonly agent: string;
}

/** Names of the layers, as in rules and metrics. */
export type LayerName = 'lists' | 'limits' | 'breaker' | 'degrade' | 'sign' | 'queue' | 'orders';

/** Why a layer refuses: the `code` of the answer. */
export type AdmissionCode = 'denied' | 'rate_limited' | 'degraded' | 'unavailable';

export interface Refused {
  readonly word: AdmissionCode;
  /** When the same request may succeed, ms. Null if never, or if the table of codes says when. */
  readonly retryAfterMs: number | null;
  /** Further headers: a flat list of names and values. */
  readonly headers?: readonly string[];
}

/** Null to proceed. A layer that calls a server returns a promise. */
export type Verdict = Refused | null | Promise<Refused | null>;

/** Called only while its mode is not `off`. Need not distinguish a dry run from `on`. */
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

/** Part of the rules that judge a user. Null: the user is unknown, or the part is the same for all. */
export type RulesOf<R> = (userId: string | null) => R;

/** More than ever sell at the same time. Every request searches the list. */
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
