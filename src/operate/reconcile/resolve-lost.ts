import { sealBatch, type Batch } from '../../core/batch.js';
import { bucketRefsOf, homeBucket } from '../../core/bucket.js';
import { assertNever } from '../../core/errors.js';
import { groupBy } from '../../core/group-by.js';
import type { FailureReason } from '../../core/order.js';
import { mintedAtMs } from '../../core/order-id.js';
import type { OrderEventType } from '../../core/order-event.js';
import { batchOfEntry } from '../../core/outcome.js';
import type { AuditLog } from '../../core/ports/audit-log.js';
import type { ReconcileRuns } from '../../core/ports/reconcile-runs.js';
import { purchaseKey, type Purchase, type PurchaseName } from '../../core/purchase.js';
import type { SaleFinding } from '../../core/sale-finding.js';
import type { Sale } from '../../core/sale.js';
import { draftRows, lookUp } from '../../orders/draft-rows.js';
import { failPurchases, type FailPorts } from '../../orders/fail-purchases.js';
import { ATTEMPTS_MAX, contendedPauseMs } from '../../orders/write-attempts.js';
import { repairNeedIn } from '../../recovery/repair/sale-status.js';
import type { BothSides } from '../../recovery/stale-markers.js';
import { type CompareLimits, RequestJudge } from './judge-requests.js';
import { SaleNotes } from './sale-report.js';
import { type Evidence, searchOrSilence, type SearchBroker } from './search-broker.js';
import { withSaleLease, type LeaseTaken } from './sale-lease.js';

// After a restore of MySQL, each order that only Redis knows gets its row, as it was or failed (docs/decisions/0010).

/**
 * - `write`: each order again under its old id; ended orders as failed
 * - `fail`: each order as failed, and its units go back
 * - `auto`: orders that a message or an event at the broker confirms again, the others as failed
 */
export const RESOLVE_MODES = ['write', 'fail', 'auto'] as const;
export type ResolveMode = (typeof RESOLVE_MODES)[number];

/** A purchase that became an order but has no row. */
export interface LostOrder extends PurchaseName {
  readonly quantity: number;
  /** Null if its units were lost before it had a row, so that it never had an order id. */
  readonly orderId: string | null;
  /** The batch that found no units, or null. */
  readonly batchId: string | null;
  readonly holdsUnits: boolean;
}

/**
 * - `written`: the order is there again, unpaid, with a new deadline
 * - `failed`: the order is there again as failed, and its units go back
 * - `recorded`: another process wrote its row
 * - `left`: nothing was decided, and `note` says why
 */
export const RESOLUTIONS = ['written', 'failed', 'recorded', 'left'] as const;
type Resolution = (typeof RESOLUTIONS)[number];

export interface ResolvedOrder extends PurchaseName {
  readonly saleId: string;
  readonly orderId: string | null;
  readonly quantity: number;
  readonly outcome: Resolution;
  /** Reason of a failed order, otherwise null. */
  readonly reason: FailureReason | null;
  /** The broker's evidence: `message`, or the types of the order's events. */
  readonly evidence: readonly ('message' | OrderEventType)[];
  readonly note: string | null;
}

export interface ResolveOrder {
  readonly saleId: string;
  readonly mode: ResolveMode;
  readonly dryRun: boolean;
  readonly max: number;
  /** How long to wait until a keeper has rebuilt the sale, ms. */
  readonly waitMs: number;
  readonly actor: string;
}

/**
 * - `resolved`: numbers by outcome. `more`: the sale has more lost orders than requested; `silent`: why the search of
 *   the broker is incomplete, or null
 * - `not_loaded`: Redis lacks the whole sale until a keeper rebuilds it
 * - `taken`: another run is comparing the sale
 */
export type SaleResolved =
  | {
      readonly outcome: 'resolved';
      readonly saleId: string;
      readonly counts: Readonly<Record<Resolution, number>>;
      readonly more: boolean;
      readonly silent: string | null;
    }
  | { readonly outcome: 'not_found' | 'not_loaded'; readonly saleId: string }
  | LeaseTaken;

export type Resolving = BothSides & {
  readonly runs: ReconcileRuns;
  readonly fail: FailPorts;
  readonly audit: AuditLog;
  readonly search: SearchBroker;
};

/** How to compare, and how long a buyer has to pay an order that is written again. */
export type ResolveLimits = CompareLimits & { readonly paymentWindowMs: number };

