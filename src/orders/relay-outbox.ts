import { doublingDelayMs, jittered } from '../core/back-off.js';
import { OperationalError, SaleInRepair } from '../core/errors.js';
import { inSteps, type Job } from '../core/job.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { Outbox, OutboxKind, OutboxPayloads, OutboxRow } from '../core/ports/outbox.js';
import type { OrderJobMetrics } from './metrics.js';

export interface ReadableRow<K extends OutboxKind> extends OutboxRow<K> {
  readonly payload: OutboxPayloads[K];
}

export interface RelayPorts<K extends OutboxKind> {
  readonly outbox: Outbox;
  /** Handles all rows or rejects. May get a row again. */
  readonly handle: (rows: readonly ReadableRow<K>[]) => Promise<void>;
  /** Groups new rows that share a message. If absent, each row is handled alone. */
  readonly group?: (rows: readonly ReadableRow<K>[]) => readonly (readonly ReadableRow<K>[])[];
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: OrderJobMetrics;
}

/** Maximum number of full leases per run: a run works off a backlog, but it must end. */
const LEASES_MAX = 50;
/** A failed row and its sale wait 1, 2, 4 … 30 s. */
const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 30_000;
/** Rows that wait for their sale become due spread over this time, not all at once. */
const RETURN_WITHIN_MS = 1_000;

/**
 * Handles due rows of the outbox: leases them, does their work, and marks them done with one statement. If the keeper
 * dies before that, the rows are handled again when their lease expires. A failed row returns later, alone, so it does
 * not delay others for long.
 *
 * A fault puts the sale in trouble: its Redis master is down, or the sale is being repaired. The second job then tries
 * one row of the sale at a time, and its other rows wait untried. Time-outs therefore delay no other sale.
 * @param options `max`: rows per lease, all handled at once; `leaseMs`: more than twice as long as `handle` may take
 * @returns two jobs with their own loops: the first handles healthy sales, the second tries the others
 */
export function relayOutbox<K extends OutboxKind>(
  ports: RelayPorts<K>,
  { kind, max, leaseMs }: { readonly kind: K; readonly max: number; readonly leaseMs: number },
): readonly [relay: Job, tryTroubled: Job] {
  const relay = new Relay(kind, ports);
  return [
    {
      name: `relay-outbox:${kind}`,
      async runOnce(): Promise<void> {
        const errors: unknown[] = [];
        for (let leases = 1; leases <= LEASES_MAX; leases++) {
          const rows = await ports.outbox.lease(kind, max, leaseMs);
          if (rows.length > 0) errors.push(...(await relay.handleRows(rows)));
          if (rows.length < max) break;
        }
        throwWorst(errors);
      },
    },
    {
      name: `relay-outbox:${kind}:troubled`,
      async runOnce(): Promise<'idle' | void> {
        if (!relay.hasTrouble) return 'idle';
        throwWorst(await relay.tryTroubled());
      },
    },
  ];
}

/** Throws the worst error of a failed run. The least serious is that a sale is being rebuilt. */
function throwWorst(errors: readonly unknown[]): void {
  if (errors.length > 0) throw errors.find((error) => !(error instanceof SaleInRepair)) ?? errors[0];
}

interface Trouble {
  failures: number;
  /** When to try the sale again, monotonic ms. */
  restsUntilMs: number;
  /** The row to try next. Null: the first that arrives after the pause. */
  row: ReadableRow<OutboxKind> | null;
}

/** A sale that has had no row for this long is forgotten: another keeper may have handled all its rows. */
const FORGOTTEN_AFTER_MS = 10 * RETRY_MAX_MS;

class Relay<K extends OutboxKind> {
  readonly #kind: K;
  readonly #ports: RelayPorts<K>;
  readonly #troubles = new Map<string, Trouble>();

  constructor(kind: K, ports: RelayPorts<K>) {
    this.#kind = kind;
    this.#ports = ports;
  }

