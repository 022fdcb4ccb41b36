import { batchIn, sealBatch, type Batch } from '../../core/batch.js';
import { isLive } from '../../core/order.js';
import type { RequestEntry } from '../../core/outcome.js';
import { type Purchase, purchaseKey } from '../../core/purchase.js';
import { type Sale } from '../../core/sale.js';
import { homeBucket, type BucketRef } from '../../core/bucket.js';
import { failPurchases, type FailPorts } from '../../orders/fail-purchases.js';
import type { RedriveChannel } from '../../core/ports/channels.js';
import type { CompensationRepository } from '../../core/ports/compensation-repository.js';
import type { Log } from '../../core/ports/log.js';
import type { Outbox } from '../../core/ports/outbox.js';
import type { AgedOrder } from '../../core/ports/reconcile-repository.js';
import type { StoredBatch } from '../../core/ports/reconcile-store.js';
import type { BatchStore } from '../../core/ports/batch-store.js';
import { markIfComplete } from '../../recovery/mark-if-recorded.js';
import type { BothSides } from '../../recovery/stale-markers.js';

/** Access to both sides of the sales, and to everything that a compensation changes. */
export interface CompensatePorts extends BothSides {
  readonly jobs: CompensationRepository;
  readonly batches: BatchStore;
  readonly channel: RedriveChannel;
  readonly fail: FailPorts;
  readonly outbox: Outbox;
  readonly log: Log;
}

/**
 * - `done`: both sides agree, or an outbox row will make them agree
 * - `later`: no result yet, or nothing could be done. `counts`: whether it was an attempt
 * - `given_up`: the row of the purchase is `failed`, permanently
 */
export type Repair =
  | { readonly outcome: 'done' | 'given_up'; readonly note: string }
  | { readonly outcome: 'later'; readonly note: string; readonly counts: boolean };

export const done = (note: string): Repair => ({ outcome: 'done', note });
export const later = (note: string, counts = true): Repair => ({ outcome: 'later', note, counts });

const GIVEN_UP = 'no attempt recorded the purchase; it is failed now, and its units go back';

/** How long to wait for the row of a republished batch. A running worker takes milliseconds. */
export const FOLLOW_MAX_MS = 2_000;
const READ_EVERY_MS = 25;

/** State that the jobs of one pass share. */
export interface RepairPass {
  /** Bodies that have been published, because the purchases of one batch share one message. */
  readonly published: Set<string>;
  /** How long to wait for a published batch, ms. 0 once a batch was not recorded, because no worker is running. */
  followMs: number;
}

type HeldEntry = Extract<RequestEntry, { readonly state: 'held' }>;
export type RequestName = { readonly userId: string; readonly requestId: string };

/**
 * Sets Redis to the state of the row, or publishes the batch again if there is no row. Safe to repeat while a worker
 * records the batch, because the unique key of the row decides. @throws OperationalError
 */
export async function repairRequest(
  sale: Sale,
  request: RequestName,
  ports: CompensatePorts,
  aim: {
    readonly kind: 'leak' | 'not_marked' | 'unreleased';
    /** If there is still no row, the purchase becomes `failed`, and its release goes to the outbox with it. */
    readonly last: boolean;
  },
  pass: RepairPass,
): Promise<Repair> {
  const { saleId } = sale;
  const ref = { saleId, bucket: homeBucket(request.userId, sale.buckets) };
  const [row] = await ports.repository.rowsOf(saleId, [request]);
  const [entry = null] = await ports.store.entriesOf(ref, [purchaseKey(request)]);
  if (row !== undefined) {
    const updated = await updateStore(sale, ref, row, entry, ports, pass);
    // An earlier attempt gave up the purchase and died before its job was closed.
    const givenUp = aim.kind === 'leak' && row.reason === 'compensation_failed';
    return givenUp ? { outcome: 'given_up', note: GIVEN_UP } : updated;
  }
  if (entry === null || entry.state === 'released') return done('Redis holds nothing for it any more');
  if (entry.state !== 'held') return later('Redis says that it became an order, but MySQL has no order');

  const known = await ports.store.batch(ref, entry.batchId);
  const others = await handledElsewhere(ref, entry.batchId, known, ports);
  if (others !== null) return later(others, false);
  const alone = batchOfOne(sale, ref, entry, request);
  if (aim.last) return giveUp(ref, alone, known, ports);
  // An aborted batch holds no units, so the entry cannot come from it.
  if (known.marker === 'aborted') return later('its batch is aborted, so it cannot be published again');
  const batch = bodyWith(known, request) ?? alone;
  if (pass.published.has(batch.body)) return later('published again with its batch');
  await ports.channel.publish(batch);
  pass.published.add(batch.body);
  if (await follow(saleId, request, ports, pass.followMs)) return repairRequest(sale, request, ports, aim, pass);
  pass.followMs = 0;
  return later('published again, but there is no row yet');
}

