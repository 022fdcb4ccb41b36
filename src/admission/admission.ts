import type { AdmissionMetrics } from '../core/ports/admission-metrics.js';
import type { Layer, Refused, Verdict, Mode, Caller } from './layer.js';
import type { CurrentRules } from './rules/current-rules.js';

/** The door of the api: every layer in turn, cheap ones first. */
export class Admission {
  readonly #repository: Pick<CurrentRules, 'isAnyOn'>;
  readonly #layers: readonly Layer[];
  readonly #metrics: Pick<AdmissionMetrics, 'refused'>;

  constructor(
    repository: Pick<CurrentRules, 'isAnyOn'>,
    layers: readonly Layer[],
    { metrics }: { readonly metrics: Pick<AdmissionMetrics, 'refused'> },
  ) {
    this.#repository = repository;
    this.#layers = layers;
    this.#metrics = metrics;
  }

  /** False: nobody would be refused, so a caller need not even put a visit together. */
  get isOn(): boolean {
    return this.#repository.isAnyOn;
  }

  /** May this visit go on, whoever makes it? At once while no layer that waits is on. */
  anonymous(caller: Caller): Verdict {
    return this.#ask(0, (layer) => layer.anonymous(caller));
  }

  /** May this buyer go on, now that the token has named him? */
  buyer(caller: Caller, userId: string): Verdict {
    return this.#ask(0, (layer) => layer.buyer(caller, userId));
  }

  #ask(from: number, question: (layer: Layer) => Verdict): Verdict {
    for (let i = from; i < this.#layers.length; i++) {
      const layer = this.#layers[i] as Layer;
      const { mode } = layer;
      if (mode === 'off') continue;
      const verdict = question(layer);
      if (verdict instanceof Promise) {
        return verdict.then((said) => this.#heard(layer, mode, said) ?? this.#ask(i + 1, question));
      }
      const refused = this.#heard(layer, mode, verdict);
      if (refused !== null) return refused;
    }
    return null;
  }

  /** What counts of a verdict: in a dry run, nothing but its number. */
  #heard(layer: Layer, mode: Exclude<Mode, 'off'>, said: Refused | null): Refused | null {
    if (said === null) return null;
    this.#metrics.refused(layer.name, said.word, mode);
    return mode === 'on' ? said : null;
  }
}