const REBUILT_EVERY_MS = 250;
const ENTRIES_PER_READ = 500;
/** Maximum number of rows per transaction. */
const ROWS_MAX = 500;
/** Readers of an `order_ranges` entry read all ids between its ends, so the ids of a transaction must be close. */
const SPAN_MAX_MS = 1000;
/** Events after which an order holds no units. */
const ENDED: readonly OrderEventType[] = ['order.cancelled', 'order.expired', 'order.failed'];

/**
 * Safe to repeat and interrupt, because an order with a row is no longer lost. Safe beside workers, repairs and buyers:
 * the unique key decides, and a repair in between refuses the write. @throws OperationalError; call again
 */
export async function resolveLost(
  request: ResolveOrder,
  ports: Resolving,
  limits: ResolveLimits,
  onOrder: (order: ResolvedOrder) => void = () => undefined,
): Promise<SaleResolved> {
  const { saleId, mode, dryRun, max, actor } = request;
  const counts: Record<Resolution, number> = { written: 0, failed: 0, recorded: 0, left: 0 };
  const nothing = { outcome: 'resolved', saleId, counts, more: false, silent: null } as const;
  const found = await rebuiltSale(request, ports);
  if (found === null || found === 'not_loaded') return { outcome: found ?? 'not_found', saleId };
  if (found.state === 'draft' || found.retiredAtMs !== null) return nothing; // Redis knows no order of it
  return withSaleLease(saleId, actor, ports.runs, async (keepLease): Promise<SaleResolved> => {
    const { lost, more } = await lostOrders(found, ports, { ...limits, readsMax: max }, keepLease);
    if (lost.length === 0) return nothing;
    const { found: evidence, silent } = await searchOrSilence(ports.search, saleId, lost);
    const planned = lost.map((one) => plan(found, one, evidence.get(purchaseKey(one)), mode, silent));
    const tell = (order: ResolvedOrder): void => {
      counts[order.outcome]++;
      onOrder(order);
    };
    for (const some of transactionsOf(planned)) {
      await keepLease();
      if (!dryRun) await audit(some, request, ports.audit);
      for (const order of dryRun ? some.map(asPlanned) : await carryOut(found, some, ports, limits)) tell(order);
    }
    return { ...nothing, more, silent };
  });
}

/** Waits until Redis has the sale in the state that MySQL has. A closed sale is rebuilt only on request. */
async function rebuiltSale(
  { saleId, waitMs }: ResolveOrder,
  { repository, repairs, clock }: Resolving,
): Promise<Sale | 'not_loaded' | null> {
  const deadlineMs = clock.monotonicMs() + waitMs;
  for (;;) {
    const sale = await repository.findSale(saleId);
    if (sale === null || sale.state === 'draft' || sale.retiredAtMs !== null) return sale;
    if ((await repairNeedIn(sale, repairs)) === null) return sale;
    await repairs.askForRepair(saleId);
    if (clock.monotonicMs() >= deadlineMs) return 'not_loaded';
    await clock.sleep(REBUILT_EVERY_MS);
  }
}

type LostFinding = Extract<SaleFinding, { readonly requestId: string }>;

/** Keeps all lost orders, whereas the notes of a comparison keep only the first thousand findings. */
class LostNotes extends SaleNotes {
  readonly lost: LostFinding[] = [];

  override found(finding: SaleFinding): void {
    if (finding.kind === 'order_lost') this.lost.push(finding as LostFinding);
  }
}

/** Finds lost orders like a comparison: reads each twice, and skips orders that a worker is still writing. */
async function lostOrders(
  sale: Sale,
  ports: BothSides,
  limits: CompareLimits,
  keepLease: () => Promise<void>,
): Promise<{ readonly lost: readonly LostOrder[]; readonly more: boolean }> {
  const { saleId } = sale;
  const notes = new LostNotes();
  const judge = new RequestJudge(saleId, ports, limits, notes, keepLease);
  for (const ref of bucketRefsOf(sale)) {
    for await (const page of ports.store.requests(ref)) {
      await judge.readRequests(ref, page);
      await keepLease();
    }
  }
  const lost: LostOrder[] = [];
  const known = new Set<string>(); // a scan may return a request twice
  for (const [bucket, findings] of groupBy(notes.lost, ({ userId }) => homeBucket(userId, sale.buckets))) {
    for (let from = 0; from < findings.length; from += ENTRIES_PER_READ) {
      const keys = findings.slice(from, from + ENTRIES_PER_READ).map(purchaseKey);
      const entries = await ports.store.entriesOf({ saleId, bucket }, keys);
      entries.forEach((entry, at) => {
        const { userId, requestId } = findings[from + at] as LostFinding;
        const key = keys[at] as string;
        if (entry === null || entry.state === 'held' || known.has(key)) return;
        known.add(key);
        const batchId = batchOfEntry(entry);
        const orderId = batchId === null ? entry.orderId : null;
        lost.push({
          userId,
          requestId,
          quantity: entry.quantity,
          orderId,
          batchId,
          holdsUnits: entry.state === 'ordered',
        });
      });
    }
  }
  return { lost, more: notes.seen.unseen > 0 };
}

