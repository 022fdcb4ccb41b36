import { isDeepStrictEqual } from 'node:util';
import { Counter, type Registry } from 'prom-client';
import { decodeBatch, type Batch } from '../core/batch.js';
import { jittered } from '../core/back-off.js';
import { OperationalError } from '../core/errors.js';
import type { FailureReason } from '../core/order.js';
import { requestName } from '../core/purchase.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { Delivery, DeliverySource } from '../core/ports/channels.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { PlannedRow, ShadowStore, WrittenRow } from '../core/ports/shadow.js';
import { isOfOlderEpoch } from './draft-rows.js';
import type { OrderIdMinter } from './order-id-minter.js';
import { recordBatches } from './record-batches.js';

/**
 * What may differ.
 * - `body`: this build cannot read a message that the workers could read
 * - `row`: a row is missing, or only one side wrote it with this batch
 * - `outcome`: an order, or the reason why it failed
 * - `deadline`: the time to pay
 */
const SHADOW_FIELDS = ['body', 'row', 'quantity', 'amount', 'outcome', 'metadata', 'deadline'] as const;
type Field = (typeof SHADOW_FIELDS)[number];

/**
 * Why a batch is not compared.
 * - `earlier`: made before the shadow started, or repaired
 * - `older_epoch`: its sale was rebuilt since, and only Redis knows which units it got again
 * - `parked`: the workers parked it as a dead letter
 * - `late`: the workers had not written all its rows in time
 * - `edited`: the terms of its sale changed during the comparison
 * - `unavailable`: MySQL did not answer
 */
const SKIPPED = ['earlier', 'older_epoch', 'parked', 'late', 'edited', 'unavailable'] as const;
type Skipped = (typeof SKIPPED)[number];

interface Difference {
  readonly field: Field;
  readonly requestId?: string;
  readonly planned?: string | number;
  readonly written?: string | number;
}

/** Time for the workers to write the rows of a batch. */
const ROWS_WITHIN_MS = 60_000;
const ROWS_POLL_MS = 200;
const RECEIVE_PAUSE_MS = 1000;
/** The run proves nothing if a larger share of batches is skipped. */
const SKIPPED_SHARE_MAX = 0.05;
/** Differences that are logged. The others are only counted. */
const LOGGED_MAX = 100;
/** A deadline also respects the clock of the worker that wrote it. */
const DEADLINE_TOLERANCE_MS = 10_000;

/** Operators and repairs write these reasons, not the worker that handles the batch. */
const OF_OTHERS: ReadonlySet<FailureReason | null> = new Set<FailureReason>([
  'discarded',
  'compensation_failed',
  'units_lost',
]);

/** Compares the rows of one batch. A row that another batch wrote is not planned. */
export function compareRows(
  batch: Batch,
  planned: readonly PlannedRow[],
  written: readonly WrittenRow[],
): readonly Difference[] {
  const name = (row: { readonly userId: string; readonly requestId: string }) => requestName(batch.saleId, row);
  const plans = new Map(planned.map((row) => [name(row), row]));
  const rows = new Map(written.map((row) => [name(row), row]));
  return batch.purchases.flatMap((purchase): Difference[] => {
    const { requestId } = purchase;
    const [plan, row] = [plans.get(name(purchase)), rows.get(name(purchase))];
    const isOwn = row?.batchId === batch.batchId;
    if (row === undefined || plan === undefined || !isOwn) {
      if (row !== undefined && plan === undefined && !isOwn) return [];
      return [{ field: 'row', requestId, planned: plan ? 'a row' : 'none', written: isOwn ? 'a row' : 'none' }];
    }
    const differences: Difference[] = [];
    const compare = (field: Field, planned: string | number, written: string | number): void => {
      if (planned !== written) differences.push({ field, requestId, planned, written });
    };
    compare('quantity', plan.quantity, row.quantity);
    compare('amount', plan.amountCents, row.amountCents);
    if (!OF_OTHERS.has(row.reason)) compare('outcome', plan.failure ?? 'order', row.reason ?? 'order');
    // Metadata may be personal and is not logged.
    if (!isDeepStrictEqual(plan.metadata, row.metadata)) differences.push({ field: 'metadata', requestId });
    if (row.state === 'pending_payment' && plan.failure === null && row.expiresAtMs !== null) {
      const windowMs = row.expiresAtMs - row.createdAtMs;
      if (Math.abs(windowMs - plan.paymentWindowMs) > DEADLINE_TOLERANCE_MS) {
        compare('deadline', plan.paymentWindowMs, windowMs);
      }
    }
    return differences;
  });
}

