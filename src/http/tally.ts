import { Counter, type Registry } from 'prom-client';

interface Cell {
  count: number;
  /** Of these, what the counter has, and what `takeNew` has given. */
  brought: number;
  taken: number;
  readonly labels: readonly string[];
}

/** A counter for what happens at every request: counting is an addition, and labels are looked up when they are collected. */
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

  /** @returns adds one; the same function for the same labels counts the same */
  bind(labels: readonly string[]): () => void {
    const key = labels.join(' ');
    const cell = this.#cells.get(key) ?? { count: 0, brought: 0, taken: 0, labels };
    this.#cells.set(key, cell);
    return () => void cell.count++;
  }

  /** Forgets a series; whoever still has its function counts nothing any more. */
  remove(labels: readonly string[]): void {
    this.#cells.delete(labels.join(' '));
    this.#counter.remove(...labels);
  }

  /** What was counted since the last call, for labels of which something was. */
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
