import type { Mode } from './mode.js';
import type { Caller } from './caller.js';

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
