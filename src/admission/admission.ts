import type { AdmissionCode, AdmissionRequest, Layer, Mode, Refused, Verdict } from './layer.js';
import type { AdmissionMetrics } from './metrics.js';
import type { CurrentRules } from './rules/current-rules.js';

/** The answers in which a buyer notices admission, without `unavailable`, which an outage causes. */
const REFUSALS: ReadonlySet<string> = new Set<AdmissionCode | 'unpaid_pause'>([
  'denied',
  'rate_limited',
  'degraded',
  'unpaid_pause',
]);

/** Passes each request of a buyer through the layers in turn, cheap layers first. The first refusal ends the check. */
export class Admission {
  readonly #current: CurrentRules;
  readonly #layers: readonly Layer[];
  readonly #metrics: AdmissionMetrics;

  constructor(current: CurrentRules, layers: readonly Layer[], metrics: AdmissionMetrics) {
    this.#current = current;
    this.#layers = layers;
    this.#metrics = metrics;
  }

  /** False if every layer is off, so that the request need not be described. */
  get isOn(): boolean {
    return this.#current.isAnyOn;
  }

  /** Checks a request before its token is checked. Answers at once unless a layer must wait for Redis. */
  anonymous(request: AdmissionRequest): Verdict {
    return this.#ask(0, null, (layer) => layer.anonymous(request));
  }

  /** Checks a request after its token was checked and named this user. */
  buyer(request: AdmissionRequest, userId: string): Verdict {
    return this.#ask(0, userId, (layer) => layer.buyer(request, userId));
  }

  /** Notes the answer to a purchase that the layers judged by its user, to judge a canary. */
  answered(userId: string, word: string): void {
    this.#current.count(userId, REFUSALS.has(word) ? 'refused' : 'accepted');
  }

  /** Checks an operator with a valid token. No limit applies: it could lock operators out of a system in trouble. */
  operator(userId: string): Refused | null {
    for (const layer of this.#layers) {
      const mode = layer.modeOf(null); // a canary judges only buyers
      if (mode === 'off' || layer.operator === undefined) continue;
      const refused = this.#count(layer, mode, layer.operator(userId));
      if (refused !== null) return refused;
    }
    return null;
  }

  #ask(from: number, userId: string | null, question: (layer: Layer) => Verdict): Verdict {
    for (let i = from; i < this.#layers.length; i++) {
      const layer = this.#layers[i] as Layer;
      const mode = layer.modeOf(userId);
      if (mode === 'off') continue;
      const verdict = question(layer);
      if (verdict instanceof Promise) {
        return verdict.then((refused) => this.#count(layer, mode, refused) ?? this.#ask(i + 1, userId, question));
      }
      const refused = this.#count(layer, mode, verdict);
      if (refused !== null) return refused;
    }
    return null;
  }

  /** @returns the refusal if the layer is on; a dry run only counts it */
  #count(layer: Layer, mode: Exclude<Mode, 'off'>, refused: Refused | null): Refused | null {
    if (refused === null) return null;
    this.#metrics.refused(layer.name, refused.word, mode);
    return mode === 'on' ? refused : null;
  }
}