type ShadowMetrics = ReturnType<typeof createShadowMetrics>;

export function createShadowMetrics(registry: Registry) {
  const registers = [registry];
  const rows = new Counter({
    name: 'seckill_shadow_purchases_total',
    help: 'Purchases whose rows were compared.',
    registers,
  });
  const differences = new Counter({
    name: 'seckill_shadow_differences_total',
    help: 'Differences between the rows of the workers and the rows that this build would write.',
    labelNames: ['field'],
    registers,
  });
  const skipped = new Counter({
    name: 'seckill_shadow_skipped_batches_total',
    help: 'Batches that were not compared.',
    labelNames: ['reason'],
    registers,
  });
  for (const field of SHADOW_FIELDS) differences.labels(field).inc(0);
  for (const reason of SKIPPED) skipped.labels(reason).inc(0);
  return {
    compared: (purchases: number): void => rows.inc(purchases),
    differed: (field: Field): void => differences.labels(field).inc(),
    skipped: (reason: Skipped): void => skipped.labels(reason).inc(),
  };
}

interface ShadowPorts {
  readonly source: DeliverySource;
  readonly store: ShadowStore;
  readonly wrap: (repository: OrderRepository) => OrderRepository;
  readonly clock: Clock;
  readonly metrics: ShadowMetrics;
  readonly log: Log;
}

interface ShadowOptions {
  readonly loops: number;
  readonly receiveMax: number;
  readonly paymentWindowMs: number;
}

/**
 * Receives the batches of the workers under its own group. Decides their rows with this build and compares them with
 * the rows of the workers. Writes nothing, so it acks at once.
 */
export class Shadow {
  readonly #ports: ShadowPorts;
  readonly #options: ShadowOptions;
  readonly #startedAtMs: number;
  #compared = 0;
  #differences = 0;
  /** Numbers of batches: compared, skipped, and how many of the skipped were late. Older batches do not count. */
  #batches = { compared: 0, skipped: 0, late: 0 };

  constructor(ports: ShadowPorts, options: ShadowOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#startedAtMs = ports.clock.nowMs();
  }

  get result() {
    const { compared, skipped, late } = this.#batches;
    const isSame = this.#differences === 0 && compared > 0 && skipped <= (compared + skipped) * SKIPPED_SHARE_MAX;
    const batches = { skippedBatches: skipped, lateBatches: late };
    return { purchases: this.#compared, differences: this.#differences, ...batches, isSame };
  }

  /** Runs until the signal aborts. Rejects only for a bug. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.loops }, () => this.#loop(signal)));
  }

  async #loop(signal: AbortSignal): Promise<void> {
    const { source, clock, log } = this.#ports;
    while (!signal.aborted) {
      try {
        const deliveries = await source.receive(this.#options.receiveMax);
        await Promise.all(deliveries.map((delivery) => delivery.ack()));
        await Promise.all(deliveries.map((delivery) => this.compare(delivery, signal)));
      } catch (error) {
        if (!(error instanceof OperationalError)) throw error;
        log.warn({ error: error.message }, 'the shadow could not receive messages');
        await clock.sleep(jittered(RECEIVE_PAUSE_MS), signal);
      }
    }
  }

  /** Compares one message. Rejects only for a bug. */
  async compare(delivery: Delivery, signal: AbortSignal): Promise<void> {
    try {
      const decoded = decodeBatch(delivery.body);
      const skipped =
        decoded.outcome === 'decoded'
          ? await this.#compareBatch(decoded.batch, delivery, signal)
          : await this.#compareUnreadable(delivery, signal);
      if (skipped !== null) this.#skip(skipped);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#skip('unavailable');
    }
  }

  #skip(reason: Skipped): void {
    this.#ports.metrics.skipped(reason);
    if (reason !== 'earlier') this.#batches.skipped++;
    if (reason === 'late') this.#batches.late++;
  }

