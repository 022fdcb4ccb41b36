import { Counter, type Registry } from 'prom-client';

interface Cell {
  count: number;
  /** How much of the count has been added to the counter, and how much `takeNew` has returned. */
  brought: number;
  taken: number;
  readonly labels: readonly string[];
}

/**
 * A counter for events that occur on every request. Counting costs one addition; labels are looked up only when the
 * registry collects.
 */
export class Tally {
  readonly #counter: Counter;
  readonly #cells = new Map<string, Cell>();

  constructor(registry: Registry, name: string, help: string, labelNames: readonly string[]) {
    this.#counter = new Counter({
      name,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      collect: () => this.#bring(),
    });
  }

  /** @returns a function that adds one; functions for the same labels share a count */
  bind(labels: readonly string[]): () => void {
    const key = labels.join(' ');
    const cell = this.#cells.get(key) ?? { count: 0, brought: 0, taken: 0, labels };
    this.#cells.set(key, cell);
    return () => void cell.count++;
  }

  /** Removes a series. Functions that were bound to it no longer count. */
  remove(labels: readonly string[]): void {
    this.#cells.delete(labels.join(' '));
    this.#counter.remove(...labels);
  }

  /** Returns the counts since the last call, for the labels whose counts have changed. */
  takeNew(): (readonly [labels: readonly string[], times: number])[] {
    const found: (readonly [labels: readonly string[], times: number])[] = [];
    for (const cell of this.#cells.values()) {
      if (cell.count > cell.taken) found.push([cell.labels, cell.count - cell.taken]);
      cell.taken = cell.count;
    }
    return found;
  }

  #bring(): void {
    for (const cell of this.#cells.values()) {
      this.#counter.labels(...cell.labels).inc(cell.count - cell.brought);
      cell.brought = cell.count;
    }
  }
}
