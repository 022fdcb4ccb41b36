import type { EntryMeters } from '../core/ports/entry-meters.js';
import type { Layer, Refused, Verdict } from './layer.js';
import type { Mode } from './mode.js';
import type { RuleBook } from './rules/rule-book.js';
import type { Visit } from './visit.js';

/** The door of the api: every layer in turn, cheap ones first. */
export class Entry {
  readonly #book: Pick<RuleBook, 'isAnyOn'>;
  readonly #layers: readonly Layer[];
  readonly #meters: Pick<EntryMeters, 'refused'>;

  constructor(
    book: Pick<RuleBook, 'isAnyOn'>,
    layers: readonly Layer[],
    { meters }: { readonly meters: Pick<EntryMeters, 'refused'> },
  ) {
    this.#book = book;
    this.#layers = layers;
    this.#meters = meters;
  }

  /** False: nobody would be refused, so a caller need not even put a visit together. */
  get isOn(): boolean {
    return this.#book.isAnyOn;
  }

  /** May this visit go on, whoever makes it? At once while no layer that waits is on. */
  stranger(visit: Visit): Verdict {
    return this.#ask(0, (layer) => layer.stranger(visit));
  }

  /** May this buyer go on, now that the token has named him? */
  buyer(visit: Visit, userId: string): Verdict {
    return this.#ask(0, (layer) => layer.buyer(visit, userId));
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
    this.#meters.refused(layer.name, said.word, mode);
    return mode === 'on' ? said : null;
  }
}
