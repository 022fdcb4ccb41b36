import { escape } from 'mysql2';
import { groupBy } from '../core/group-by.js';
import { compareIds } from '../core/ids.js';
import type { FailureReason } from '../core/order.js';
import type { NewOrder, SaleTerms, WriteOutcome, WritePlan } from '../core/ports/order-repository.js';
import type { BatchRecorded } from '../core/ports/outbox.js';
import type { Release } from '../core/ports/batch-store.js';
import { MysqlError } from './errors.js';
import {
  insertAround,
  insertOrders,
  numeric,
  paymentWindowOf,
  quoted,
  refusedByDatabase,
  termsFor,
} from './insert-orders.js';
import { insertRanges } from './order-ranges.js';
import { insertTraces } from './order-traces.js';
import { insertMetadata } from './order-metadata.js';
import type { MysqlPool, Transaction } from './pool.js';

/** Maximum number of releases per outbox row, all of one sale. The relay sends them together. */
const RELEASES_PER_ROW = 500;

const SAME_EPOCH = 'SELECT id FROM sales WHERE id = ? AND epoch = ? FOR UPDATE';

/** Order ids that the guard refused when they were tried one by one. */
type Surplus = ReadonlySet<string>;
const NONE: Surplus = new Set();

/**
 * Locks rows by (user, sale, request), then `sales` rows by id, as all programs do. The `sales` rows come last, so that
 * the hot row is locked only for one round trip and the commit.
 */
export async function writeOrders(pool: MysqlPool, plan: WritePlan): Promise<WriteOutcome> {
  const orders = [...plan.orders].sort(byUniqueKey);
  try {
    return await pool.transaction(async (tx) => {
      if (plan.singleOut) return await finishAround(tx, orders, plan);
      await insertOrders(tx, orders, plan);
      return plan.oneByOne.size === 0 ? finish(tx, plan) : finishOneByOne(tx, plan);
    });
  } catch (error) {
    return outcomeOf(error, plan);
  }
}

function outcomeOf(error: unknown, { singleOut = false }: WritePlan): WriteOutcome {
  if (!(error instanceof MysqlError)) throw error;
  if (error.kind === 'bad_value' && !singleOut) return { outcome: 'value_refused' };
  if (error.kind === 'deadlock' || error.kind === 'lock_wait') return { outcome: 'again' };
  if (error.kind !== 'duplicate') throw error;
  return { outcome: error.key === 'PRIMARY' ? 'order_id_taken' : 'row_exists' };
}

/** The usual ending: ranges and outbox, then the guards, each for the total units of its sale. */
async function finish(tx: Transaction, plan: WritePlan): Promise<WriteOutcome> {
  await insertRanges(tx, plan);
  await insertMetadata(tx, plan);
  await insertTraces(tx, plan);
  await insertOutbox(tx, plan, NONE);
  const refused: SaleTerms[] = [];
  for (const [terms, units] of unitsBySale(plan, NONE)) {
    if (!(await passGuard(tx, terms, units))) refused.push(terms);
  }
  if (refused.length === 0) return { outcome: 'written', surplus: NONE };
  const outcome = await whyRefused(tx, refused);
  await tx.rollback();
  return outcome;
}

/**
 * The ending after a guard refused: locks the `sales` row and tries purchases in batch order against the units left.
 * Surplus purchases become `failed/oversold_guard`. The others pass the usual guard.
 */
async function finishOneByOne(tx: Transaction, plan: WritePlan): Promise<WriteOutcome> {
  await insertRanges(tx, plan);
  await insertMetadata(tx, plan);
  await insertTraces(tx, plan);
  const surplus = new Set<string>();
  for (const saleId of [...plan.oneByOne].sort(compareIds)) {
    const terms = termsFor(plan, saleId);
    const [row] = await tx.query<{ readonly units_left: string; readonly epoch: number }>(
      'SELECT CAST(stock AS SIGNED) - CAST(sold AS SIGNED) AS units_left, epoch FROM sales WHERE id = ? FOR UPDATE',
      [saleId],
    );
    if (row === undefined || row.epoch !== terms.epoch) {
      await tx.rollback();
      return { outcome: 'epoch_changed' };
    }
    addSurplus(surplus, plan, saleId, Number(row.units_left));
  }
  if (surplus.size > 0) {
    await tx.execute(
      "UPDATE orders SET state = 'failed', reason = 'oversold_guard', expires_at = NULL WHERE id IN (?)",
      [[...surplus]],
    );
  }
  await insertOutbox(tx, plan, surplus);
  for (const [terms, units] of unitsBySale(plan, surplus)) {
    if (await passGuard(tx, terms, units)) continue;
    const outcome = await whyRefused(tx, [terms]);
    await tx.rollback();
    return outcome;
  }
  return { outcome: 'written', surplus };
}

function addSurplus(surplus: Set<string>, plan: WritePlan, saleId: string, unitsLeft: number): void {
  let left = unitsLeft;
  for (const { orderId, batch, purchase, failure } of plan.orders) {
    if (batch.saleId !== saleId || failure !== null) continue;
    if (purchase.quantity <= left) left -= purchase.quantity;
    else surplus.add(orderId);
  }
}

