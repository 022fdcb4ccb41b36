import { z } from 'zod';
import { isSaleId } from '../core/ids.js';

/** `dry_run` counts what a layer would have refused, and refuses nothing. */
export const mode = z.enum(['off', 'dry_run', 'on']);
export type Mode = z.infer<typeof mode>;

/** What buyers ask for, as the rules name it. Admin, probes and webhooks are not among them: no layer refuses those. */
export const ENDPOINTS = ['purchase', 'status', 'sale', 'order'] as const;
export type Endpoint = (typeof ENDPOINTS)[number];

/** One request of a buyer, as far as the layers look at it. */
export interface Caller {
  readonly endpoint: Endpoint;
  /** The IP address of the client as text, IPv4 never in IPv6 clothes; empty when its connection is gone. */
  readonly address: string;
  /** The header User-Agent; empty when there is none. */
  readonly agent: string;
}

/** Names of the layers, as rules and metrics say them. */
export type LayerName = 'lists' | 'limits' | 'breaker' | 'degrade' | 'sign' | 'queue';

/** Why a layer refuses: the `code` of the answer. */
export type AdmissionCode = 'denied' | 'rate_limited' | 'degraded';

/** A no, as the buyer hears it. */
export interface Refused {
  readonly word: AdmissionCode;
  /** When the same request may do better, in ms; null: the word says it, or never. */
  readonly retryAfterMs: number | null;
  /** More for the answer: a flat list of names and values. */
  readonly headers?: readonly string[];
}

/** Null: come in. A layer that must ask somebody else answers with a promise. */
export type Verdict = Refused | null | Promise<Refused | null>;

/** One layer of the entry. It is asked only while its mode is not `off`, and need not know the difference of the others. */
export interface Layer {
  readonly name: LayerName;
  /** As the rules in force say. */
  readonly mode: Mode;
  /** Before anybody knows who asks. */
  anonymous(caller: Caller): Verdict;
  /** The token is valid, and this is whom it names. */
  buyer(caller: Caller, userId: string): Verdict;
}

/** More sales than ever sell at once; the list is read from its start for every request. */
const SALES_MAX = 100;

/** The sales that a layer is for. */
export const saleScope = z.union([
  z.literal('all'),
  z.array(z.string().refine(isSaleId, 'must be a sale id')).max(SALES_MAX),
]);
export type SaleScope = z.infer<typeof saleScope>;

export const covers = (scope: SaleScope, saleId: string): boolean => scope === 'all' || scope.includes(saleId);