  get hasTrouble(): boolean {
    return this.#troubles.size > 0;
  }

  /** Marks or postpones rows, or leaves them to `tryTroubled`. Returns their errors. @throws OperationalError mysql */
  async handleRows(rows: readonly OutboxRow<K>[]): Promise<unknown[]> {
    const unreadable = rows.filter(({ payload }) => payload === null);
    const waiting: OutboxRow<K>[] = [];
    const well: ReadableRow<K>[] = [];
    for (const row of rows) {
      if (!isReadable(row)) continue;
      const trouble = this.#troubles.get(saleOf(row));
      if (trouble === undefined) well.push(row);
      else if (trouble.row === null && trouble.restsUntilMs <= this.#ports.clock.monotonicMs()) trouble.row = row;
      else waiting.push(row);
    }
    await this.#giveBack(waiting);
    return [...(await this.#giveUpOn(unreadable)), ...(await this.#handle(groupsOf(well, this.#ports.group)))];
  }

  /** Tries one row of each sale whose pause is over. Returns like `handleRows`. */
  async tryTroubled(): Promise<unknown[]> {
    const forgottenMs = this.#ports.clock.monotonicMs() - FORGOTTEN_AFTER_MS;
    const groups: ReadableRow<K>[][] = [];
    for (const [saleId, { row, restsUntilMs }] of this.#troubles) {
      if (row !== null) groups.push([row as ReadableRow<K>]);
      else if (restsUntilMs < forgottenMs) this.#troubles.delete(saleId);
    }
    return groups.length === 0 ? [] : this.#handle(groups);
  }

  async #handle(groups: readonly (readonly ReadableRow<K>[])[]): Promise<unknown[]> {
    const { outbox, clock, log, metrics, handle } = this.#ports;
    const kind = this.#kind;
    const results = await Promise.allSettled(groups.map(handle));
    const faulty = new Map<string, number>(); // sale → its number of failures, including this pass
    const well = new Set(
      groups.flatMap(([row], index) => (row && results[index]?.status === 'fulfilled' ? [saleOf(row)] : [])),
    );
    for (const [index, result] of results.entries()) {
      const [row] = groups[index] ?? [];
      if (row === undefined || result.status === 'fulfilled' || !isFault(result.reason)) continue;
      const before = well.has(saleOf(row)) ? 0 : (this.#troubles.get(saleOf(row))?.failures ?? 0);
      faulty.set(saleOf(row), before + 1);
    }
    const done: string[] = [];
    const errors: unknown[] = [];
    const failedByTries = new Map<number, string[]>(); // rows that were tried equally often wait equally long
    const delaysMs = new Map<number, number>();
    for (const [index, result] of results.entries()) {
      const rows = groups[index] as readonly ReadableRow<K>[];
      const saleId = rows[0] === undefined ? '' : saleOf(rows[0]);
      const failures = faulty.get(saleId);
      if (failures === undefined) this.#troubles.delete(saleId);
      if (result.status === 'fulfilled') {
        done.push(...rows.map(({ outboxId }) => outboxId));
        continue;
      }
      const error: unknown = result.reason;
      errors.push(error);
      for (const { outboxId, attempts } of rows) {
        log.debug({ outboxId, kind, attempts, err: error }, 'outbox row failed');
        const tries = Math.max(attempts, isFault(error) ? (failures ?? 0) : 0);
        if (!delaysMs.has(tries)) delaysMs.set(tries, rowRetryDelayMs(tries));
        failedByTries.set(tries, [...(failedByTries.get(tries) ?? []), outboxId]);
        if (failures === undefined || !isFault(error)) continue;
        const restsUntilMs = clock.monotonicMs() + (delaysMs.get(tries) ?? 0);
        this.#troubles.set(saleId, { failures, restsUntilMs, row: null });
      }
    }
    await outbox.markDone(done);
    metrics.relayed(kind, 'published', done.length);
    for (const [tries, outboxIds] of failedByTries)
      await this.#postpone(outboxIds, delaysMs.get(tries) ?? RETRY_MAX_MS);
    return errors;
  }

  /** Gives back the untried rows of sales in trouble until the pause of their sale is over. */
  async #giveBack(rows: readonly OutboxRow<K>[]): Promise<void> {
    if (rows.length === 0) return;
    const nowMs = this.#ports.clock.monotonicMs();
    const restMs = rows.map((row) => (this.#troubles.get(saleOf(row))?.restsUntilMs ?? 0) - nowMs);
    const delayMs = Math.max(RETRY_FIRST_MS, Math.min(...restMs)) + Math.random() * RETURN_WITHIN_MS;
    await this.#ports.outbox.giveBack(
      rows.map(({ outboxId }) => outboxId),
      delayMs,
    );
  }

  async #giveUpOn(unreadable: readonly OutboxRow<K>[]): Promise<unknown[]> {
    const kind = this.#kind;
    const errors: unknown[] = [];
    for (const { outboxId, attempts } of unreadable) {
      this.#ports.log.error({ outboxId, kind }, 'cannot read an outbox row; repair it by hand');
      await this.#postpone([outboxId], rowRetryDelayMs(attempts));
      errors.push(new Error(`cannot read outbox row ${outboxId}`));
    }
    return errors;
  }

  async #postpone(outboxIds: readonly string[], delayMs: number): Promise<void> {
    await this.#ports.outbox.postpone(outboxIds, delayMs);
    this.#ports.metrics.relayed(this.#kind, 'retried', outboxIds.length);
  }
}

const isReadable = <K extends OutboxKind>(row: OutboxRow<K>): row is ReadableRow<K> => row.payload !== null;

/** Whether the error means trouble for the whole sale. A bug, or a bad value, concerns only one row. */
const isFault = (error: unknown): boolean => error instanceof OperationalError && error.retryable;

/** Returns the sale of a row. All releases of a row belong to the same sale. */
function saleOf({ payload }: OutboxRow<OutboxKind>): string {
  if (payload === null) return '';
  return 'saleId' in payload ? payload.saleId : (payload[0]?.saleId ?? '');
}

/** Groups new rows. A failed row goes alone, because it may be the cause. */
function groupsOf<K extends OutboxKind>(
  rows: readonly ReadableRow<K>[],
  group: RelayPorts<K>['group'],
): (readonly ReadableRow<K>[])[] {
  const alone = rows.map((row) => [row]);
  if (group === undefined) return alone;
  try {
    const fresh = group(rows.filter(({ attempts }) => attempts === 1));
    return [...fresh, ...alone.filter(([row]) => row !== undefined && row.attempts > 1)];
  } catch {
    return alone; // one of the rows is malformed: handled alone, it fails alone
  }
}

/** Adds jitter, because two keepers that failed together must not return together. */
function rowRetryDelayMs(attempts: number): number {
  return jittered(doublingDelayMs(attempts, RETRY_FIRST_MS, RETRY_MAX_MS));
}

/** Publishes how many rows of the outbox are not done. Old rows mean an outage or an unreadable row. */
export function watchOutbox(outbox: Outbox, metrics: OrderJobMetrics): Job {
  return {
    name: 'watch-outbox',
    async runOnce(): Promise<'idle' | void> {
      const backlogs = await outbox.backlog();
      for (const backlog of backlogs) metrics.backlog(backlog);
      if (backlogs.every(({ undone }) => undone === 0)) return 'idle';
    },
  };
}

/** Removes rows done more than `keepMs` ago. The table holds the rows of a few sales at most. */
export function tidyOutbox(outbox: Outbox, metrics: OrderJobMetrics, { keepMs }: { readonly keepMs: number }): Job {
  return {
    name: 'tidy-outbox',
    runOnce: () =>
      inSteps(async (max) => {
        const removed = await outbox.removeDone(keepMs, max);
        metrics.removed(removed);
        return removed;
      }),
  };
}
