import { join } from 'node:path';
import type { Environment } from '../config/load.js';
import type { StackHands } from './harness/stack-hands.js';
import type { Row, RowResult } from './row.js';
import { runRow } from './run-row.js';
import { SharedPrograms } from './shared-programs.js';

export interface MatrixParts {
  readonly stack: StackHands;
  /** What programs run with: the environment of this process and the addresses of the servers. */
  readonly env: Environment;
  /** Entry of another build than that of this checkout, which the programs run then. */
  readonly main?: string;
  /** Rows that may run beside each other do so, at most so many at a time. */
  readonly jobs: number;
  readonly signal: AbortSignal;
  readonly onBegin?: (row: Row, seed: number) => void;
  readonly onEnd?: (result: RowResult, row: Row) => void;
  readonly onLogs?: (text: string) => void;
}

/** A row with a seed. */
interface Turn {
  readonly row: Row;
  readonly seed: number;
}

/** Every row with every seed, as far as nobody has begun it. Several stacks may work off the same. */
export class Turns {
  readonly #alone: Turn[];
  readonly #beside: Turn[];

  constructor(rows: readonly Row[], seeds: readonly number[]) {
    const turns = seeds.flatMap((seed) => rows.map((row) => ({ row, seed })));
    this.#alone = turns.filter(({ row }) => row.alone);
    this.#beside = turns.filter(({ row }) => !row.alone);
  }

  take(kind: 'alone' | 'beside'): Turn | undefined {
    return (kind === 'alone' ? this.#alone : this.#beside).shift();
  }
}

/** Runs rows on one stack: those that may beside each other, then the others one after the other. */
export class Matrix {
  readonly #parts: MatrixParts;
  readonly #shared: SharedPrograms;

  constructor(parts: MatrixParts) {
    this.#parts = parts;
    this.#shared = new SharedPrograms(parts.env, parts.stack.servers.dir, parts.main);
  }

  /** Takes turns until none is left. @returns in the order in which they ended; after an abort those that had begun */
  async run(turns: Turns): Promise<RowResult[]> {
    const results: RowResult[] = [];
    const lane = async (kind: 'alone' | 'beside'): Promise<void> => {
      while (!this.#parts.signal.aborted) {
        const turn = turns.take(kind);
        if (turn === undefined) return;
        results.push(await this.runOne(turn.row, turn.seed));
      }
    };
    await Promise.all(Array.from({ length: this.#parts.jobs }, () => lane('beside')));
    await this.endShared();
    await lane('alone');
    return results;
  }

  /** One row, once. A row that runs alone must not be run beside another. */
  async runOne(row: Row, seed: number): Promise<RowResult> {
    const { stack, env, main, signal, onBegin, onEnd, onLogs = () => undefined } = this.#parts;
    onBegin?.(row, seed);
    if (row.alone) await this.endShared();
    const logDir = join(stack.servers.dir, 'op-log');
    const survivors = () => this.#shared.survivors();
    const result = await runRow({ row, seed, stack, env, main, logDir, survivors, signal, onLogs });
    if (!signal.aborted) onEnd?.(result, row);
    return result;
  }

  /** Ends the programs that rows share. */
  endShared(): Promise<void> {
    return this.#shared.close();
  }
}