/** The ending after MySQL refused a value: purchases with such a value become `failed`. */
async function finishAround(tx: Transaction, orders: readonly NewOrder[], plan: WritePlan): Promise<WriteOutcome> {
  const refused = await insertAround(tx, orders, plan);
  const marked = plan.orders.map((order) => (refused.has(order.orderId) ? refusedByDatabase(order) : order));
  const rest = { ...plan, orders: marked };
  const written = await (plan.oneByOne.size === 0 ? finish(tx, rest) : finishOneByOne(tx, rest));
  return written.outcome === 'written' && refused.size > 0 ? { ...written, refused } : written;
}

/** The last guard: the stock is not exceeded, and the sale has not been rebuilt since its terms were read. */
async function passGuard(tx: Transaction, { saleId, epoch }: SaleTerms, units: number): Promise<boolean> {
  if (units === 0) return (await tx.query(SAME_EPOCH, [saleId, epoch])).length === 1;
  const sql = 'UPDATE sales SET sold = sold + ? WHERE id = ? AND epoch = ? AND sold + ? <= stock';
  return (await tx.execute(sql, [units, saleId, epoch, units])).affectedRows === 1;
}

async function whyRefused(tx: Transaction, refused: readonly SaleTerms[]): Promise<WriteOutcome> {
  const saleIds = refused.map(({ saleId }) => saleId);
  const rows = await tx.query<{ readonly id: string; readonly epoch: number }>(
    'SELECT id, epoch FROM sales WHERE id IN (?)',
    [saleIds],
  );
  const epochs = new Map(rows.map(({ id, epoch }) => [id, epoch]));
  if (refused.some(({ saleId, epoch }) => epochs.get(saleId) !== epoch)) return { outcome: 'epoch_changed' };
  return { outcome: 'oversold', saleIds };
}

/** Sums live units per sale, by id. A sale with only failed rows has 0, because their reasons apply to this epoch. */
function unitsBySale(plan: WritePlan, surplus: Surplus): [SaleTerms, number][] {
  const units = new Map<string, number>();
  for (const { orderId, batch, purchase, failure } of plan.orders) {
    const isFailed = failure !== null || (surplus.size > 0 && surplus.has(orderId));
    units.set(batch.saleId, (units.get(batch.saleId) ?? 0) + (isFailed ? 0 : purchase.quantity));
  }
  const saleIds = [...units.keys()].sort(compareIds);
  return saleIds.map((saleId) => [termsFor(plan, saleId), units.get(saleId) as number]);
}

async function insertOutbox(tx: Transaction, plan: WritePlan, surplus: Surplus): Promise<void> {
  const rows: string[] = [];
  const row = (kind: string, key: string, saleId: string, payload: unknown): void => {
    rows.push(`('${kind}',${quoted(key)},${numeric(saleId)},${escape(JSON.stringify(payload))})`);
  };
  for (const recorded of recordedBatches(plan, surplus)) {
    row('batch_recorded', recorded.batchId, recorded.saleId, recorded);
  }
  const released = [...plan.releases, ...releasesOfFailed(plan, surplus)];
  for (const [saleId, releases] of groupBy(released, (release) => release.saleId)) {
    for (let from = 0; from < releases.length; from += RELEASES_PER_ROW) {
      const some = releases.slice(from, from + RELEASES_PER_ROW);
      row('release', some[0]?.batchId ?? '', saleId, some);
    }
  }
  if (rows.length > 0)
    await tx.execute(`INSERT INTO outbox (kind, \`key\`, sale_id, payload) VALUES ${rows.join(',')}`);
}

interface RecordedDraft extends BatchRecorded {
  readonly orders: string[];
  readonly failed: string[];
  metadata?: Record<string, string>;
  traceparent?: string;
}

function recordedBatches(plan: WritePlan, surplus: Surplus): Iterable<BatchRecorded> {
  const batches = new Map<string, RecordedDraft>();
  let recorded: RecordedDraft | undefined;
  for (const { orderId, batch, purchase, failure } of plan.orders) {
    if (recorded?.batchId !== batch.batchId) recorded = batches.get(batch.batchId); // the rows of a batch are adjacent
    if (recorded === undefined) {
      const { batchId, saleId } = batch;
      recorded = { batchId, saleId, orders: [], failed: [], paymentWindowMs: paymentWindowOf(plan, saleId) };
      if (batch.traceparent !== '') recorded.traceparent = batch.traceparent;
      batches.set(batchId, recorded);
    }
    (failure !== null || surplus.has(orderId) ? recorded.failed : recorded.orders).push(orderId);
    if (purchase.metadata !== undefined) (recorded.metadata ??= {})[orderId] = JSON.stringify(purchase.metadata);
  }
  return batches.values();
}

function releasesOfFailed({ orders }: WritePlan, surplus: Surplus): Release[] {
  const releases: Release[] = [];
  for (const order of orders) {
    const reason: FailureReason | null = surplus.has(order.orderId) ? 'oversold_guard' : order.failure;
    if (reason === null) continue;
    const { batch, purchase, orderId } = order;
    releases.push({
      saleId: batch.saleId,
      bucket: batch.bucket,
      userId: purchase.userId,
      requestId: purchase.requestId,
      orderId,
      batchId: batch.batchId,
      withUnits: reason !== 'oversold_guard', // that unit never existed
    });
  }
  return releases;
}

function byUniqueKey(a: NewOrder, b: NewOrder): number {
  return (
    compare(a.purchase.userId, b.purchase.userId) ||
    compareIds(a.batch.saleId, b.batch.saleId) ||
    compare(a.purchase.requestId, b.purchase.requestId)
  );
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