  async #compareBatch(batch: Batch, { messageId }: Delivery, signal: AbortSignal): Promise<Skipped | null> {
    const { store, clock, wrap, metrics } = this.#ports;
    if (batch.createdAtMs < this.#startedAtMs) return 'earlier';
    const termsBefore = await store.termsOf(batch.saleId);
    let rows: WrittenRow[] = [];
    const isComplete = await this.#until(signal, async () => {
      rows = await store.rowsOf(batch);
      return rows.length >= batch.purchases.length;
    });
    if (signal.aborted && !isComplete) return null;
    if (!isComplete) return (await store.isParked({ messageId, batchId: batch.batchId })) ? 'parked' : 'late';
    const terms = await store.termsOf(batch.saleId);
    if (isOfOlderEpoch(batch, terms)) return 'older_epoch';
    if (!isDeepStrictEqual(terms, termsBefore)) return 'edited';
    const { repository, planned } = await store.replay(batch, rows, terms);
    const ports = { repository: wrap(repository), minter: NUMBERS, clock, store: NO_REDIS };
    await recordBatches([batch], ports, { paymentWindowMs: this.#options.paymentWindowMs });
    for (const difference of compareRows(batch, planned, rows)) this.#note(difference, batch);
    this.#batches.compared++;
    this.#compared += batch.purchases.length;
    metrics.compared(batch.purchases.length);
    return null;
  }

  /** A message that this build cannot read differs, unless the workers could not read it either. */
  async #compareUnreadable({ messageId }: Delivery, signal: AbortSignal): Promise<Skipped | null> {
    const { store } = this.#ports;
    if (await this.#until(signal, () => store.isParked({ messageId, batchId: null }))) return 'parked';
    if (!signal.aborted) this.#note({ field: 'body' }, { messageId });
    return null;
  }

  /** @returns false after a time, or when the signal aborts */
  async #until(signal: AbortSignal, ask: () => Promise<boolean>): Promise<boolean> {
    const { clock } = this.#ports;
    const endMs = clock.monotonicMs() + ROWS_WITHIN_MS;
    for (;;) {
      if (await ask()) return true;
      if (signal.aborted || clock.monotonicMs() >= endMs) return false;
      await clock.sleep(ROWS_POLL_MS, signal);
    }
  }

  #note(
    difference: Difference,
    { saleId, batchId, messageId }: Partial<Batch> & { readonly messageId?: string },
  ): void {
    const { metrics, log } = this.#ports;
    metrics.differed(difference.field);
    this.#differences++;
    if (this.#differences > LOGGED_MAX) return;
    const more = this.#differences === LOGGED_MAX ? '; further differences are only counted' : '';
    log.warn({ ...difference, saleId, batchId, messageId }, `this build would write something else${more}`);
  }
}

/** Numbers serve as order ids, because nothing is stored. */
const NUMBERS: OrderIdMinter = {
  mint: (userIds) => ({ outcome: 'minted', orderIds: userIds.map((_, index) => String(index + 1)) }),
  problem: () => null,
  renew: async () => undefined,
  close: async () => undefined,
};

/** Not needed: only batches of an older epoch need Redis, and they are not compared. */
const NO_REDIS = {} as BatchStore;