/**
 * The re-drive never gives up, and an operator decides about a dead letter, so their batches must not be touched. A
 * replay fills `pending` before it closes the dead letter, so `pending` is read before and after.
 */
async function handledElsewhere(
  ref: BucketRef,
  batchId: string,
  known: StoredBatch,
  { store, repository }: BothSides,
): Promise<string | null> {
  const served = ({ pendingMs, body }: StoredBatch): boolean => pendingMs !== null && body !== null;
  const redriven = 'its batch is in pending, so the re-drive handles it';
  if (served(known)) return redriven;
  if ((await repository.parkedBatches([batchId])).has(batchId))
    return 'its dead letter is parked; replay or discard it';
  return served(await store.batch(ref, batchId)) ? redriven : null;
}

async function updateStore(
  sale: Sale,
  ref: BucketRef,
  row: AgedOrder,
  entry: RequestEntry | null,
  ports: CompensatePorts,
  { published }: RepairPass,
): Promise<Repair> {
  if (!isLive(row.state)) {
    const { userId, requestId, orderId, reason } = row;
    const batchId = entry?.state === 'held' ? entry.batchId : row.batchId;
    const withUnits = reason !== 'oversold_guard'; // that unit never existed
    const [word] = await ports.batches.release([{ ...ref, userId, requestId, orderId, batchId, withUnits }]);
    return done(word === 'released' ? 'its units were returned' : 'its units were already returned');
  }
  if (entry?.state !== 'held') return done(`Redis says ${entry?.state ?? 'nothing'}`);
  const known = await ports.store.batch(ref, entry.batchId);
  const batch = bodyWith(known, row) ?? batchOfOne(sale, ref, entry, row);
  const rows = await ports.repository.rowsOf(sale.saleId, batch.purchases);
  if ((await markIfComplete(batch, rows, ports.batches)) !== null) return done('marked recorded');
  // `markRecorded` would remove the body, which the other purchases still need.
  const others = await handledElsewhere(ref, entry.batchId, known, ports);
  if (others !== null) return later(others, false);
  if (!published.has(batch.body)) await ports.channel.publish(batch);
  published.add(batch.body);
  return later('other purchases of its batch have no row yet, so the batch was published again');
}

/** If a worker is faster, its order stays and nothing is released. */
async function giveUp(
  ref: BucketRef,
  alone: Batch,
  known: StoredBatch,
  { repository, batches, fail }: CompensatePorts,
): Promise<Repair> {
  const written = await failPurchases(alone, 'compensation_failed', fail);
  if (written === 'contended') return later('another transaction writes the same row', false);
  if (written === 'unknown_sale') return later(`there is no sale ${ref.saleId}`);
  const whole = batchIn(known.body);
  if (whole !== null) await markIfComplete(whole, await repository.rowsOf(ref.saleId, whole.purchases), batches);
  if (written.failed === 0) return done('a worker recorded it first');
  return { outcome: 'given_up', note: GIVEN_UP };
}

async function follow(
  saleId: string,
  request: RequestName,
  { repository, clock }: BothSides,
  followMs: number,
): Promise<boolean> {
  const deadlineMs = clock.monotonicMs() + followMs;
  for (;;) {
    if ((await repository.rowsOf(saleId, [request])).length > 0) return true;
    if (clock.monotonicMs() >= deadlineMs) return false;
    await clock.sleep(READ_EVERY_MS);
  }
}

/** Returns the batch as its marker keeps it, if this purchase is in it. */
function bodyWith({ body }: StoredBatch, request: RequestName): Batch | null {
  const batch = batchIn(body);
  const key = purchaseKey(request);
  return batch?.purchases.some((purchase) => purchaseKey(purchase) === key) === true ? batch : null;
}

/**
 * The same batch with only this purchase, for a marker without a body. If a worker records it, the unique key decides,
 * and Redis marks only its purchases. The entry proves that the current epoch holds the units.
 */
function batchOfOne(sale: Sale, ref: BucketRef, entry: HeldEntry, request: RequestName): Batch {
  const purchase: Purchase = { userId: request.userId, requestId: request.requestId, quantity: entry.quantity };
  const { batchId } = entry;
  return sealBatch({ ...ref, batchId, epoch: sale.epoch, createdAtMs: 0, traceparent: '', purchases: [purchase] });
}