interface Planned {
  readonly lost: LostOrder;
  readonly batch: Batch;
  readonly purchase: Purchase;
  readonly does: 'write' | 'fail' | 'leave';
  readonly reason: FailureReason | null;
  readonly shown: Omit<ResolvedOrder, 'outcome' | 'reason'>;
}

function plan(
  { saleId, buckets, epoch }: Sale,
  lost: LostOrder,
  { batch: carrier, purchase: carried, events = new Set(), metadata }: Partial<Evidence> = {},
  mode: ResolveMode,
  silent: string | null,
): Planned {
  const { userId, requestId, quantity, orderId, batchId } = lost;
  const purchase = { ...(metadata ? { metadata } : {}), ...(carried ?? { userId, requestId, quantity }) };
  // A row needs the name of a batch. No other batch has this name.
  const batch = sealBatch({
    batchId: carrier?.batchId ?? batchId ?? `lost-${orderId}`,
    saleId,
    bucket: homeBucket(userId, buckets),
    epoch,
    createdAtMs: carrier?.createdAtMs ?? 0,
    traceparent: '',
    purchases: [purchase],
  });
  const evidence = [...(carrier === undefined ? [] : ['message' as const]), ...events];
  const { does, note } = decide(lost, events, mode, evidence.length > 0, silent);
  const reason = does === 'fail' ? (batchId === null ? 'discarded' : 'units_lost') : null;
  const shown = { saleId, userId, requestId, orderId, quantity, evidence, note };
  return { lost, batch, purchase, does, reason, shown };
}

function decide(
  { holdsUnits }: LostOrder,
  events: ReadonlySet<OrderEventType>,
  mode: ResolveMode,
  isConfirmed: boolean,
  silent: string | null,
): { readonly does: Planned['does']; readonly note: string | null } {
  const paid = events.has('order.paid') ? 'it was paid' : null;
  if (!holdsUnits) return { does: 'fail', note: 'it holds no units' };
  if (ENDED.some((type) => events.has(type))) return { does: 'fail', note: 'it had ended' };
  switch (mode) {
    case 'write':
      return { does: 'write', note: paid };
    case 'fail':
      return { does: 'fail', note: paid };
    case 'auto':
      if (isConfirmed) return { does: 'write', note: paid };
      if (silent !== null) return { does: 'leave', note: `the broker was not searched completely: ${silent}` };
      return { does: 'fail', note: 'the broker knows nothing of it' };
    default:
      return assertNever(mode);
  }
}

const asPlanned = ({ does, reason, shown }: Planned): ResolvedOrder => ({
  ...shown,
  outcome: does === 'write' ? 'written' : does === 'fail' ? 'failed' : 'left',
  reason,
});

/** Groups orders that one transaction will write: all of them are handled alike, and their ids are close together. */
function* transactionsOf(planned: readonly Planned[]): Generator<readonly Planned[]> {
  const ofKind = groupBy(planned, ({ does, lost: { orderId } }) => (orderId === null ? 'without id' : does));
  for (const [, some] of ofKind) {
    const sorted = [...some].sort((one, other) => (idOf(one) < idOf(other) ? -1 : 1));
    let group: Planned[] = [];
    for (const one of sorted) {
      const [first] = group;
      const isFar = first !== undefined && spanMs(first, one) > SPAN_MAX_MS;
      if (isFar || group.length === ROWS_MAX) {
        yield group;
        group = [];
      }
      group.push(one);
    }
    if (group.length > 0) yield group;
  }
}

const idOf = ({ lost: { orderId } }: Planned): bigint => BigInt(orderId ?? 0);
const spanMs = (first: Planned, last: Planned): number =>
  first.lost.orderId === null || last.lost.orderId === null
    ? 0
    : mintedAtMs(last.lost.orderId) - mintedAtMs(first.lost.orderId);

