import { z } from 'zod';
import { isSaleId } from '../core/ids.js';

/** `dry_run` counts what a layer would have refused, and refuses nothing. */
export const mode = z.enum(['off', 'dry_run', 'on']);
export type Mode = z.infer<typeof mode>;

/** What buyers ask for, as the rules name it. Operators, probes and webhooks have no endpoint. */
export const ENDPOINTS = ['purchase', 'status', 'sale', 'order'] as const;
export type Endpoint = (typeof ENDPOINTS)[number];

/** One request of a buyer, as far as the layers look at it. */
export interface AdmissionRequest {
  readonly endpoint: Endpoint;
  /** IP address of the client as text; an IPv4-mapped IPv6 address is normalised to IPv4. Empty when the connection is gone. */
  readonly address: string;
  /** Header User-Agent; empty when there is none. */
  readonly agent: string;
}

/** Names of the layers, as in rules and metrics. */
export type LayerName = 'lists' | 'limits' | 'breaker' | 'degrade' | 'sign' | 'queue' | 'orders';

/** Why a layer refuses: the `code` of the answer. */
export type AdmissionCode = 'denied' | 'rate_limited' | 'degraded' | 'unavailable';

/** A refusal, as the buyer reads it. */
export interface Refused {
  readonly word: AdmissionCode;
  /** When the same request may succeed, in ms; null: the row of the code says it, or never. */
  readonly retryAfterMs: number | null;
  /** More headers for the answer: a flat list of names and values. */
  readonly headers?: readonly string[];
}

/** Null: go on. A layer that must call a server answers with a promise. */
export type Verdict = Refused | null | Promise<Refused | null>;

/** One layer. It is called only while its mode is not `off`, and need not tell a dry run from `on`. */
export interface Layer {
  readonly name: LayerName | 'rules';
  /** As the current rules say. */
  readonly mode: Mode;
  /** Before the token is checked. */
  anonymous(request: AdmissionRequest): Verdict;
  /** The token is valid and names this user. */
  buyer(request: AdmissionRequest, userId: string): Verdict;
  /** The same for an operator. Left out: the layer is for buyers only. */
  operator?(userId: string): Refused | null;
}

/** More sales than ever sell at once; the list is read from its start for every request. */
const SALES_MAX = 100;

/** The sales that a layer is for. */
export const saleScope = z.union([
  z.literal('all'),
  z.array(z.string().refine(isSaleId, 'must be a sale id')).max(SALES_MAX),
]);
export type SaleScope = z.infer<typeof saleScope>;

/** The mode of a layer, or of a part of one, for this sale: off where it is for others. */
export const modeFor = ({ mode, sales }: { readonly mode: Mode; readonly sales: SaleScope }, saleId: string): Mode =>
  mode !== 'off' && (sales === 'all' || sales.includes(saleId)) ? mode : 'off';
