import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Environment } from '../../src/core/config/load.js';
import type { Sale } from '../../src/core/sale.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { SharedPrograms } from './harness/programs.js';
import type { StackHands } from './harness/stack-controls.js';
import { runRow } from './run-scenario.js';
import type { Row, RowResult } from './scenario.js';

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

/** The broker asks 10 to 15 s after a half message, and once more where the first one was asked in vain. */
const ALL_ASKED_MS = 20_000;

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
  /** Sales of rows that ran beside others and are over. */
  #over: Sale[] = [];

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
    await this.#askedForAll();
    await this.endShared();
    await lane('alone');
    return results;
  }

  /** One row, once. A row that runs alone must not be run beside another. */
  async runOne(row: Row, seed: number): Promise<RowResult> {
    const { stack, env, main, signal, onBegin, onEnd, onLogs = () => undefined } = this.#parts;
    onBegin?.(row, seed);
    if (row.alone) {
      await this.endShared();
      await this.#shelveAll();
    }
    const logDir = join(stack.servers.dir, 'op-log');
    const survivors = () => this.#shared.survivors();
    const onOver = async (sales: readonly Sale[], outcome: 'green' | 'red'): Promise<void> => {
      if (outcome === 'red') return hideSales(stack, sales).catch(() => undefined); // its server may not be mended
      this.#over.push(...sales);
      if (row.alone) await this.#shelveAll();
    };
    const result = await runRow({ row, seed, stack, env, main, logDir, survivors, signal, onOver, onLogs });
    if (!signal.aborted) onEnd?.(result, row);
    return result;
  }

  /**
   * Waits until the shared api was asked about half messages that rows have left open, and could tell of their sales. Later
   * nobody can: the broker would ask for ever, each time another api, and of two half messages one might always hear the
   * same api, be it one that a row has made dumb.
   */
  async #askedForAll(): Promise<void> {
    const { signal } = this.#parts;
    if (this.#over.length > 0) await sleep(ALL_ASKED_MS, undefined, { signal }).catch(() => undefined);
  }

  #shelveAll(): Promise<void> {
    return shelveSales(this.#parts.stack, this.#over.splice(0));
  }

  /** Ends the programs that rows share. */
  endShared(): Promise<void> {
    return this.#shared.close();
  }
}

/**
 * Takes sales whose row is over out of the way, when nothing writes their orders any more. To keepers they ended long ago, and
 * Redis knows nothing of them: else the next row that kills it would wait until hundreds of them are rebuilt. No order of
 * theirs waits for its payment: it would fall due a quarter of an hour later, in a row whose keeper is to die at its own.
 */
export async function shelveSales({ mysql, redis }: StackHands, sales: readonly Sale[]): Promise<void> {
  if (sales.length === 0) return;
  const ids = [sales.map(({ saleId }) => saleId)];
  // longer ago than a keeper asks Redis for a sale that is over
  await mysql.query(
    "UPDATE sales SET state = 'closed', opens_at = NOW(3) - INTERVAL 10 DAY, closes_at = NOW(3) - INTERVAL 9 DAY" +
      ' WHERE id IN (?)',
    ids,
  );
  await mysql.query("UPDATE orders SET state = 'expired' WHERE state = 'pending_payment' AND sale_id IN (?)", ids);
  for (const { saleId, buckets } of sales) {
    for (let bucket = 0; bucket < buckets; bucket++) {
      const { stock, sale, buyers, requests, pending, moves } = bucketKeys({ saleId, bucket });
      await redis.redis.unlink(stock, sale, buyers, requests, pending, moves);
    }
  }
}

/**
 * No keeper repairs these sales any more, and Redis keeps what it has, for a person. A closed sale would not do: while Redis
 * knows it, it is repaired after each loss, and a keeper of a later row may be told to die at its repair. Their orders are
 * left as they are too, so they fall due.
 */
export async function hideSales({ mysql }: StackHands, sales: readonly Sale[]): Promise<void> {
  if (sales.length === 0) return;
  await mysql.query("UPDATE sales SET state = 'draft' WHERE id IN (?)", [sales.map(({ saleId }) => saleId)]);
}