/** Redis is not part of any transaction, so the audit log is written before the change, once per transaction. */
async function audit(some: readonly Planned[], { saleId, mode, actor }: ResolveOrder, log: AuditLog): Promise<void> {
  const [first] = some;
  if (first === undefined || first.does === 'leave') return;
  const orders = some.map(({ lost }) => lost.orderId ?? lost.batchId);
  const after = { mode, does: first.does, orders };
  await log.append({ actor, action: 'orders.resolved', subject: `sale:${saleId}`, before: null, after });
}

async function carryOut(
  sale: Sale,
  some: readonly Planned[],
  ports: Resolving,
  limits: ResolveLimits,
): Promise<ResolvedOrder[]> {
  if (some[0]?.does === 'leave') return some.map(asPlanned);
  if (some[0]?.lost.orderId === null) {
    const ended: ResolvedOrder[] = [];
    for (const one of some) ended.push(await failWithNewId(one, ports));
    return ended;
  }
  const rows = await writeRows(sale, some, ports, limits);
  return some.map((one): ResolvedOrder => {
    const row = rows?.get(purchaseKey(one.lost));
    if (row === undefined) return { ...one.shown, outcome: 'left', reason: null, note: CONTENDED };
    if (row === 'recorded') return { ...one.shown, outcome: 'recorded', reason: null };
    return { ...one.shown, outcome: row === null ? 'written' : 'failed', reason: row };
  });
}

const CONTENDED = 'another program changed the sale or these orders; run it again';

/** Writes a purchase that never had an order id as failed. */
async function failWithNewId({ batch, reason, shown }: Planned, { fail }: Resolving): Promise<ResolvedOrder> {
  const written = await failPurchases(batch, reason ?? 'discarded', fail);
  if (typeof written === 'string') return { ...shown, outcome: 'left', reason: null, note: CONTENDED };
  return {
    ...shown,
    outcome: written.failed === 1 ? 'failed' : 'recorded',
    reason: written.failed === 1 ? reason : null,
  };
}

/**
 * Writes rows under their old ids, all or none. Live units count as sold, as in Redis. Payment deadlines restart.
 * @returns per row: the reason if failed, null if live, `recorded` if it existed; null if nothing was written
 */
async function writeRows(
  sale: Sale,
  some: readonly Planned[],
  { fail: { repository, clock } }: Resolving,
  { paymentWindowMs }: ResolveLimits,
): Promise<ReadonlyMap<string, FailureReason | 'recorded' | null> | null> {
  const { saleId, epoch } = sale;
  const byKey = new Map(some.map((one) => [purchaseKey(one.lost), one]));
  const batches = [...groupBy(some, ({ batch }) => batch.batchId).values()].flatMap(batchesOf);
  const oneByOne = new Set<string>();
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const terms = await repository.termsOf([saleId]);
    if (terms.get(saleId)?.epoch !== epoch) return null; // a repair has judged these orders again
    const draft = draftRows(batches, terms, await lookUp(batches, terms, repository));
    const result = new Map<string, FailureReason | 'recorded' | null>(
      some.map(({ lost }) => [purchaseKey(lost), 'recorded']),
    );
    if (draft.rows.length === 0) return result;
    const orders = draft.rows.map(({ batch, purchase, failure }) => {
      const { lost, reason } = byKey.get(purchaseKey(purchase)) as Planned;
      return { orderId: lost.orderId as string, batch, purchase, failure: reason ?? failure };
    });
    const { releases } = draft;
    const written = await repository.write({
      terms,
      orders,
      releases,
      oneByOne,
      singleOut: true,
      again: true,
      paymentWindowMs,
    });
    if (written.outcome === 'written') {
      for (const { orderId, purchase, failure } of orders) {
        const lostLate = written.surplus.has(orderId) ? 'oversold_guard' : null;
        const refused = written.refused?.has(orderId) === true ? 'refused_by_database' : null;
        result.set(purchaseKey(purchase), failure ?? lostLate ?? refused);
      }
      return result;
    }
    if (written.outcome === 'oversold') oneByOne.add(saleId);
    if (written.outcome === 'again') await clock.sleep(contendedPauseMs(attempt));
  }
  return null;
}

/** A batch has one bucket, so it may be split. */
function batchesOf(some: readonly Planned[]): Batch[] {
  return [...groupBy(some, ({ batch }) => batch.bucket).values()].map((inBucket) => {
    const { batch } = inBucket[0] as Planned;
    return sealBatch({ ...batch, purchases: inBucket.map(({ purchase }) => purchase) });
  });
}
